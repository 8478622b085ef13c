"""``recipe new``: a commented recipe from the pools in a folder, or from a Megatron blend."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

from recipe.cli.new_choice import choose_pools
from recipe.cli.output import say
from recipe.config.blend import names_of, read_blend
from recipe.config.draft import Draft, DraftPool, blend_notes, blend_shares, draft_text, natural_quotas
from recipe.config.pool_sets import UNFINISHED
from recipe.errors import RecipeError
from recipe.maths.amounts import parse_amount
from recipe.maths.shares import parse_weight
from recipe.pools import Pool, open_pool

_UNKNOWN_LENGTH = 10**9
UNFINISHED_WHY = "never finished, or being made now"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare where the pools or the blend are, and where the recipe goes."""
    parser.add_argument(
        "pools", nargs="?", type=Path, metavar="POOLS", help="a folder of pools (default: pools)"
    )
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the recipe here; default: print it")
    parser.add_argument("--yes", action="store_true", help="replace the output file if there is one")
    blend = parser.add_argument_group("from a Megatron blend")
    blend.add_argument(
        "--megatron-blend",
        type=Path,
        metavar="FILE",
        help="weights and prefixes as after --data-path, or the JSON of --per-split-data-args-path",
    )
    blend.add_argument("--split", metavar="969,30,1", help="the --split of the Megatron run")
    blend.add_argument("--seq-length", metavar="N", default="4096", help="its --seq-length (default: 4096)")
    blend.add_argument("--global-batch-size", metavar="N", default="1024", help="its batch (default: 1024)")
    blend.add_argument(
        "--train-samples", metavar="N", help="its --train-samples, from which the length follows"
    )
    blend.add_argument("--eod", metavar="ID", help="token id that ends a document in the data sets")


def execute(args: argparse.Namespace) -> int:
    """Write the recipe; what changes in meaning goes to stderr as well."""
    if args.megatron_blend is not None and args.pools is not None:
        fix = "leave one of them out"
        raise _fault("POOLS", f"{args.pools} and --megatron-blend", "pools or a blend", fix)
    draft = (
        _from_blend(args) if args.megatron_blend is not None else _from_folder(args.pools or Path("pools"))
    )
    text = draft_text(draft)
    if args.megatron_blend is not None:
        for note in draft.notes:
            say(f"- {note}")
    if args.out is None:
        sys.stdout.write(text)
        return 0
    if args.out.exists() and not args.yes:
        fix = "choose another name, or add --yes to replace it"
        raise _fault("--out", args.out, "a file that is not there yet", fix)
    if not args.out.parent.is_dir():
        fix = "make that folder first, or choose another name"
        raise _fault("--out", args.out, f"a file in a folder that is there, not {args.out.parent}", fix)
    args.out.write_text(text, encoding="utf-8")
    say(f"wrote {args.out}; next: recipe plan {args.out}")
    return 0


def _fault(where: str, given: object, expected: str, fix: str) -> RecipeError:
    return RecipeError.single("recipe new", where, given=str(given), expected=expected, fix=fix)


def _from_blend(args: argparse.Namespace) -> Draft:
    path: Path = args.megatron_blend
    if not path.is_file():
        raise _fault("--megatron-blend", path, "a file", "name the file that holds the blend")
    blend = read_blend(path.read_text(encoding="utf-8"), str(path))
    context, sequences = _amount(args, "seq_length"), _amount(args, "global_batch_size")
    samples = _amount(args, "train_samples") if args.train_samples is not None else None
    eos = _amount(args, "eod") if args.eod is not None else None
    shares, groups = blend_shares(blend)
    notes = blend_notes(blend, _split(args.split) if args.split is not None else None, eos)
    return Draft(
        title=f"Made from the Megatron blend {path.name}. What means something else here:",
        pools={name: DraftPool(path=prefix, eos=eos) for name, prefix in blend.prefixes.items()},
        shares=shares,
        groups=groups,
        tokens=samples * context if samples is not None else _UNKNOWN_LENGTH,
        context=context,
        sequences=sequences,
        length_note="--train-samples x --seq-length"
        if samples
        else "set it: a blend does not say how long a run is",
        notes=notes,
    )


def _amount(args: argparse.Namespace, name: str) -> int:
    given, option = getattr(args, name), f"--{name.replace('_', '-')}"
    try:
        amount = parse_amount(given)
    except ValueError as error:
        raise _fault(option, given, "a whole number", str(error)) from None
    if amount < 1 and name != "eod":
        raise _fault(option, given, "1 or more", f"leave {option} out, or give the number of the run")
    return amount


