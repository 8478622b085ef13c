"""What must hold of a pool's transform: markers that are nothing else, and room for them in every row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recipe.config.drawing import draws_from
from recipe.config.model import PoolConfig
from recipe.config.partial import run_checks
from recipe.config.problems import Fault, nearest
from recipe.config.recipe import Recipe
from recipe.config.stage import Stage
from recipe.config.transform import MARKERS, FimConfig, TransformConfig

SHORTEST_CONTEXT = MARKERS + 2
"""Positions: the markers, and a body of two tokens or of one with its mark."""


def transforms(recipe: Recipe) -> Iterator[Fault]:
    """Faults of the markers of every pool."""
    for name, pool in recipe.pools.items():
        yield from run_checks([_markers], name, pool, recipe)


def _markers(name: str, pool: PoolConfig, recipe: Recipe) -> Iterator[Fault]:
    if pool.transform is not None:
        place = ("pools", name, "transform", "fim")
        yield from (fault.below(place) for fault in _own_markers(pool.transform, pool, recipe))


def _own_markers(transform: TransformConfig, pool: PoolConfig, recipe: Recipe) -> Iterator[Fault]:
    vocab_size = recipe.model.vocab_size if recipe.model is not None else None
    yield from marker_faults(transform.fim, {"bos": pool.bos, "eos": pool.eos}, vocab_size)


def marker_faults(
    fim: FimConfig, marks: dict[str, int | None], vocab_size: int | None = None
) -> Iterator[Fault]:
    """Faults of three markers, as far as their ids are known.

    Args:
        fim: whose markers.
        marks: ids that begin and end the pool's documents, by name.
        vocab_size: of the model, if it is known.
    """
    known: dict[int | str, str] = {
        mark: f"the pool's {key}" for key, mark in marks.items() if mark is not None
    }
    for key, marker in fim.markers.items():
        if marker in known:
            fix = "write the id of a token that stands for nothing else"
            yield Fault((key,), marker, f"a token that is not {known[marker]}", fix)
        elif vocab_size is not None and isinstance(marker, int) and marker >= vocab_size:
            fix = "write an id that the model has a row for, or raise model.vocab_size"
            yield Fault((key,), marker, f"0..{vocab_size - 1} (model.vocab_size)", fix)
        known.setdefault(marker, f"the {key} marker")


def transform_stage_faults(stage_name: str, stage: Stage, recipe: Recipe) -> Iterator[Fault]:
    """Faults of a stage's own transforms, and of one that draws from pools whose pieces are transformed."""
    own = stage.transform or {}
    for name in own:
        yield from run_checks([_own_of_a_pool], name, stage_name, own, recipe)
    for name, pool in recipe.pools.items():
        if (name not in own and pool.transform is None) or not draws_from(recipe, stage_name, name):
            continue
        where = f"stages.{stage_name}.transform.{name}" if name in own else f"pools.{name}.transform"
        for fault in run_checks([_pieces_are_whole, _leaves_room], (name, where), pool, stage):
            yield Fault(fault.place, fault.given, f"{fault.expected}, in stage {stage_name}", fault.fix)


def _own_of_a_pool(
    name: str, stage_name: str, own: Mapping[str, TransformConfig], recipe: Recipe
) -> Iterator[Fault]:
    place = ("stages", stage_name, "transform", name)
    if name not in recipe.pools:
        expected = f"a pool of the recipe: {', '.join(recipe.pools)}"
        yield Fault(place, name, expected, nearest(name, recipe.pools))
        return
    for fault in _own_markers(own[name], recipe.pools[name], recipe):
        yield fault.below((*place, "fim"))


def _pieces_are_whole(named: tuple[str, str], pool: PoolConfig, stage: Stage) -> Iterator[Fault]:
    """Documents that are joined before they are cut have no pieces that could be transformed."""
    (name, where), place = named, ("stages", stage.name, "packing")
    if stage.packing.method == "concat":
        fix = f"use packing best_fit or none, or leave out {where}"
        expected = f"best_fit or none: the pieces of pool {name} are filled in the middle"
        yield Fault((*place, "method"), "concat", expected, fix)
    elif stage.packing.cross_labels:
        fix = f"use cross_labels: false, or leave out {where}"
        expected = f"false: the pieces of pool {name} are filled in the middle"
        yield Fault((*place, "cross_labels"), True, expected, fix)


def _leaves_room(named: tuple[str, str], pool: PoolConfig, stage: Stage) -> Iterator[Fault]:
    """Every piece and the markers fit in a row, whichever pieces the hashes choose."""
    (name, where), own = named, pool.slicing
    slicing = own.over(stage.declared_slicing) if own is not None else stage.declared_slicing
    shortest, of = SHORTEST_CONTEXT + slicing.marks, " and BOS and EOS" if slicing.marks else ""
    if stage.context < shortest:
        fix = f"raise the context to {shortest} or more, or leave out {where}"
        expected = f"{shortest} or more (the markers of {where}{of}, and text)"
        yield Fault(("stages", stage.name, "context"), stage.context, expected, fix)
        return
    room = stage.context - MARKERS - slicing.marks
    place = ("pools", name, "slicing")
    window = slicing.window
    if window is not None and stage.context - slicing.marks >= window > room:
        fix = f"write pools.{name}.slicing.window={room}, or leave the window out: it is {room} then"
        expected = f"1..{room} (the context, less the {MARKERS} markers of the pool's transform{of})"
        yield Fault((*place, "window"), window, expected, fix)
    if window is not None:
        return
    stride = slicing.stride
    strides = stride.items() if isinstance(stride, dict) else [("", stride)]
    values = [(("stride", region) if region else ("stride",), given) for region, given in strides]
    for key, given in (*values, (("min_tail",), slicing.min_tail)):
        if given is not None and stage.context - slicing.marks >= given > room:
            fix = f"write pools.{name}.slicing.{'.'.join(key)}={room}, or less"
            expected = (
                f"at most {room} (the window: the context, less the markers of the pool's transform{of})"
            )
            yield Fault((*place, *key), given, expected, fix)


TRANSFORM_CHECKS = (transforms,)
