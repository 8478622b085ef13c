"""The states that steps go on from where the course of a run turns, and what a turn must leave alone."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from typing import Any

from recipe.audit.intent import Intent
from recipe.audit.layout import StageLayout
from recipe.audit.schedule import Contest, carry
from recipe.audit.state import Cursor, PoolState, State

Difference = tuple[str, Any, Any]
"""Key, what it must be, what it is."""
_FOREVER = ("seed", "count", "labels", "tokenizer", "start", "simulate_budget")
"""Keys of a recipe that hold from a run's first step to its last."""
OF_BLOCKS = (
    *("block_units", "eos", "bos", "dtype", "column", "documents", "boundaries"),
    *("of", "where", "min_tokens", "max_tokens", "by"),
)
"""Keys of a pool that fix what is in its blocks."""
_OF_A_POOL = (*OF_BLOCKS, "renamed_from")
"""Keys of a pool that hold as long as it is read."""


def amended(at: State, old: Intent, new: Intent, renewed: Collection[str] = ()) -> tuple[State, bool]:
    """The state from which the steps go on under another recipe: what was given stays given.

    Args:
        at: where the old one ends.
        old: the recipe in force so far.
        new: the one from here on.
        renewed: pools that can be read again although they ran dry.

    Returns:
        the state, and whether the leg goes on: the shares are the same, and nobody who left comes back.

    Raises:
        Malformed: a debt in ``at`` is none of its leg.
        ValueError: the recipes have not the same stages up to here.
    """
    known = dict(zip(old.names, at.pools, strict=True))
    pools = [known.get(name, PoolState()) for name in new.names]
    layout, inside = new.layouts[at.stage], _is_inside(at.step, old.layouts[at.stage], new.layouts[at.stage])
    goes_on = (
        inside and _shares_at(at, old) == _shares_at(at, new) and not _comes_back(at, (old, new), renewed)
    )
    if not goes_on:
        debts = _carried(at, old, new) if inside else [0] * len(pools)
        pools = [replace(pool, debt=debt) for pool, debt in zip(pools, debts, strict=True)]
    base = replace(
        at,
        chunk=layout.closed_by(at.step) if at.step > layout.first_step else 0,
        counted=at.counted if goes_on else 0,
        left=tuple(new.names.index(old.names[pool]) for pool in at.left) if goes_on else (),
        ended=False,
        pools=tuple(pools),
    )
    return base, goes_on


def _is_inside(step: int, *layouts: StageLayout) -> bool:
    return 0 < step < min(layout.stop_step for layout in layouts)


def _shares_at(at: State, intent: Intent) -> Mapping[str, int]:
    """The shares that the last step before a state was served by; with zeros left out."""
    layout = intent.layouts[at.stage]
    return _nonzero(intent.names, layout.legs[layout.leg_before(at.step)].parts)


def _comes_back(at: State, recipes: tuple[Intent, Intent], renewed: Collection[str]) -> bool:
    """Whether a pool that left the stage may be read again."""
    for name in (recipes[0].names[pool] for pool in at.left):
        rules = [(intent.recipe.exhaustion(name), intent.recipe.epochs_allowed(name)) for intent in recipes]
        if name in renewed or rules[0] != rules[1]:
            return True
    return False


def _carried(at: State, old: Intent, new: Intent) -> list[int]:
    """Debts as the new shares count them, those of pools that the old recipe did not have at zero."""
    before = old.contest(at)
    layout = new.layouts[at.stage]
    after = Contest(layout.legs[layout.leg_before(at.step)].parts, layout.context)
    parts = dict(zip(old.names, before.parts, strict=True))
    debts = {name: pool.debt for name, pool in zip(old.names, at.pools, strict=True)}
    known = Contest(tuple(parts.get(name, 0) for name in new.names), layout.context)
    return carry(known, after, [debts.get(name, 0) for name in new.names], at.counted)


def reopened(at: State, intent: Intent) -> State:
    """The state, from which steps go on: where the run had ended, the chunk it ended in is open again."""
    return replace(at, ended=False, chunk=intent.layouts[at.stage].closed_by(at.step)) if at.ended else at


