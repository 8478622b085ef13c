"""``recipe screen``: try many mixtures on small proxies, rank them, confirm the best on the target."""

from __future__ import annotations

import argparse
from fractions import Fraction
from pathlib import Path
from shlex import quote

from rich.text import Text

from recipe.cli.found import refuse_missing
from recipe.cli.options import (
    add_allow_target,
    add_json,
    add_pools_root,
    add_recipe_words,
    add_yes,
    split_words,
    whole,
)
from recipe.cli.output import confirm, print_json, print_tables, say
from recipe.config import load_recipe
from recipe.errors import RecipeError
from recipe.maths.mixtures import LEAST_CONCENTRATION, MOST_CONCENTRATION
from recipe.maths.shares import parse_percent, parse_weight
from recipe.report.branches import branch_lines
from recipe.report.screens import ranking_table, screen_tables
from recipe.run.branching.branch import create_branches
from recipe.run.branching.origin import find_origin, split_place
from recipe.run.comparing.measured import Direction
from recipe.run.screening.mixtures import Draws, Grid, How, Table
from recipe.run.screening.ranking import Ranking, plan_confirmation, rank_screen
from recipe.run.screening.screen import Ask, Screen, create_screen, plan_screen, plan_screen_of_branches

_USAGE = """Three uses:
  recipe screen RECIPE [KEY=VALUE …] (--grid STEP | --dirichlet N | --weights FILE.csv) --out DIR
  recipe screen rank DIR --metric SET.NAME
  recipe screen confirm DIR --metric SET.NAME --top K --target RUN@MANIFEST

Examples:
  recipe screen proxy.yaml simulate_budget=10T --dirichlet 64 --seed 7 --out runs/screen
  recipe screen demo --stage long --over code_all,tutorials --grid 5% --out runs/screen
  recipe screen --branch runs/demo@4 --stage long --weights mixtures.csv --out runs/screen
  recipe screen rank runs/screen --metric validation.loss
  recipe screen confirm runs/screen --metric validation.loss --top 3 --target runs/big@12"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is varied and how, and what is ranked by."""
    parser.epilog = _USAGE
    add_recipe_words(parser)
    drawn = parser.add_argument_group("mixtures")
    drawn.add_argument("--grid", metavar="STEP", help="every mixture on a grid, such as 10%%")
    drawn.add_argument("--least", default="0%", metavar="SHARE", help="of a grid: at least that much of each")
    drawn.add_argument("--dirichlet", type=whole, metavar="N", help="N draws around the recipe's own shares")
    drawn.add_argument(
        "--concentration",
        default="10",
        metavar="A",
        help="of draws: the larger, the nearer to the centre (default 10; A is the sum of the parameters)",
    )
    drawn.add_argument("--centre", choices=("own", "even"), default="own", help="of draws (default: own)")
    drawn.add_argument("--seed", type=whole, default=0, metavar="N", help="of the draws")
    drawn.add_argument(
        "--weights", type=Path, metavar="FILE", help="a CSV: names in its first line, then a line a mixture"
    )
    drawn.add_argument("--over", metavar="NAME,NAME", help="pools or groups to vary (default: all)")
    drawn.add_argument("--stage", metavar="NAME", help="whose shares vary (default: the only one)")
    drawn.add_argument(
        "--out", type=Path, metavar="DIR", help="the folder of the screen; nothing is there yet"
    )
    drawn.add_argument(
        "--branch", metavar="RUN[@MANIFEST]", help="branches of a run instead of runs of a recipe"
    )
    ranked = parser.add_argument_group("ranking and confirming")
    ranked.add_argument(
        "--metric",
        metavar="[SET.]NAME",
        help="as given at checkpoints, or attached; NAME where one set has it",
    )
    way = ranked.add_mutually_exclusive_group()
    way.add_argument(
        "--lower", action="store_const", const="lower", dest="way", help="--metric is better when lower"
    )
    way.add_argument("--higher", action="store_const", const="higher", dest="way", help="... when higher")
    ranked.add_argument("--step", type=whole, help="of all runs (default: the last one that they share)")
    ranked.add_argument("--top", type=whole, default=3, metavar="N", help="how many to confirm (default: 3)")
    ranked.add_argument("--target", metavar="RUN[@MANIFEST]", help="the checkpoint of the target model")
    ranked.add_argument("--name-root", type=Path, metavar="DIR", help="where the branches go")
    add_pools_root(parser)
    add_allow_target(parser)
    parser.add_argument("--dry-run", action="store_true", help="show what would be made, and make nothing")
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Draw, rank or confirm."""
    verb = args.words[0] if args.words else ""
    if verb == "rank":
        return _rank(_folder(args), args)
    if verb == "confirm":
        return _confirm(_folder(args), args)
    return _draw(args)


def _draw(args: argparse.Namespace) -> int:
    if args.out is None:
        raise _wanted("--out", "the folder of the screen", "write --out runs/screen")
    over = () if args.over is None else tuple(name.strip() for name in args.over.split(","))
    ask = Ask(how=_how(args), stage=args.stage, over=over)
    if args.branch is not None:
        if args.words:
            raise _wanted("--branch", "the run alone, without a recipe", f"leave out {' '.join(args.words)}")
        screen = plan_screen_of_branches(
            find_origin(*split_place(args.branch)), ask, args.out, args.pools_root
        )
    else:
        source, overrides = split_words(args.words)
        recipe = load_recipe(source, overrides, config_dir=args.config_dir)
        refuse_missing(recipe, source)
        screen = plan_screen(recipe, ask, args.out, args.allow_target)
    return _create(screen, args)


def _create(screen: Screen, args: argparse.Namespace) -> int:
    plain = screen.to_plain()
    if not args.json:
        print_tables(screen_tables(plain))
    if "simulated_fraction" in plain:
        part = float(Fraction(plain["simulated_fraction"]))
        say(f"proxies: of every pool {part:.4%} is read, as often as the full run reads it", quiet=args.json)
    for name, ahead in screen.outlooks.items():
        for warning in ahead.warnings:
            say(f"warning: {name}: {warning}", quiet=args.json)
    runs = len(screen.mixtures)
    created = not args.dry_run and confirm(f"create {runs:,} runs in {screen.path}?", yes=args.yes)
    if created:
        create_screen(screen)
    if args.json:
        print_json({"created": created, **plain})
    if not created:
        return _not_written(args)
    say(
        f"{screen.path}: {runs:,} runs; run each (`recipe run {screen.path}/{screen.mixtures[0].name}`, or "
        f"open it from your trainer), then `recipe screen rank {screen.path} --metric SET.NAME`",
        quiet=args.json,
    )
    place = quote(str(screen.path))
    say(f'all of them: for run in {place}/*/; do recipe run "$run"; done', quiet=args.json)
    return 0


def _rank(folder: Path, args: argparse.Namespace) -> int:
    ranking = _ranking(folder, args)
    if args.json:
        print_json(ranking.to_plain())
    else:
        print_tables([ranking_table(ranking.to_plain())])
        say(f"a proxy is a hint: confirm the best by `recipe screen confirm {folder} --target RUN@MANIFEST`")
    return 0


def _confirm(folder: Path, args: argparse.Namespace) -> int:
    if args.target is None:
        raise _wanted("--target", "the checkpoint of the target model", "write --target runs/big@12")
    if args.top < 1:
        raise _wanted("--top", "1 or more", "write --top 3")
    ranking = _ranking(folder, args)
    roots = (args.name_root, args.pools_root)
    target = find_origin(*split_place(args.target))
    branches = plan_confirmation(ranking, target, args.top, stage=args.stage, roots=roots)
    if not args.json:
        print_tables([ranking_table(ranking.to_plain())])
        print_tables(Text(line) for branch in branches for line in branch_lines(branch.to_plain()))
    created = not args.dry_run and confirm(f"create {len(branches)} branches?", yes=args.yes)
    if created:
        create_branches(branches)
    if args.json:
        told = [branch.to_plain() for branch in branches]
        print_json({"created": created, "ranking": ranking.to_plain(), "branches": told})
    if not created:
        return _not_written(args)
    for branch in branches:
        say(f"{branch.path}: created; go on with it by `recipe run {branch.path}`", quiet=args.json)
    return 0


def _not_written(args: argparse.Namespace) -> int:
    if args.dry_run:
        return 0
    say("nothing was written; --yes agrees without asking")
    return 1


def _ranking(folder: Path, args: argparse.Namespace) -> Ranking:
    if args.metric is None:
        raise _wanted("--metric", "SET.NAME, what to rank by", "write --metric validation.loss")
    way: Direction | None = args.way
    return rank_screen(folder, args.metric, direction=way, step=args.step)


def _folder(args: argparse.Namespace) -> Path:
    if len(args.words) != 2:
        verb = args.words[0]
        raise _wanted("DIR", "the folder of one screen", f"write recipe screen {verb} runs/screen …")
    return Path(args.words[1])


def _how(args: argparse.Namespace) -> How:
    """Where the mixtures come from: exactly one of three ways."""
    given = [name for name in ("grid", "dirichlet", "weights") if getattr(args, name) is not None]
    if len(given) != 1:
        raise _wanted(
            "--grid, --dirichlet, --weights",
            "exactly one of the three",
            "write --grid 10%, --dirichlet 64, or --weights mixtures.csv",
        )
    if args.weights is not None:
        return Table(path=args.weights)
    if args.grid is not None:
        step = _share("--grid", args.grid)
        if step <= 0:
            raise _wanted("--grid", "a step above 0%", "write --grid 10%")
        return Grid(step=step, least=_share("--least", args.least))
    try:
        concentration = parse_weight(args.concentration)
    except ValueError:
        concentration = Fraction(0)
    if not LEAST_CONCENTRATION <= concentration <= MOST_CONCENTRATION:
        expected = f"a number in {float(LEAST_CONCENTRATION)}..{MOST_CONCENTRATION}"
        raise _wanted("--concentration", expected, "write --concentration 10")
    return Draws(number=args.dirichlet, concentration=concentration, seed=args.seed, centre=args.centre)


def _share(option: str, text: str) -> Fraction:
    try:
        return parse_percent(text)
    except ValueError:
        raise _wanted(option, "percent text such as 10%", f"write {option} 10%") from None


def _wanted(option: str, expected: str, fix: str) -> RecipeError:
    return RecipeError.single("recipe screen", option, given="none, or another", expected=expected, fix=fix)
