"""What a pool's card says for a public summary of training data: where its text comes from, on what terms.

It is a statement of whoever made the pool, not something that can be computed: it does not enter the
fingerprint and may be made or corrected later. The hash of the card covers it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError

from recipe.config.partial import Model
from recipe.config.problems import Fault, Vocabulary, faults_of, nearest, problem, unique
from recipe.config.strict_yaml import read_yaml
from recipe.config.values import Text
from recipe.errors import RecipeError
from recipe.pools.card import CARD_NAME, Card, card_text, read_card
from recipe.pools.workplace import write_durably

CRAWLED, SYNTHETIC = "crawled", "synthetic"
KINDS = ("public", "licensed", CRAWLED, "user", SYNTHETIC)
"""Where text may come from: a data set that anybody can get, one used under an agreement, pages collected
from the web, what users of a service wrote, the output of a model or a program."""
_SHOWN = 10
REMOVED = "null"
"""As a value: the key is taken out."""

_DATE = re.compile(r"([0-9]{4})(?:-([0-9]{2}))?(?:-([0-9]{2}))?")
_LANGUAGE = re.compile(
    r"[A-Za-z]{2,3}(-[A-Za-z]{4})?(-([A-Za-z]{2}|[0-9]{3}))?(-([A-Za-z0-9]{5,8}|[0-9][A-Za-z0-9]{3}))*"
)


def _date(given: object) -> str:
    text = str(given) if type(given) is int else given
    match = _DATE.fullmatch(text) if isinstance(text, str) else None
    try:
        if match is None:
            raise ValueError
        date(*(int(part or 1) for part in match.groups()))
    except ValueError:
        expected, fix = "a date as YYYY, YYYY-MM or YYYY-MM-DD", "write it like 2024-05 or 2024-05-31"
        raise problem("", given=given, expected=expected, fix=fix) from None
    return str(text)


def _language(text: str) -> str:
    """A tag in its usual letters: ``zh-Hans``, ``pt-BR``."""
    parts = text.split("-")
    usual = [parts[0].lower()]
    usual += [p.title() if len(p) == 4 else p.upper() if len(p) == 2 else p.lower() for p in parts[1:]]
    if _LANGUAGE.fullmatch(text) and "-".join(usual) == text:
        return text
    fix = f"write {'-'.join(usual)}" if _LANGUAGE.fullmatch(text) else "write its tag, as BCP 47 has them"
    raise problem("", given=text, expected="a language tag such as en, pt-BR or zh-Hans", fix=fix)


def _printable(text: str) -> str:
    """A text that moves no cursor and reorders nothing where it is shown; lines may end."""
    for sign in text:
        if sign not in "\n\t" and unicodedata.category(sign) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            given, fix = f"U+{ord(sign):04X} in {text!r:.60}", "leave the character out"
            raise problem("", given=given, expected="a text of characters that show", fix=fix)
    return text


def _languages(given: object) -> object:
    if isinstance(given, str):
        given = [part.strip() for part in given.split(",")]
    if isinstance(given, list | tuple):
        twice = [tag for place, tag in enumerate(given) if tag in given[:place]]
        if twice:
            raise problem("", given=", ".join(map(str, given)), expected="each language once", fix="drop one")
        return tuple(given)
    return given


Said = Annotated[Text, AfterValidator(_printable)]
Date = Annotated[str, BeforeValidator(_date)]
Language = Annotated[Text, AfterValidator(_language)]


class Collected(Model):
    """The period in which text was collected."""

    from_: Annotated[Date | None, Field(alias="from")] = None
    """First day, month or year of it."""
    to: Date | None = None
    """Last day, month or year of it."""

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """``2023-01..2024-05``, or one day, month or year."""
        if isinstance(given, str | int) and type(given) is not bool:
            first, dots, last = str(given).partition("..")
            ends = {"from": first, "to": last if dots else first}
            return {key: end for key, end in ends.items() if end}
        return given


class About(Model):
    """What is said of a pool; what is not known is left out."""

    kind: Literal["public", "licensed", "crawled", "user", "synthetic"] | None = None
    """Where its text comes from."""
    licence: Said | None = None
    """On what terms it is used, as an SPDX identifier where there is one."""
    languages: Annotated[tuple[Language, ...] | None, BeforeValidator(_languages)] = None
    """Of its texts."""
    collected: Collected | None = None
    """When."""
    generator: Said | None = None
    """Of synthetic text: the model or program that made it."""
    crawler: Said | None = None
    """Of crawled text: the name that the crawler gave itself."""
    provider: Said | None = None
    """Who publishes, licenses or collected it."""
    description: Said | None = None
    """What it is, in a sentence or a few."""
    url: Said | None = None
    """Where others find it."""
    contact: Said | None = None
    """Whom to ask."""


KEYS = tuple(About.model_fields)

_VOCABULARY = Vocabulary(
    keys={(): KEYS, ("collected",): ("from", "to")},
    later={},
    later_values={},
    examples={
        ("kind",): f"kind: {KINDS[0]}",
        ("licence",): "licence: CC-BY-4.0",
        ("languages",): "languages: [en, zh-Hans]",
        ("collected",): "collected: {from: 2023-01, to: 2024-05}",
        ("collected", "from"): "from: 2023-01",
        ("collected", "to"): "to: 2024-05",
    },
)


def about_of(data: Any, title: str) -> dict[str, Any]:
    """What is said of a pool as its card keeps it, once it is sound: plain values, keys in one order.

    Args:
        data: a mapping as it was written.
        title: what messages call it.

    Raises:
        RecipeError: with every problem.

    >>> about_of({"licence": "MIT", "kind": "crawled", "collected": "2023..2024-05"}, "web")
    {'kind': 'crawled', 'licence': 'MIT', 'collected': {'from': '2023', 'to': '2024-05'}}
    """
    try:
        about = About.model_validate(data)
    except ValidationError as error:
        found = faults_of(error, _VOCABULARY)
        raise RecipeError(title, [fault.problem() for fault in unique(found)]) from error
    if found := _between(about):
        raise RecipeError(title, [fault.problem() for fault in found])
    plain: dict[str, Any] = about.model_dump(mode="json", by_alias=True, exclude_none=True)
    return {key: value for key, value in plain.items() if value not in ({}, [])}


def _between(about: About) -> list[Fault]:
    """Faults of keys that do not go together."""
    found = []
    if about.kind == SYNTHETIC and about.generator is None:
        fix = "name the model or program that made the text: generator: NAME"
        found.append(Fault(("generator",), "nothing", "a generator, as kind is synthetic", fix))
    for key, kind in (("generator", SYNTHETIC), ("crawler", CRAWLED)):
        given = getattr(about, key)
        if given is not None and about.kind not in (None, kind):
            expected = f"nothing, as kind is {about.kind}"
            found.append(Fault((key,), given, expected, f"leave {key} out, or say kind: {kind}"))
    ends = about.collected
    if ends is not None and ends.from_ and ends.to and ends.from_[: len(ends.to)] > ends.to:
        expected = f"{ends.from_} or later, where it begins"
        found.append(Fault(("collected", "to"), ends.to, expected, "swap the two, or correct one"))
    return found


def read_about(words: Sequence[str], title: str, before: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """What words say of a pool: files of YAML, and ``key=value``; later ones go over earlier ones.

    Args:
        words: such as ``web.yaml``, ``licence=MIT``, ``languages=en,zh-Hans``, ``collected.to=2024-05``;
            ``key=null`` takes a key out.
        title: what messages call it.
        before: what was said so far.

    Raises:
        RecipeError: with every problem.

    >>> read_about(["kind=public", "licence=null"], "web", {"licence": "MIT", "url": "https://example.org"})
    {'kind': 'public', 'url': 'https://example.org'}
    """
    data = {
        key: dict(value) if isinstance(value, Mapping) else value for key, value in (before or {}).items()
    }
    for at, word in enumerate(words):
        key, sign, value = word.partition("=")
        if not sign and not Path(word).is_file():
            following = words[at + 1] if word in KEYS and at + 1 < len(words) else "…"
            raise RecipeError.single(
                title, word, given=f"{word!r}, which is no file",
                expected="KEY=VALUE, or a YAML file of keys",
                fix=f"write {word}={following}" if word.partition(".")[0] in KEYS
                else nearest(word, KEYS, f"keys are {', '.join(KEYS)}"),
            )  # fmt: skip
        if sign and not Path(word).is_file():
            _put(data, key, value)
        else:
            data.update(_mapping(Path(word)))
    return about_of({key: value for key, value in data.items() if value is not None}, title)


def _put(data: dict[str, Any], key: str, value: str) -> None:
    """Say one thing: text as it is."""
    name, dot, inner = key.partition(".")
    new = None if value == REMOVED else value
    if not dot:
        data[key] = new
        return
    within = Collected.spelled_out(data.get(name))
    within = dict(within) if isinstance(within, Mapping) else {}
    within[inner] = new
    data[name] = {key: value for key, value in within.items() if value is not None}


def _mapping(path: Path) -> dict[str, Any]:
    data = read_yaml(path)
    if isinstance(data, dict):
        return data
    raise RecipeError.single(
        str(path), str(path), given=type(data).__name__, expected="a mapping such as kind: public",
        fix=f"write keys of {', '.join(KEYS)}",
    )  # fmt: skip


def describe_pool(path: Path, about: Mapping[str, Any]) -> None:
    """Write what is said of a pool into its card; the fingerprint and all else stay. An empty one goes.

    Raises:
        RecipeError: no card of our own is there, or it was changed.
    """
    card = card_at(path)
    if dict(about) != (card.about or {}):
        write_durably(path / CARD_NAME, card_text(replace(card, about=dict(about) or None)))


def card_at(path: Path) -> Card:
    """The card that something can be said in.

    Raises:
        RecipeError: no card of our own is there, or it was changed.
    """
    sides = sorted(card.parent.name for card in path.glob(f"*/{CARD_NAME}"))
    if not (path / CARD_NAME).is_file() and sides:
        fix = f"say it of each: {', '.join(str(path / side) for side in sides[:_SHOWN])}"
        raise RecipeError.single(
            str(path), str(path), given=f"a folder that holds the pools {', '.join(sides[:_SHOWN])}",
            expected="the folder of one pool", fix=fix + (", …" if len(sides) > _SHOWN else ""),
        )  # fmt: skip
    if not (path / CARD_NAME).is_file():
        raise RecipeError.single(
            str(path), str(path), given="no card.json", expected="the folder of a pool that recipe made",
            fix="prepare it as a pool; or say it of files without a card, by the pool's name in the recipe, "
            "in a file of your own: recipe report RUN --datasheet --about FILE",
        )  # fmt: skip
    return read_card(path)
