"""Words and options that several verbs share."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from shlex import quote

from recipe.config.places import is_stored, place
from recipe.errors import Problem, RecipeError
from recipe.maths.amounts import parse_amount

RECIPE_WORDS = (
    "a recipe (a name in conf/recipe, or a YAML file; default: demo), then overrides such as seed=7 or "
    "stages.short.tokens=2M"
)

_NAMELESS = re.compile(r"[+~]*(?:[@:=]|$)")
"""An override whose key, or group, is empty."""


def add_recipe_words(parser: argparse.ArgumentParser, *, also: str = "") -> None:
    """Declare ``[RECIPE] [key=value …]`` and ``--config-dir``; ``also`` is what else the words may be."""
    parser.add_argument("words", nargs="*", metavar="RECIPE|KEY=VALUE", help=f"{RECIPE_WORDS}{also}")
    parser.add_argument(
        "--config-dir",
        type=Path,
        metavar="DIR",
        help="a folder of your own laid out like conf/; its recipes are found by name too",
    )


def add_json(parser: argparse.ArgumentParser) -> None:
    """Declare ``--json``: the answer as one JSON value on stdout, and nothing else there."""
    parser.add_argument("--json", action="store_true", help="print the answer as JSON, for programs")


def add_pools_root(parser: argparse.ArgumentParser) -> None:
    """Declare ``--pools-root``: pools that are elsewhere than on record."""
    parser.add_argument(
        "--pools-root", type=place, metavar="DIR|URL", help="where the pools are, seen from this machine"
    )


def add_row_sources(parser: argparse.ArgumentParser, rows: argparse._ActionsContainer | None = None) -> None:
    """Declare what names the text of a row: ``--sources``, in the group ``rows``, and ``--tokenizer``."""
    (parser if rows is None else rows).add_argument(
        "--sources",
        action="append",
        default=[],
        metavar="DIR|URL",
        help="the folder that held the sources of a pool, to name lines, rows or members, and characters; "
        "repeatable",
    )
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH", help="the pools' tokenizer; default: the recipe's, or bytes"
    )


def add_allow_target(parser: argparse.ArgumentParser) -> None:
    """Declare ``--allow-target``: a policy of one's own that a recipe may name."""
    parser.add_argument(
        "--allow-target",
        action="append",
        default=[],
        metavar="NAME",
        help="a policy of your own that the recipe may name: package.module.Class, or package.module.* for "
        "all of the module; it is imported (PYTHONPATH says from where); repeatable",
    )


def add_yes(
    parser: argparse.ArgumentParser,
    what: str = "do it without asking; where nobody can answer, nothing is written and the exit code is 1",
) -> None:
    """Declare ``--yes``: do it without asking; ``what`` says so where not everything is asked about."""
    parser.add_argument("--yes", action="store_true", help=what)


def add_record_words(parser: argparse.ArgumentParser) -> None:
    """Declare ``--reason`` and ``--approved-by``, which stay on record."""
    parser.add_argument(
        "--reason", type=recordable, required=True, metavar="TEXT", help="why; it stays on record"
    )
    parser.add_argument(
        "--approved-by", type=recordable, metavar="NAME", help="who said so; it stays on record"
    )


def add_place(parser: argparse.ArgumentParser, *, at: bool = True) -> None:
    """Declare the run with the checkpoint to change it at, and ``--at``."""
    parser.add_argument(
        "run",
        metavar="RUN[@MANIFEST]",
        help="the run's folder, such as runs/demo; with the number of a manifest, or @step:N"
        + (" (default: the last checkpoint)" if at else ""),
    )
    if at:
        parser.add_argument(
            "--at", type=_step, metavar="STEP", help="a step with a checkpoint; RUN@step:STEP is the same"
        )


def add_documents(parser: argparse.ArgumentParser) -> None:
    """Declare ``--documents`` and ``--document``: documents by their ids."""
    parser.add_argument("--documents", type=Path, metavar="FILE", help="ids of documents, one a line")
    parser.add_argument(
        "--document", action="append", default=[], metavar="ID", help="one document; may come many times"
    )


def named_documents(args: argparse.Namespace) -> list[str]:
    """The ids that ``--document`` and ``--documents`` name.

    Raises:
        RecipeError: the file cannot be read, or holds no id.
    """
    from recipe.run.changing.withdraw import read_ids  # only verbs that take documents out need it

    return [*args.document, *(read_ids(args.documents) if args.documents is not None else ())]


def add_dry_run(parser: argparse.ArgumentParser) -> None:
    """Declare ``--dry-run``: show what would happen, and exit with 0."""
    parser.add_argument("--dry-run", action="store_true", help="show what would change, and write nothing")


MOST = 2**63 - 1
"""The largest number that a recipe, and a token file, can hold."""
_WHOLE = re.compile(r"[0-9]{1,19}")
_PERCENT = re.compile(r"[0-9]{1,3}(\.[0-9]{1,12})?%")


def is_whole(text: str) -> bool:
    """Whether a text is a whole number in 0..2**63-1, in plain digits.

    >>> [is_whole(text) for text in ("96", "-1", "1_0", "\u0663", "")]
    [True, False, False, False, False]
    """
    return _WHOLE.fullmatch(text) is not None and int(text) <= MOST