def read_on(before: PoolState, after: PoolState) -> PoolState:
    """What a pool gave, with the place and the losses of another state of it."""
    return replace(before, cursor=after.cursor, held=after.held, dropped=after.dropped)


def at_the_beginning(at: State, pools: set[int]) -> State:
    """The state with some pools at the beginning of their reading."""
    return replace(
        at,
        pools=tuple(
            replace(pool, cursor=Cursor(), held=()) if index in pools else pool
            for index, pool in enumerate(at.pools)
        ),
    )


def behind(old: Intent, new: Intent, at: State) -> list[Difference]:
    """What a recipe has otherwise than the one before it that lies behind a state, or never changes."""
    found = [*_of_the_run(old, new)]
    stages = list(old.recipe.stages)[: at.stage + 1]
    if (ahead := list(new.recipe.stages)[: len(stages)]) != stages:
        return [*found, ("stages", stages, ahead)]
    return found + list(_of_stages(old, new, at))


def _of_the_run(old: Intent, new: Intent) -> Iterator[Difference]:
    for key in _FOREVER:
        yield from _unlike(key, getattr(old.recipe, key), getattr(new.recipe, key))
    kept = [name for name in new.names if name in old.names]
    yield from _unlike("pools", list(old.names), kept)
    for name in kept:
        for key in _OF_A_POOL:
            one, other = (getattr(intent.recipe.pools[name], key) for intent in (old, new))
            yield from _unlike(f"pools.{name}.{key}", one, other)


def _of_stages(old: Intent, new: Intent, at: State) -> Iterator[Difference]:
    """Rules, batches and accounting of the stages up to a state; shares and ends of those that are over."""
    for index, (was, becomes) in enumerate(zip(old.layouts, new.layouts, strict=False)):
        where = f"stages.{was.name}"
        if index > at.stage:
            return
        for name in (name for name in old.names if name in new.names):
            # whose documents a pool leaves out is held against the pools, where they are there
            one, other = (replace(intent.recipe.rule(was.name, name), behind=()) for intent in (old, new))
            yield from _unlike(f"{where}: rule of {name}", one, other)
        yield from _unlike(f"{where}.chunk", was.chunk, becomes.chunk)
        last = min(at.step, was.stop_step)
        if becomes.stop_step < last:
            yield f"{where}: its last step", f"at least {last}", becomes.stop_step
            continue
        yield from _unlike(f"{where}: batches", _batches(was, last), _batches(becomes, last))
        if last == was.stop_step:
            yield from _unlike(f"{where}: its last step", last, becomes.stop_step)
            yield from _unlike(f"{where}: shares", _shares(old, index), _shares(new, index))
            yield from _unlike(f"{where}: objective", _objective(old, was.name), _objective(new, was.name))


def _batches(layout: StageLayout, stop: int) -> list[list[int]]:
    """First step, steps, first position and size of the batches before a step."""
    return [
        [p.first_step, min(p.num_steps, stop - p.first_step), p.first_position, p.batch]
        for p in layout.plateaus
        if p.first_step < stop
    ]


def _shares(intent: Intent, stage: int) -> list[Any]:
    """The legs of a stage: where each begins, and the shares that are not zero."""
    legs = intent.layouts[stage].legs
    return [(leg.begin, _nonzero(intent.names, leg.parts)) for leg in legs]


def _objective(intent: Intent, stage: str) -> dict[str, str] | None:
    """What the loss of a stage counts, of the pools of which it counts something."""
    objective = intent.recipe.objective(stage)
    return None if objective is None else {name: str(part) for name, part in objective.items() if part}


def _nonzero(names: tuple[str, ...], parts: tuple[int, ...]) -> Mapping[str, int]:
    return {name: part for name, part in zip(names, parts, strict=True) if part}


def _unlike(key: str, one: Any, other: Any) -> Iterator[Difference]:
    if one != other:
        yield key, one, other
