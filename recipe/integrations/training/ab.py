"""Two mixtures held against each other, from text on this machine to a figure: ``python -m …training.ab``.

A trunk is trained half-way. From its checkpoint branch A keeps the mixture, and branch B gives the group
of code pools five points of the English share, for the same steps and over the same seeds; then both are
compared.
What it does can be done with the commands that it prints. ``--small`` and ``--tokens`` make it shorter.
"""

from __future__ import annotations

import argparse
import shlex
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from recipe.config import load_recipe
from recipe.errors import RecipeError
from recipe.integrations.training.loop import train
from recipe.mixing.curriculum import Curriculum
from recipe.pools import Pool
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.opening import open_run
from recipe.run.start import resume_or_start
from recipe.text.documents import Document
from recipe.text.found import FOUND_VERSION, FoundPool, found_sources
from recipe.text.inputs import MadeInput
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_documents
from recipe.text.tokenizers import ByteTokenizer

POOLS = Path("pools/ab")
"""Where the recipe ``ab`` looks for them."""
HELD_OUT = 8
"""One document of so many is held out, by the hash of its id: in whatever order they come."""
MORE_CODE = "stages.base.quotas.code_all=20%"
SMALL = (
    "stages.base.tokens=128Ki",
    "stages.base.chunk=32Ki",
    "trainer.layers=1",
    "trainer.width=32",
    "trainer.heads=2",
    "trainer.checkpoint_steps=4",
    "trainer.validation_sequences=8",
)
"""What ``--small`` changes: an eighth of the tokens through a smaller model; it tells no mixtures apart."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Trial:
    """The comparison to be."""

    runs: Path
    """Folder of the runs."""
    branch_step: int | None = None
    """Step of the trunk that the branches start from; default: half-way."""
    seeds: tuple[int, ...] = (1, 2, 3)
    overrides: tuple[str, ...] = ()
    """Of the recipe ``ab``."""
    say: Callable[[str], None] = print


def make_pools(folder: Path) -> None:
    """The pools of the recipe ``ab`` and, in ``held``, those that nothing trains on; what is there stays."""
    for found in found_sources():
        _prepare(found, folder / found.name, held=False).close()
        _prepare(found, folder / "held" / found.name, held=True).close()


def _prepare(found: FoundPool, path: Path, *, held: bool) -> Pool:
    def documents() -> Iterator[Document]:
        return (document for document in found.documents() if _is_held(document) == held)

    identity = {"origin": found.origin, "licence": found.licence, "found_version": FOUND_VERSION}
    split = {"split": "held out" if held else "training", "one_of": HELD_OUT}
    return prepare_documents(MadeInput(documents, identity | split), path, ByteTokenizer(), PrepareOptions())


def _is_held(document: Document) -> bool:
    digest = blake2b(f"{document.source}\n{document.id}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "little") % HELD_OUT == 0


def try_mixtures(trial: Trial) -> list[Path]:
    """Train the trunk and its branches, or go on with what is there.

    Returns:
        The folders of the branches: A for every seed, then B.
    """
    trunk = trial.runs / "trunk"
    words = shlex.join(["ab", *trial.overrides])
    with resume_or_start(load_recipe("ab", list(trial.overrides)), trunk) as run:
        step = run.num_steps // 2 if trial.branch_step is None else trial.branch_step
        trial.say(f"recipe run {words} --name {trunk.name} --runs-dir {trial.runs}    # to step {step}")
        train(run, stop_step=step)
    seeds = ",".join(map(str, trial.seeds))
    origin = f"{trunk}@step:{step}"
    for name, words in (("A", ""), ("B", f" {MORE_CODE} --from english")):
        trial.say(f"recipe branch {origin} {name} -m seed={seeds}{words} --yes")
    paths = []
    for wish in _wishes(trial.seeds):
        path = trial.runs / wish.name
        if not path.exists():
            branch_run(origin, wish)
        trial.say(f"recipe run {path}")
        with open_run(path) as run:
            train(run)
        paths.append(path)
    return paths


def _wishes(seeds: Sequence[int]) -> Iterator[Wish]:
    for name in ("A", "B"):
        for seed in seeds:
            changes = (MORE_CODE,) if name == "B" else ()
            giver = "english" if name == "B" else None
            yield Wish(name=f"{name}-{seed}", overrides=(f"seed={seed}", *changes), from_pool=giver)


def _trial(args: argparse.Namespace) -> Trial:
    """The comparison that the words ask for; what cannot be one is refused before any pool is made."""
    overrides: tuple[str, ...] = SMALL if args.small else ()
    size = "-small" if args.small else ""
    if args.tokens is not None:
        size, overrides = f"-{args.tokens}", (f"stages.base.tokens={args.tokens}",)
    if Curriculum.from_recipe(load_recipe("ab", list(overrides))).num_steps < 2:
        expected, fix = "two steps or more, half for the trunk", "give more tokens, such as 64Ki"
        raise RecipeError.single("ab", "--tokens", given=args.tokens, expected=expected, fix=fix)
    runs = args.runs if args.runs is not None else Path(f"runs/ab{size}")
    return Trial(runs=runs, seeds=tuple(args.seeds), overrides=overrides)


def main(argv: Sequence[str] | None = None) -> int:
    """Pools, trunk and branches, in the working directory; says how to compare them."""
    parser = argparse.ArgumentParser(prog="python -m recipe.integrations.training.ab", description=__doc__)
    parser.add_argument("--runs", type=Path, help="default: runs/ab, with its size where that is another")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="default: 1 2 3")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--tokens", help="of every run, such as 256Ki; branches start half-way (default: 1Mi)")
    size.add_argument("--small", action="store_true", help=f"for a try: {' '.join(SMALL)}")
    args = parser.parse_args(argv)
    try:
        trial = _trial(args)
        make_pools(POOLS)
        paths = try_mixtures(trial)
    except RecipeError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"recipe compare {' '.join(map(str, paths))} --no-worse-than english.loss=0.05 --figure ab.svg")
    return 0


if __name__ == "__main__":
    sys.exit(main())
