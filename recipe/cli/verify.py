"""``recipe audit verify``: the acceptance test, of the program, a run's own data, or a package."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from recipe.audit.verify import Acceptance, Check
from recipe.cli.found import refuse_missing
from recipe.cli.options import add_json, add_pools_root, check_sources, number, split_words, whole
from recipe.cli.output import print_json, progress, say
from recipe.config import load_recipe
from recipe.errors import RecipeError
from recipe.integrations.acceptance import Sample, verify_package, verify_program, verify_run
from recipe.run.handover.receiving import is_package
from recipe.run.start import start_run

RECIPE_SUFFIXES = (".yaml", ".yml")
MARKS = {True: "ok", False: "FAILED", None: "not checked"}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what is verified."""
    parser.add_argument(
        "words",
        nargs="*",
        metavar="RUN|PACKAGE|RECIPE",
        help="a run's folder, or one that was handed over; or a recipe, with overrides, on its own pools; "
        "without it, the program itself on tiny documents",
    )
    parser.add_argument(
        "--sample",
        type=number(1),
        metavar="N",
        help="documents of a run that are put together again from all their pieces (default: 256)",
    )
    add_pools_root(parser)
    parser.add_argument(
        "--tokenizer",
        metavar="bytes|PATH",
        help="the pools' tokenizer; default: the recipe's",
    )
    parser.add_argument(
        "--sources",
        action="append",
        metavar="DIR|URL",
        help="a folder that held the texts which the pools were made from; may be given again",
    )
    parser.add_argument(
        "--seed", type=whole, metavar="N", help="of the sample, to repeat one; default: drawn anew each time"
    )
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify; 0 every claim that could be checked holds, 1 one does not."""
    acceptance = _verified(args)
    plain = acceptance.to_plain()
    if args.json:
        print_json(plain)
    else:
        print("\n".join(_lines(acceptance)))
    return 0 if acceptance.ok else 1


def _verified(args: argparse.Namespace) -> Acceptance:
    if not args.words:
        _refuse(args, "without a run", ("sample", "pools_root", "sources", "seed"))
        if Path("verify/run.yaml").is_file():
            say("the run folder ./verify is audited by `recipe audit ./verify`", quiet=args.json)
        return verify_program(args.tokenizer)
    source, overrides = split_words(args.words)
    check_sources("recipe audit verify", args.sources or ())
    path = Path(source)
    if path.is_dir() and not overrides and is_package(path):
        _refuse(args, "with a package", ("sample", "tokenizer", "sources", "seed"))
        return verify_package(path, pools_root=args.pools_root)
    if path.is_dir() or (path.is_file() and path.suffix not in RECIPE_SUFFIXES):
        if path.is_file() or overrides:
            raise _no_folder(path, overrides)
        return _of_run(path, args)
    return _of_recipe(source, overrides, args)


def _no_folder(path: Path, overrides: list[str]) -> RecipeError:
    if overrides:
        fix = "leave the overrides out: what a run was started with is on its record"
        return RecipeError.single(
            "recipe audit verify", str(path), given=f"a run with {overrides[0]}", expected="a run", fix=fix
        )
    return RecipeError.single(
        "recipe audit verify",
        str(path),
        given="a file",
        expected="a folder: a run's, or one that was handed over; or a recipe (.yaml)",
        fix="unpack an archive first (tar -xf; a .tar.zst needs tar --zstd), then name the folder",
    )


def _of_recipe(source: str, overrides: list[str], args: argparse.Namespace) -> Acceptance:
    """A recipe on its own pools: as a run that is started in a folder of its own, and is gone afterwards."""
    recipe = load_recipe(source, overrides)
    if args.pools_root is not None:
        recipe = recipe.model_copy(update={"pools_root": str(args.pools_root)})
    refuse_missing(recipe, source)
    with TemporaryDirectory(prefix="recipe-verify-") as folder:
        path = Path(folder) / "run"
        start_run(recipe, path).close()
        return replace(_of_run(path, args), subject=f"{source}, on its pools")


def _of_run(path: Path, args: argparse.Namespace) -> Acceptance:
    with progress(quiet=args.json) as bars:
        task = bars.add_task("verifying", total=None, note="rows")

        def watch(done: int, total: int) -> None:
            bars.update(task, completed=done, total=total)

        return verify_run(
            path,
            sample=Sample(seed=args.seed, **({} if args.sample is None else {"documents": args.sample})),
            pools_root=args.pools_root,
            tokenizer=args.tokenizer,
            sources=args.sources or (),
            progress=watch,
        )


def _refuse(args: argparse.Namespace, when: str, names: tuple[str, ...]) -> None:
    """Say which options mean nothing here."""
    given = [f"--{name.replace('_', '-')}" for name in names if getattr(args, name) is not None]
    if given:
        raise RecipeError.single(
            "recipe audit verify",
            ", ".join(given),
            given=when,
            expected="a run's folder with it",
            fix="leave it out, or name a run",
        )


def _lines(acceptance: Acceptance) -> list[str]:
    """One line a claim, its findings below it, and the verdict."""
    width = max(len(check.name) for check in acceptance.checks)
    lines = [f"acceptance of {acceptance.subject}"]
    for check in acceptance.checks:
        lines.append(f"  {_mark(check):<12}{check.name:<{width}}  {check.said}")
        for finding in check.findings:
            lines += [
                f"      {finding.where}",
                f"        expected  {finding.expected}",
                f"        observed  {finding.observed}",
            ]
    if acceptance.seed is not None:
        lines.append(f"steps and documents were chosen with seed {acceptance.seed}")
    return [*lines, _verdict(acceptance)]


def _mark(check: Check) -> str:
    return MARKS[check.ok] if check.applies else "no claim"


def _verdict(acceptance: Acceptance) -> str:
    checks, failed = acceptance.checks, acceptance.failed
    if failed:
        return f"{len(failed)} of {len(checks)} claims failed: {', '.join(failed)}"
    left = [check.name for check in checks if check.is_open]
    if not acceptance.ok:
        return f"no claim could be checked: {', '.join(left)}"
    if left:
        return f"every claim that could be checked holds; not checked here: {', '.join(left)}"
    return "every claim holds"
