"""The sections of a datasheet: headings, sentences and tables of texts; in English or with Chinese labels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from recipe.errors import counted
from recipe.pools.about import CRAWLED, SYNTHETIC
from recipe.pools.reasons import DUPLICATE, NEAR_DUPLICATE, OTHER_SPLIT, WITHDRAWN
from recipe.report.datasheet import NOT_SYNTHETIC, OTHERS, READ, WITHOUT
from recipe.report.datasheet_words import words
from recipe.report.figures import ratio, readings
from recipe.report.pools import NOT_STATED, SHORT, said

Words = Callable[[str], str]


@dataclass(frozen=True, kw_only=True)
class Section:
    """A heading, what it says, and a table of texts."""

    title: str
    text: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    total: tuple[str, ...] = ()


def sections(facts: Mapping[str, Any], lang: str = "en") -> Iterator[Section]:
    """What `recipe.report.datasheet.datasheet_of` found, section by section."""
    w = words(lang)
    yield _run(facts, w)
    yield _by(facts, "kind", w)
    yield _pools(facts, w)
    yield _about(facts, w)
    for key in ("licence", "languages", "collected", "generator", "provider"):
        if any(row["value"] != NOT_STATED for row in facts["by"][key]):
            yield _by(facts, key, w)
    yield from _tags(facts, w)
    yield _left_out(facts, w)
    yield _lineage(facts, w)
    yield _not_stated(facts, w)


def _run(facts: Mapping[str, Any], w: Words) -> Section:
    run, total, prior = facts["run"], facts["total"], facts["prior"]
    rows = [
        (w("step"), f"{run['step']:,}{'' if run['complete'] else w(' (not complete)')}"),
        (w("positions"), f"{run['positions']:,}"),
        (w("tokens of documents served"), f"{total['body']:,}"),
        (w("of them fresh"), f"{total['fresh']:,}"),
        (w("tokens spent"), f"{total['spent']:,}{w(' (counted: ')}{w(run['count'])}{w(')')}"),
        (w("pools"), f"{len(facts['pools']):,}"),
        (w("tokenizer"), ", ".join(one[:SHORT] for one in run["tokenizers"]) or w(NOT_STATED)),
        (w("created"), run["created"]),
        (w("record"), run["head"][: 2 * SHORT]),
    ]
    if prior is not None:
        rows.append((w("weights it started from"), f"{prior['weights']}: {prior['prior_tokens'] or '?'}"))
    text = (w("intro"), *([w("prior")] if prior is not None else []))
    return Section(
        title=f"{w('Datasheet of run ')}{run['name']}", text=text, columns=("", ""), rows=tuple(rows)
    )


def _by(facts: Mapping[str, Any], key: str, w: Words) -> Section:
    """Tokens by what cards, or documents, say of one thing."""
    rows, total = facts["by"][key], facts["total"]
    is_shared = any(row["shared"] for row in rows)
    cells = [
        (
            w(row["value"]) if key == "kind" else _value(row["value"], w),
            ", ".join(row["pools"]),
            f"{row['spent']:,}",
            ratio(row["spent"], total["spent"]),
            f"{row['fresh']:,}",
            *([f"{row['shared']:,}"] if is_shared else []),
        )
        for row in rows
    ]
    shared = sum(row["shared"] for row in rows)
    last = (
        "all",
        "",
        f"{total['spent']:,}",
        "",
        f"{total['fresh']:,}",
        *([f"{shared:,}"] if is_shared else []),
    )
    columns = [key, "pools", "tokens spent", "share", "fresh", *([_how(facts)] if is_shared else [])]
    text = [w("kinds")] if key == "kind" else [w(_how_text(facts))] if is_shared else []
    return Section(
        title=w(f"by {key}"),
        text=tuple(text),
        columns=tuple(map(w, columns)),
        rows=tuple(cells),
        total=(w(last[0]), *last[1:]),
    )


def _value(value: str, w: Words) -> str:
    """A value as it is; only what stands for none is in the page's language."""
    return w(value) if value in (NOT_STATED, NOT_SYNTHETIC, WITHOUT, OTHERS) else value


def _how(facts: Mapping[str, Any]) -> str:
    return "read-proportional" if facts["shared_out"] == READ else "stock-proportional"


def _how_text(facts: Mapping[str, Any]) -> str:
    return f"about {_how(facts)}"


def _pools(facts: Mapping[str, Any], w: Words) -> Section:
    total = facts["total"]
    rows = tuple(
        (
            name,
            f"{one['documents']:,}",
            f"{one['stock']:,}",
            f"{one['spent']:,}",
            ratio(one["spent"], total["spent"]),
            f"{one['fresh']:,}",
            readings(one["epochs"]),
            f"{one['withdrawn']:,}",
            one["fingerprint"][:SHORT],
        )
        for name, one in facts["pools"].items()
    )
    columns = (
        "pool", "documents", "tokens it holds", "tokens spent", "share", "fresh", "epochs", "withdrawn",
        "fingerprint",
    )  # fmt: skip
    last = (w("all"), "", "", f"{total['spent']:,}", "", f"{total['fresh']:,}", "", "", "")
    notes = tuple(f"{name}: {w(one['note'])}" for name, one in facts["pools"].items() if one["note"])
    return Section(
        title=w("Pools"),
        text=(w("about epochs"), *notes),
        columns=tuple(map(w, columns)),
        rows=rows,
        total=last,
    )


