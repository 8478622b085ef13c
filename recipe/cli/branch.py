"""``recipe branch``: other runs that start from a checkpoint of one and differ by what is named."""

from __future__ import annotations

import argparse
from pathlib import Path
from shlex import quote

from rich.text import Text

from recipe.cli.options import add_allow_target, add_json, add_pools_root, add_yes, is_override
from recipe.cli.output import confirm, no_write, print_json, print_tables, say
from recipe.errors import RecipeError
from recipe.report.branches import branch_lines, branch_tables
from recipe.run.branching.branch import Branch, create_branches, plan_branches
from recipe.run.branching.origin import find_origin, split_place
from recipe.run.branching.wishes import DATA, Wish, read_wishes

_TABLES_OF = 6
"""Branches that have a column each; of more the lines must do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run, the branches' names and changes, and what they read."""
    parser.add_argument(
        "words",
        nargs="+",
        metavar="RUN[@MANIFEST]|NAME|KEY=VALUE",
        help="the run's folder, with the number of a manifest or @step:N (default: the last one); a name; "
        "then changes such as stages.base.quotas.code=20%%, or branch=FILE for those of a branch file",
    )
    parser.add_argument(
        "-m",
        "--multirun",
        action="store_true",
        help="a branch for every value: branch=A,B seed=1,2 makes four, all or none",
    )
    parser.add_argument(
        "--from", dest="from_pool", metavar="POOL", help="the pool that gives, or gets, the difference"
    )
    parser.add_argument(
        "--data",
        choices=DATA,
        default="continue",
        help="continue: pools are read on where the run stands (default); fresh: each from its beginning",
    )
    parser.add_argument(
        "--fresh", action="append", default=[], metavar="POOL", help="read this pool from its beginning"
    )
    parser.add_argument(
        "--end-stage",
        metavar="SPEC",
        help="another tail: end the stage here and add a last one in place of the rest, such as "
        "'{tokens: 50B, context: 4096, quotas: {english: rest, code: 30%%}}'; what is not given is as in the "
        "stage that it ends, or, where that one is finished here, as in the next",
    )
    parser.add_argument(
        "--rename", action="append", default=[], metavar="OLD=NEW", help="another name for a pool; same order"
    )
    parser.add_argument("--reason", default="", metavar="TEXT", help="why; it stays on record")
    parser.add_argument("--approved-by", metavar="NAME", help="who said so; it stays on record")
    parser.add_argument(
        "--name-root", type=Path, metavar="DIR", help="where the new folders go (default: beside the run's)"
    )
    add_pools_root(parser)
    parser.add_argument("--config-dir", type=Path, metavar="DIR", help="a folder with branch/NAME.yaml files")
    add_allow_target(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would be made, and make nothing")
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Show the branches, ask, and create them: all or none."""
    run, wishes = _wishes(args)
    origin = find_origin(*split_place(run))
    branches = plan_branches(
        origin,
        wishes,
        args.name_root,
        args.pools_root,
        approved_by=args.approved_by,
        allow_targets=args.allow_target,
    )
    _show(branches, quiet=args.json)
    what = branches[0].wish.name if len(branches) == 1 else f"{len(branches)} branches"
    created = not args.dry_run and confirm(f"create {what}?", yes=args.yes)
    if created:
        create_branches(branches)
    if args.json:
        print_json({"created": created, "branches": [branch.to_plain() for branch in branches]})
    if created:
        for branch in branches:
            say(f"{branch.path}: created; go on with it by `recipe run {branch.path}`", quiet=args.json)
        if len(branches) > 1:
            places = " ".join(quote(str(branch.path)) for branch in branches)
            say(f'all of them: for run in {places}; do recipe run "$run"; done', quiet=args.json)
    return 0 if created else no_write(dry_run=args.dry_run)


def _wishes(args: argparse.Namespace) -> tuple[str, list[Wish]]:
    """The run, and what is asked of it."""
    run, *rest = args.words
    names = [word for word in rest if not is_override(word)]
    if is_override(run) or len(names) > 1:
        raise RecipeError.single(
            "recipe branch",
            "RUN NAME",
            given=" ".join(names) or run,
            expected="the run's folder, one name, then changes as key=value",
            fix="write it like: recipe branch runs/demo@3 more stages.long.quotas.maths=9% --from code",
        )
    pairs = [tuple(word.split("=", 1)) for word in args.rename]
    if any(len(pair) != 2 for pair in pairs):
        fix = "write it like --rename code=source_code"
        raise RecipeError.single(
            "recipe branch", "--rename", given=" ".join(args.rename), expected="OLD=NEW", fix=fix
        )
    template = Wish(
        name="",
        from_pool=args.from_pool,
        data=args.data,
        fresh=tuple(args.fresh),
        renamed=tuple((old, new) for old, new in pairs),
        end_stage=args.end_stage,
        reason=args.reason,
    )
    overrides = [word for word in rest if is_override(word)]
    name = names[0] if names else None
    return run, read_wishes(name, overrides, template, several=args.multirun, config_dir=args.config_dir)


def _show(branches: list[Branch], *, quiet: bool) -> None:
    """What each will be, on stdout; what makes one uncontrolled on stderr, also beside JSON."""
    plains = [branch.to_plain() for branch in branches]
    if not quiet:
        print_tables(Text(line) for plain in plains for line in branch_lines(plain))
        if len(plains) <= _TABLES_OF:
            print_tables(branch_tables(plains))
    for branch in branches:
        if not branch.control.controlled:
            say(f"warning: {branch.wish.name} is UNCONTROLLED against its parent:")
            for reason in branch.control.against:
                say(f"  {reason}")