def number(least: int = 0, most: int = MOST, *, amounts: bool = False) -> Callable[[str], int]:
    """What reads an option's whole number, for argparse.

    Args:
        least: the smallest that is taken.
        most: the largest.
        amounts: units may stand for digits, which may be set apart, as in ``100k``, ``1Gi`` and ``1_000``.

    >>> number()("96"), number(1, amounts=True)("1_000"), number(1, amounts=True)("1Ki")
    (96, 1000, 1024)
    """
    limit = "2**63-1" if most == MOST else str(most)

    def read(text: str) -> int:
        found, why = int(text) if is_whole(text) else None, ""
        if amounts and found is None:
            try:
                found = parse_amount(text)
            except ValueError as error:
                why = f" ({error})"
        if found is None or not least <= found <= most:
            such_as = ", such as 20000, 500M or 1Gi" if amounts else ""
            raise argparse.ArgumentTypeError(
                f"expected a whole number in {least}..{limit}{such_as}, given {text!r}{why}"
            )
        return found

    return read


whole = number()
"""An option's whole number from 0 on."""


def here(text: str) -> Path:
    """A folder of this machine, for verbs that write to it; a store's is refused."""
    path = place(text)
    if is_stored(path):
        raise argparse.ArgumentTypeError(f"{text} is in a store: copy the pool to this machine, and back")
    return path


def sample_of(text: str) -> Fraction | int:
    """How much of something is looked at: a number, or a share of it.

    >>> sample_of("20"), sample_of("5%")
    (20, Fraction(1, 20))
    """
    value: Fraction | int = 0
    if is_whole(text):
        value = int(text)
    elif _PERCENT.fullmatch(text):
        value = Fraction(text[:-1]) / 100
    if value <= 0 or (text.endswith("%") and value > 1):
        raise argparse.ArgumentTypeError(f"expected a number, or a share such as 5%, given {text!r}")
    return value


def _step(text: str) -> int:
    if not is_whole(text):
        hint = f"; a manifest is named beside the run: RUN@{text[1:]}" if text.startswith("@") else ""
        raise argparse.ArgumentTypeError(f"expected a step such as 96, given {text!r}{hint}")
    return int(text)


def recordable(text: str) -> str:
    """An option's text that ledger and manifest can hold on one line, and that says something."""
    from recipe.run.statement import text_on_record  # only verbs that write need it

    if not text.strip():
        raise argparse.ArgumentTypeError(f"expected a text, given {text!r}")
    try:
        return text_on_record("it", text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def split_words(words: Sequence[str]) -> tuple[str, list[str]]:
    """The recipe and the overrides among the words; a recipe comes at most once.

    >>> split_words(["my.yaml", "seed=7"])
    ('my.yaml', ['seed=7'])
    >>> split_words(["seed=7"])
    ('demo', ['seed=7'])
    """
    overrides = [word for word in words if is_override(word)]
    if nameless := [word for word in overrides if _NAMELESS.match(word)]:
        raise RecipeError.single(
            "recipe",
            "KEY=VALUE",
            given=" ".join(nameless),
            expected="key=value, +key=value or ~key",
            fix="write it like seed=7 or stages.short.tokens=2M",
        )
    names = [word for word in words if not is_override(word)]
    if len(names) > 1:
        raise RecipeError.single(
            "recipe",
            "RECIPE",
            given=" ".join(names),
            expected="one recipe, then overrides as key=value",
            fix="keep one of them; quote an override that holds blanks, or start one command per recipe",
        )
    return (names[0] if names else "demo"), overrides


def run_alone(source: str, overrides: Sequence[str], config_dir: Path | None, fix: str) -> None:
    """Refuse what a run that is there already cannot follow.

    Args:
        source: the run's folder.
        overrides: changes of keys, and other words beside it.
        config_dir: of ``--config-dir``.
        fix: what to do instead.

    Raises:
        RecipeError: there is any of it.
    """
    given = [*overrides, *([] if config_dir is None else ["--config-dir", str(config_dir)])]
    if given:
        raise RecipeError.single(
            source, "KEY=VALUE", given=" ".join(given), expected="the folder of a run, alone", fix=fix
        )


def is_override(word: str) -> bool:
    """Whether a word changes a key of the recipe (``key=value``, ``+key=value``, ``~key``).

    >>> [is_override(word) for word in ("seed=7", "~stages.long", "my.yaml", "demo")]
    [True, True, False, False]
    """
    return word.startswith("~") or ("=" in word and not Path(word).is_file())


def check_file(verb: str, option: str, path: Path, like: str) -> None:
    """Refuse a file that cannot be written, before anything is computed or put on record.

    Args:
        verb: such as ``recipe compare``.
        option: which names the file.
        path: of the file.
        like: a name it may have.

    Raises:
        RecipeError: a folder, or a file in a folder that is not there.
    """
    if path.is_dir():
        expected, fix = "a file", f"give it a name in there: {option} {path / like}"
    elif not path.parent.is_dir():
        expected = f"a file in a folder that is there, not {path.parent}"
        fix = f"make that folder first (mkdir -p {quote(str(path.parent))}), or choose another"
    else:
        return
    raise RecipeError.single(verb, option, given=path, expected=expected, fix=fix)


def check_sources(verb: str, sources: Sequence[str | Path]) -> None:
    """Refuse ``--sources`` that are no folder of this machine and no address of a store.

    Raises:
        RecipeError: with every one that is neither.
    """
    problems = [
        Problem("--sources", source, "a folder that holds the sources of a pool", "correct the path")
        for source in map(str, sources)
        if "://" not in source and not Path(source).expanduser().is_dir()
    ]
    if problems:
        raise RecipeError(verb, problems)