def _split(text: str) -> list[Fraction]:
    try:
        parts = [parse_weight(part) for part in text.split(",")]
        if min(parts) < 0 or not any(parts):
            raise ValueError("a split needs a part above 0 and none below")
    except ValueError as error:
        raise _fault("--split", text, "numbers such as 969,30,1", str(error)) from None
    return parts


def _from_folder(folder: Path) -> Draft:
    places = pool_places(folder)
    if not places:
        fix = "prepare one first: recipe prepare; or name the folder that holds your pools"
        given = f"{folder} without pools" if folder.is_dir() else folder
        raise _fault("POOLS", given, "a folder that holds pools, or Megatron .bin/.idx pairs", fix)
    found = {str(place): open_pool(place, place.name) for place in places}
    chosen = choose_pools(found)
    kept = {path: pool for path, pool in found.items() if path not in chosen.left_out}
    if not kept:
        fix = "prepare others, or write the recipe by hand"
        given = "; ".join(f"{path}: {why}" for path, why in chosen.left_out.items())
        raise _fault("POOLS", given, "tokens to train on in at least one pool", fix)
    names = names_of(list(kept))
    stock = {name: pool.stock for name, pool in zip(names, kept.values(), strict=True)}
    total = sum(stock.values())
    context, sequences = _shape(total)
    return Draft(
        title=f"Made from the pools in {folder}: one reading of everything, in proportion to stock.",
        pools={name: DraftPool(path=path, stock=stock[name]) for name, path in zip(names, kept, strict=True)},
        shares=natural_quotas(stock),
        tokens=max(total, context),
        context=context,
        sequences=sequences,
        length_note="positions: all tokens once; with padding a little less",
        vocab_size=_vocab_size(list(kept.values())),
        notes=[
            "Change what you like, then: recipe plan FILE, recipe run FILE",
            *_as_set(names, list(map(Path, kept))),
        ],
        left_out=chosen.left_out | {str(path): UNFINISHED_WHY for path in unfinished_places(folder)},
        held_out=dict(zip(names_of(chosen.held_out), chosen.held_out, strict=True)),
    )


def _as_set(names: Sequence[str], places: Sequence[Path]) -> list[str]:
    """How one line names all the pools, where they are the folders of one."""
    parent = places[0].parent
    folders = [child for child in parent.iterdir() if child.is_dir() and not child.name.startswith(".")]
    is_set = len(places) > 1 and set(folders) == set(places)
    if not is_set or list(names) != sorted(place.name for place in places):
        return []
    return [
        f'One line makes the same pools, and those that come later: pools: {{"*": {{path: {parent}/*}}}}; '
        'quotas of "*" are in proportion to stock'
    ]


def pool_places(folder: Path) -> list[Path]:
    """The pools in a folder and below, by name: own folders, folders of pairs, single pairs."""
    if not folder.is_dir():
        return []
    if (folder / "card.json").is_file():
        return [folder]
    children = [child for child in _children(folder) if not child.name.endswith(UNFINISHED)]
    places: list[Path] = []
    for child in children:
        if any(child.glob("*/**/card.json")) and not (child / "card.json").is_file():
            places += pool_places(child)
        elif (child / "card.json").is_file() or any(child.rglob("*.idx")):
            places.append(child)
    pairs = sorted(
        file.with_suffix("") for file in folder.glob("*.idx") if file.with_suffix(".bin").is_file()
    )
    return places + pairs


def _children(folder: Path) -> list[Path]:
    return sorted(child for child in folder.iterdir() if child.is_dir() and not child.name.startswith("."))


def unfinished_places(folder: Path) -> list[Path]:
    """Folders in a folder and below that pools are written in, or were: pools to be."""
    if (folder / "card.json").is_file():
        return []
    return [
        place
        for child in _children(folder)
        for place in ([child] if child.name.endswith(UNFINISHED) else unfinished_places(child))
    ]


def _shape(total: int) -> tuple[int, int]:
    """A context and a batch that give a small pool some steps and a large one large batches."""
    context = next(
        (size for size, least in ((4096, 10**9), (2048, 10**6), (512, 10**5)) if total >= least), 128
    )
    sequences = 1
    while sequences < 1024 and 2 * sequences * context * 100 <= total:
        sequences *= 2
    return context, sequences


def _vocab_size(pools: Sequence[Pool]) -> int | None:
    """The vocabulary that fits all pools; None where a pool does not say."""
    sizes = [pool.card.vocab_size for pool in pools]
    known = [size for size in sizes if size is not None]
    return max(known) if known and len(known) == len(sizes) else None