def _about(facts: Mapping[str, Any], w: Words) -> Section:
    keys = [key for key in _ABOUT if any(key in one["about"] for one in facts["pools"].values())]
    rows = tuple(
        (name, *(_stated(one["about"], key, w) for key in keys)) for name, one in facts["pools"].items()
    )
    columns = (w("pool"), *map(w, keys))
    beside = [name for name, one in facts["pools"].items() if one["stated_in"] == "beside"]
    if not keys:
        return Section(title=w("What cards say"), text=(w("no card speaks"),))
    text = (w("stated"), *([f"{w('beside')}: {', '.join(beside)}"] if beside else []))
    return Section(title=w("What cards say"), text=text, columns=columns, rows=rows)


def _stated(about: Mapping[str, Any], key: str, w: Words) -> str:
    """What a card says of one thing; a dash where the pool's kind leaves nothing to say."""
    if key in about:
        return w(said(about[key])) if key == "kind" else said(about[key])
    belongs = {"generator": SYNTHETIC, "crawler": CRAWLED}.get(key)
    return "–" if belongs is not None and about.get("kind") not in (None, belongs) else w(NOT_STATED)


_ABOUT = (
    "kind", "licence", "languages", "collected", "generator", "crawler", "provider", "description", "url",
    "contact",
)  # fmt: skip


def _tags(facts: Mapping[str, Any], w: Words) -> Iterator[Section]:
    for name, one in facts["pools"].items():
        for key, values in one["tags"].items():
            counts = ("documents", "tokens", "spent", "fresh")
            rows = tuple((_value(row["value"], w), *(f"{row[k]:,}" for k in counts)) for row in values)
            held = "tokens read at least once" if facts["shared_out"] == READ else "tokens it holds"
            columns = (key, *map(w, ("documents", held, "tokens spent", "fresh")))
            title = f"{w('tag')} {key}, {w('pool')} {name}: {w(_how(facts))}"
            yield Section(title=title, text=(w(_how_text(facts)),), columns=columns, rows=rows)


_PLACED = (DUPLICATE, NEAR_DUPLICATE, OTHER_SPLIT, WITHDRAWN)
"""Reasons for which a document is left out of one split; a bad or empty record belongs to none."""


def _left_out(facts: Mapping[str, Any], w: Words) -> Section:
    rows = [
        (w("in training"), w(why), _number(count, "tokens", w)) for why, count in facts["dropped"].items()
    ]
    withdrawn = sum(one["withdrawn"] for one in facts["pools"].values())
    if withdrawn:
        rows.append((w("in training"), w("withdrawn"), _number(withdrawn, "documents", w)))
    unknown = []
    for name, one in facts["pools"].items():
        left = one["left_out"] or {"reasons": {}, "read": None}
        unknown += [name] if left["read"] is None else []
        for why, count in left["reasons"].items():
            whose = name
            if left.get("of_all_splits"):
                is_placed = why in _PLACED
                whose = name if is_placed else f"{name}{w(', all splits')}"
                count = left["own"].get(why, 0) if is_placed else count
            if count:
                words_of = w(why.replace("_", " "))
                rows.append((f"{w('in preparing')} {whose}", words_of, _number(count, "records", w)))
    text = (f"{w('not on record')}: {', '.join(unknown)}",) if unknown else () if rows else (w("nothing"),)
    return Section(
        title=w("Left out"), text=text, columns=(w("when"), w("why"), w("how many")), rows=tuple(rows)
    )


def _number(count: int, nouns: str, w: Words) -> str:
    """A number of things; English has a singular, Chinese has none."""
    said_of = w(nouns)
    return counted(count, nouns[:-1]) if said_of == nouns else f"{count:,} {said_of}"


def _lineage(facts: Mapping[str, Any], w: Words) -> Section:
    rows = tuple(
        (
            one["run"],
            f"{one['steps'][0]:,}..{one['steps'][1]:,}",
            f"{one['spent']:,}",
            w("yes") if one["counted"] else w("no: other tokens"),
        )
        for one in reversed(facts["lineage"])
    )
    columns = tuple(map(w, ("run", "steps", "tokens spent", "in the sums above")))
    return Section(title=w("Lineage"), text=(w("lineage"),), columns=columns, rows=rows)


def _not_stated(facts: Mapping[str, Any], w: Words) -> Section:
    rows = tuple((name, ", ".join(map(w, missing))) for name, missing in facts["not_stated"].items())
    cards = {facts["pools"][name]["has_card"] is not False for name in facts["not_stated"]}
    ways = ((True, w("describe")), (False, w("describe beside")))
    text = tuple(way for kind, way in ways if kind in cards) if rows else (w("complete"),)
    return Section(title=w("Not stated"), text=text, columns=(w("pool"), w("keys")), rows=rows)
