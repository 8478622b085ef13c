"""``recipe compare``: runs at equal steps, what each read and what was measured."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.text import Text

from recipe.cli.options import add_json, check_file, whole
from recipe.cli.output import confirm, print_json, print_tables, say
from recipe.errors import Problem, RecipeError
from recipe.report.comparison import comparison_tables, warning_lines
from recipe.report.comparison_figure import comparison_svg
from recipe.run.canonical import Plain
from recipe.run.comparing.compare import compared, read_histories
from recipe.run.comparing.comparison import Comparison, Question
from recipe.run.comparing.decisions import Decision, Word, chosen_run, decide, open_final
from recipe.run.comparing.history import History
from recipe.run.comparing.margins import FIX
from recipe.run.comparing.measured import LOWER_WORDS, Direction
from recipe.run.writes import replace_file

DONE, VIOLATED, NOT_AGREED = 0, 1, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of ``recipe compare``."""
    parser.add_argument(
        "runs", type=Path, nargs="+", metavar="RUN", help="folders of runs; the first is the base"
    )
    parser.add_argument(
        "--step", type=whole, metavar="N", help="default: the last step at which all have a checkpoint"
    )
    parser.add_argument(
        "--no-worse-than",
        action="append",
        default=[],
        metavar="METRIC=MARGIN",
        help="a metric (SET.NAME, or NAME for every set) and by how much an arm may be worse than the first, "
        "in its units; one that is makes the exit code 1; may be repeated",
    )
    words = ", ".join(LOWER_WORDS)
    for which in ("lower", "higher"):
        parser.add_argument(
            f"--{which}",
            action="append",
            default=[],
            metavar="METRIC",
            help=f"a metric that is better when {which} (by its name: lower with one of the words {words}, "
            "else higher)",
        )
    parser.add_argument("--rank-by", metavar="METRIC", help="rank the arms, such as by sft/short.accuracy")
    parser.add_argument(
        "--figure", type=Path, metavar="FILE.svg", help="also draw the differences, an SVG file"
    )
    _add_recorded(parser)
    add_json(parser)


def _add_recorded(parser: argparse.ArgumentParser) -> None:
    """The options that write to runs."""
    parser.add_argument(
        "--decide",
        metavar="RUN",
        help="put on record that this run was chosen, with this comparison as the evidence",
    )
    parser.add_argument("--approved-by", metavar="NAME", help="who approved the decision")
    parser.add_argument(
        "--open-final",
        action="store_true",
        help="show the sets final/NAME, which are sealed until a decision is on record; that they were "
        "opened is put on record first, in every run that has them (the seal binds this program: whoever "
        "reads a run's files can read the numbers)",
    )
    parser.add_argument("--by", metavar="NAME", help="who opens the final sets")
    parser.add_argument("--reason", metavar="TEXT", help="of the decision, or of the opening")
    parser.add_argument("--yes", action="store_true", help="do not ask before something is put on record")


def execute(args: argparse.Namespace) -> int:
    """Compare; 1 when an arm is worse than a margin allows."""
    if args.figure is not None:
        check_file("recipe compare", "--figure", args.figure, "compare.svg")
    question = Question(
        step=args.step,
        no_worse_than=_margins(args.no_worse_than),
        better=_directions(args.lower, args.higher),
        rank_by=args.rank_by,
    )
    histories = read_histories(args.runs)
    if args.open_final:
        opened = _opened(args, histories, question)
        return NOT_AGREED if opened is None else _answer(opened, None, args)
    comparison = compared(histories, question)
    if args.decide is None:
        return _answer(comparison, None, args)
    decision = _decided(args, comparison)
    return NOT_AGREED if decision is None else _answer(comparison, decision, args)


def _opened(args: argparse.Namespace, histories: Sequence[History], question: Question) -> Comparison | None:
    if args.decide is not None:
        fix = "decide first, then call again with --open-final"
        raise RecipeError.single(
            "recipe compare", "--open-final", given="--decide as well", expected="one of the two", fix=fix
        )
    word = Word(by=args.by or "", reason=args.reason or "")
    word.check("--by")
    if not _agreed("open the final sets, and put that on record?", args):
        return None
    return open_final(histories, question, word)


def _decided(args: argparse.Namespace, comparison: Comparison) -> Decision | None:
    word = Word(by=args.approved_by or "", reason=args.reason or "")
    word.check("--approved-by")
    chosen = chosen_run(comparison, args.decide)
    if not args.json:
        _show(comparison)
    if not _agreed(f"decide for manifest {chosen.manifest} of {chosen.path}?", args):
        return None
    return decide(comparison, args.decide, word)


def _agreed(question: str, args: argparse.Namespace) -> bool:
    agreed = confirm(question, yes=args.yes)
    if not agreed:
        say("nothing was written; --yes agrees without asking")
    return agreed


def _answer(comparison: Comparison, decision: Decision | None, args: argparse.Namespace) -> int:
    if args.figure is not None:
        replace_file(args.figure, comparison_svg(comparison).encode())
    if args.json:
        plain: Plain = comparison.to_plain()
        decided = comparison.decided or decision is not None
        print_json({**plain, "decided": decided, "decision": decision and asdict(decision)})
    elif decision is None:
        _show(comparison)
    else:
        print(f"{decision.run}: decided for manifest {decision.manifest}, evidence {decision.evidence}")
    return VIOLATED if comparison.violated else DONE


def _show(comparison: Comparison) -> None:
    print_tables(comparison_tables(comparison))
    print_tables(Text(line, style="bold") for line in warning_lines(comparison))


def _margins(words: Sequence[str]) -> dict[str, object]:
    margins: dict[str, object] = {}
    problems = []
    for word in words:
        name, mark, number = word.rpartition("=")
        if not mark or not name:
            problems.append(Problem("--no-worse-than", word, "METRIC=MARGIN", FIX))
        margins[name] = number
    if problems:
        raise RecipeError("recipe compare", problems)
    return margins


def _directions(lower: Sequence[str], higher: Sequence[str]) -> dict[str, Direction]:
    if both := sorted({*lower} & {*higher}):
        fix = "give each metric one of the two"
        raise RecipeError.single(
            "recipe compare",
            "--lower",
            given=f"{', '.join(both)}, also --higher",
            expected="one way",
            fix=fix,
        )
    found: dict[str, Direction] = dict.fromkeys(lower, "lower")
    return {**found, **dict.fromkeys(higher, "higher")}
