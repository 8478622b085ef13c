"""``recipe adopt``: go on from a branch, or amend its trunk with what it changed."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rich.text import Text

from recipe.cli.options import add_json
from recipe.cli.output import confirm, print_json, print_tables, say
from recipe.report.amendments import amendment_lines, amendment_tables
from recipe.report.comparison import comparison_tables, warning_lines
from recipe.run.comparing.adopt import Adoption, Proposal, adopt_run
from recipe.run.comparing.decisions import Word

DONE, NOT_AGREED = 0, 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The words of ``recipe adopt``."""
    parser.add_argument(
        "branch",
        metavar="BRANCH[@MANIFEST]",
        help="the branch's folder, and the number of the manifest, or @step:N (default: the last checkpoint)",
    )
    parser.add_argument(
        "--as",
        dest="how",
        choices=("trunk", "amend"),
        default="trunk",
        help="trunk: go on from the branch's checkpoint; on disk, a row in its ledger and, where it has "
        "steps left, in that of the run it branched from, each with the comparison in evidence/; nothing "
        "else changes. amend: the run it branched from takes over what it changed and goes on; on disk, the "
        "same two rows, then there a new recipe version and manifest at its last checkpoint (default: trunk)",
    )
    parser.add_argument("--approved-by", required=True, metavar="NAME", help="who approved it")
    parser.add_argument("--reason", required=True, metavar="TEXT", help="why")
    parser.add_argument(
        "--evidence",
        nargs="+",
        type=Path,
        default=[],
        metavar="RUN",
        help="runs that the branch was compared with; the comparison is kept, and its hash is put on record "
        "(default: the run it branched from, where they have a common step)",
    )
    parser.add_argument("--yes", action="store_true", help="do not ask")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show what is adopted and what that rests on, ask, and put it on record."""

    def agreed(proposal: Proposal) -> bool:
        if not args.json:
            _show(proposal, args.branch)
        question = (
            "amend the trunk?" if proposal.how == "amend" else "go on from this checkpoint as the trunk?"
        )
        return confirm(question, yes=args.yes)

    word = Word(by=args.approved_by, reason=args.reason)
    adoption = adopt_run(args.branch, args.how, word=word, evidence=args.evidence, confirm=agreed)
    if adoption is None:
        say("nothing was written; --yes agrees without asking")
        return NOT_AGREED
    if args.json:
        print_json(adoption.to_plain())
    else:
        print("\n".join(_told(adoption, args.branch)))
    return DONE


def _as_given(path: str | Path, given: str) -> str:
    """A path as somebody writes paths who gave another one: below the working directory, or whole."""
    here = Path.cwd()
    if Path(given).is_absolute() or not Path(path).is_relative_to(here):
        return str(path)
    return str(Path(path).relative_to(here))


def _show(proposal: Proposal, given: str) -> None:
    print_tables(comparison_tables(proposal.evidence))
    print_tables(Text(line, style="bold") for line in warning_lines(proposal.evidence))
    branch = proposal.branch
    if proposal.amendment is None:
        trunk = (
            "" if proposal.trunk is None else f", in place of {_as_given(proposal.trunk.folder.path, given)}"
        )
        weights = f", weights {branch.uri}" if branch.uri else ""
        where = f"manifest {branch.number}, step {branch.step:,}{weights}"
        print_tables([Text(f"go on from {branch.folder.path}: {where}{trunk}")])
        return
    plain = proposal.amendment.to_plain()
    version = proposal.amendment.version
    print_tables(
        [Text(f"{_as_given(plain['run'], given)}: recipe version {version} from step {plain['step']:,} on")]
    )
    print_tables(Text(line) for line in amendment_lines(plain))
    print_tables(amendment_tables(plain))
    print_tables(Text(f"not taken over: {line}") for line in proposal.left_out)


def _told(adoption: Adoption, given: str) -> Iterator[str]:
    weights = f", weights {adoption.uri}" if adoption.uri else ""
    yield f"{_as_given(adoption.run, given)}: go on from manifest {adoption.manifest}{weights}"
    told = " and ".join(_as_given(path, given) for path in adoption.told)
    yield f"on record in {told}; evidence {adoption.evidence}"
    if adoption.untold is not None:
        yield f"warning: the run it branched from has it not on record: {adoption.untold}"
