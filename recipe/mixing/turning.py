"""Where a run turns: the state that steps go on from once the recipe in force has changed.

What was spent stays spent, every pool's reading goes on where it is, and what a pool is ahead or
behind of its share goes on with it. A recipe may change what lies ahead; what lies behind is on
record and stays as it is.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from recipe.config import Recipe, Rule
from recipe.config.files import READ_KEYS
from recipe.config.partial import Model
from recipe.config.slicing import REGIONS, write_duplicates
from recipe.config.view import VIEW_KEYS
from recipe.errors import Problem
from recipe.maths.deadlines import Race, carry
from recipe.maths.shares import percent_text
from recipe.mixing.curriculum import Curriculum, StageLayout
from recipe.mixing.snapshot import PoolState, Snapshot
from recipe.pools import Pool
from recipe.sequences.ownership import rule_for

_OF_A_POOL = ("block_units", *READ_KEYS, "renamed_from")
"""Keys that fix what is in a pool's blocks."""
BRANCH = "what is behind is on record: branch the run to have it otherwise"


def base_snapshot(at: Snapshot, old: Recipe, new: Recipe, renewed: Collection[str] = ()) -> Snapshot:
    """The state that the steps from ``at.step`` on go on from under another recipe.

    Where the shares in force stay as they are, so does the leg, to the last fraction of a token: a
    recipe that changes nothing of the stage in progress changes none of its batches.

    Args:
        at: the state under the recipe in force so far.
        old: that recipe, settled.
        new: the one from here on, settled; nothing behind ``at`` differs (:func:`behind_problems`).
        renewed: pools that can be read again although they left the stage: they have a share again.
    """
    before = dict(zip(old.pools, at.pools, strict=True))
    was, becomes = _layout(old, at.stage), _layout(new, at.stage)
    debts, counted, left = [0] * len(new.pools), 0, tuple[int, ...]()
    if 0 < at.step < min(was.stop_step, becomes.stop_step):
        leg = max(at.step - 1, was.first_step)
        names = (tuple(old.pools), tuple(new.pools))
        race, ahead = was.legs[was.leg(leg)].race, becomes.legs[becomes.leg(leg)].race
        debts = [before[name].debt if name in before else 0 for name in new.pools]
        if _for_pools(race, *names) == ahead and _stay_away(at, old, new, renewed):
            counted, left = at.counted, tuple(names[1].index(names[0][pool]) for pool in at.left)
        else:
            for pool in at.left:
                race = race.without(pool)
            debts = carry(_for_pools(race, *names), ahead, debts, at.counted)
    return replace(
        at,
        chunk=chunks_closed(becomes, Curriculum.from_recipe(new), at.step),
        counted=counted,
        left=left,
        ended=False,
        pools=tuple(
            replace(before.get(name, PoolState()), debt=debt)
            for name, debt in zip(new.pools, debts, strict=True)
        ),
    )


def carried_tokens(at: Snapshot, recipe: Recipe) -> list[int]:
    """By pool: whole tokens that it is ahead (+) or behind (-) in the leg of a state; they sum to 0."""
    layout = _layout(recipe, at.stage)
    if not 0 < at.step < layout.stop_step:
        return [0] * len(at.pools)
    race = layout.legs[layout.leg(max(at.step - 1, layout.first_step))].race
    for pool in at.left:
        race = race.without(pool)
    debts = carry(race, race, [pool.debt for pool in at.pools], at.counted)
    return [debt // race.denominator for debt in debts]


def _stay_away(at: Snapshot, old: Recipe, new: Recipe, renewed: Collection[str]) -> bool:
    """Whether the pools that left the stage would leave it again at once."""
    left = [list(old.pools)[pool] for pool in at.left]
    return not any(
        name in renewed
        or old.exhaustion(name) != new.exhaustion(name)
        or old.epochs_allowed(name) != new.epochs_allowed(name)
        for name in left
    )


def reopened(at: Snapshot, recipe: Recipe) -> Snapshot:
    """A state from which steps go on, where the run had ended too: the chunk it ended in is open again."""
    if not at.ended:
        return at
    curriculum = Curriculum.from_recipe(recipe)
    return replace(at, ended=False, chunk=chunks_closed(curriculum.stages[at.stage], curriculum, at.step))


def chunks_closed(layout: StageLayout, curriculum: Curriculum, step: int) -> int:
    """Chunks of a stage that are closed once the steps before ``step`` are consumed."""
    if step <= layout.first_step:
        return 0
    done = curriculum.positions_at(step) - layout.first_position
    full = done // layout.chunk
    if step < layout.stop_step:
        return full
    before = curriculum.positions_at(step - 1) - layout.first_position
    return full + (before >= full * layout.chunk)


def _layout(recipe: Recipe, stage: int) -> StageLayout:
    return Curriculum.from_recipe(recipe).stages[stage]


def _for_pools(race: Race, old: tuple[str, ...], new: tuple[str, ...]) -> Race:
    """The same shares, in the order of other pools; pools that were not there have none."""
    parts = dict(zip(old, race.parts, strict=True))
    return replace(race, parts=tuple(parts.get(name, 0) for name in new))


def behind_problems(
    old: Recipe, new: Recipe, at: Snapshot, pools: Mapping[str, Pool] | None = None
) -> list[Problem]:
    """What a recipe changes that lies behind a state, or that a run cannot change at all.

    ``pools`` are the new recipe's: in them it is looked up whether pools that share a folder share documents.
    """
    found = [*_of_the_run(old, new), *_of_pools(old, new)]
    names = list(old.stages)[: at.stage + 1]
    if list(new.stages)[: len(names)] != names:
        given = ", ".join(list(new.stages)[: len(names)])
        expected = f"{', '.join(names)}: the stages up to step {at.step}, in their order"
        return [*found, Problem("stages", given or "none", expected, BRANCH)]
    finished = at.step == _layout(old, at.stage).stop_step
    for index, name in enumerate(names):
        found += _of_stage(old, new, name, (finished or index < at.stage, pools or {}))
    if not any(problem.where.startswith("stages.") for problem in found):
        found += _of_steps(old, new, at, names[-1])
    return found


def _of_the_run(old: Recipe, new: Recipe) -> Iterator[Problem]:
    for key in ("seed", "count", "labels", "tokenizer", "start", "simulated_fraction"):
        was, becomes = getattr(old, key), getattr(new, key)
        if was != becomes:
            yield Problem(key, _shown(becomes), f"{_shown(was)}, as from the run's start", BRANCH)


def _of_pools(old: Recipe, new: Recipe) -> Iterator[Problem]:
    kept = [name for name in new.pools if name in old.pools]
    for name in old.pools:
        if name not in new.pools:
            yield Problem(f"pools.{name}", "removed", "every pool of the run", "give it 0% in what is ahead")
    if kept != [name for name in old.pools if name in kept]:
        yield Problem("pools", ", ".join(kept), f"the order {', '.join(old.pools)}", "keep their order")
    for name in kept:
        for key in _OF_A_POOL:
            was, becomes = getattr(old.pools[name], key), getattr(new.pools[name], key)
            if was != becomes:
                expected = f"{_shown(was)}, as from the run's start"
                fix = f"{BRANCH} (--rename {name}=NEW)" if key == "renamed_from" else BRANCH
                yield Problem(f"pools.{name}.{key}", _shown(becomes), expected, fix)
    yield from filter_problems(old, new)


def filter_problems(old: Recipe, new: Recipe) -> Iterator[Problem]:
    """Pools of a run that would hold other documents of their folder."""
    for name in (name for name in new.pools if name in old.pools):
        for key in VIEW_KEYS:
            was, becomes = getattr(old.pools[name], key), getattr(new.pools[name], key)
            if was != becomes:
                fix = "what it holds stays as it is: add a view under another name, and move its share there"
                expected = f"{_shown(was)}, as from the run's start"
                yield Problem(f"pools.{name}.{key}", _shown(becomes), expected, fix)


def _of_stage(
    old: Recipe, new: Recipe, name: str, known: tuple[bool, Mapping[str, Pool]]
) -> Iterator[Problem]:
    """A stage that is finished, or in progress: then its shares and its end may still change."""
    where, (finished, pools) = f"stages.{name}", known
    if old.stages[name].context != new.stages[name].context:
        expected = f"{old.stages[name].context}, its context so far"
        fix = _END_STAGE.format(name=name)
        yield Problem(f"{where}.context", new.stages[name].context, expected, fix)
        return
    for pool in (pool for pool in old.pools if pool in new.pools):
        was, becomes = old.rule(name, pool), new.rule(name, pool)
        if pool in pools:
            was, becomes = rule_for(pools[pool], was), rule_for(pools[pool], becomes)
        keys = [key for key in was.__slots__ if getattr(was, key) != getattr(becomes, key)]
        for key in keys:
            if "fim" in keys and key != "fim":
                continue  # the window goes with it
            given, expected = _written(becomes, key), f"{_written(was, key)}, as so far"
            fix = (_OTHER_TRANSFORM if key == "fim" else _END_STAGE).format(name=name, pool=pool)
            yield Problem(f"{where}: pool {pool}", given, expected, fix)
        if keys:
            return
    if old.stages[name].chunk != new.stages[name].chunk:
        expected = f"{old.stages[name].chunk}: its ledger rows keep their grid"
        yield Problem(f"{where}.chunk", new.stages[name].chunk, expected, "leave it as it is")
    if finished and _shares(old, name) != _shares(new, name, tuple(old.pools)):
        yield Problem(f"{where}.{new.stages[name].shares_form}", "other shares", "those it had", BRANCH)
    if finished and _objective(old, name) != _objective(new, name):
        yield Problem(f"{where}.objective", "another objective", "what its loss counted", BRANCH)


_OTHER_TRANSFORM = (
    "end the stage here (its tokens as consumed) and add one after it, {{like: {name}, transform: "
    "{{{pool}: …}}}}: what is left of a block is cut anew there; or branch the run so, with --end-stage"
)
_END_STAGE = "end the stage here (its tokens as consumed) and add a stage after it; or branch the run"


def _shares(recipe: Recipe, stage: str, pools: tuple[str, ...] = ()) -> list[object]:
    """The legs of a stage; with ``pools``, of a recipe that has more: then the others must have none."""
    legs: list[object] = []
    for leg in recipe.legs(stage):
        known = {name: share for name, share in leg.shares.items() if not pools or name in pools or share}
        legs.append((leg.start, known))
    return legs


def _objective(recipe: Recipe, stage: str) -> dict[str, object] | None:
    """What the loss of a stage counts; a pool without a part counts as one that is not there."""
    objective = recipe.objective(stage)
    return None if objective is None else {name: part for name, part in objective.items() if part}


def _of_steps(old: Recipe, new: Recipe, at: Snapshot, stage: str) -> Iterator[Problem]:
    """Batches up to the state must be those that were served, and a finished stage ends where it did."""
    was, becomes = Curriculum.from_recipe(old), Curriculum.from_recipe(new)
    ends = becomes.stages[at.stage].stop_step
    if ends < at.step:
        first = was.stages[at.stage].first_position
        expected = f"at least {at.positions - first:,} positions: so many are consumed"
        given = f"{becomes.stages[at.stage].length:,} positions"
        yield Problem(f"stages.{stage}", given, expected, "say at least what is consumed, or branch the run")
        return
    finished = at.step == was.stages[at.stage].stop_step
    if finished and ends != at.step:
        fix = f"add a stage after it ({{like: {stage}, …}}), or branch the run"
        yield Problem(f"stages.{stage}", f"an end at step {ends}", f"step {at.step}, where it ended", fix)
    if _served(was, at.step) != _served(becomes, at.step):
        yield Problem(f"stages.{stage}.batch", "other batches", f"those of steps 0..{at.step - 1}", BRANCH)


def _served(curriculum: Curriculum, stop: int) -> list[tuple[int, ...]]:
    """Stretches of batches before a step."""
    return [
        (s.stage, s.first_step, min(s.stop_step, stop), s.first_position, s.batch, s.context)
        for s in curriculum.stretches
        if s.first_step < stop
    ]


def _written(rule: Rule, key: str) -> str:
    """A key of a rule with its value, as a recipe writes them."""
    value = getattr(rule, key)
    if key == "behind":
        return f"leaves its documents to {_shown(value)}"
    if key == "random_offset":
        return f"offset: {'random' if value else 0}"
    if key == "strides":
        return f"stride: {_by_region(value)}" if value else f"stride: {rule.stride}"
    if key == "density":
        return f"density: {_by_region(value) if value else 1}"
    if key == "duplicates":
        return f"duplicates: {'keep' if value is None else write_duplicates(value)}"
    if key == "eos_keep":
        return f"eos_keep: {percent_text(value)}"
    return f"{key}: {_shown(value)}"


def _by_region(values: Sequence[object]) -> str:
    return f"{{{', '.join(f'{region}: {value}' for region, value in zip(REGIONS, values, strict=True))}}}"


def _shown(value: object) -> str:
    """A value as a recipe writes it, what is not set left out."""
    if isinstance(value, Model):
        value = value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_defaults=True)
    if isinstance(value, Mapping):
        return ", ".join(f"{key}: {_nested(below)}" for key, below in value.items()) or "nothing"
    if isinstance(value, tuple):
        return ", ".join(map(str, value)) or "nobody"
    return "nothing" if value is None else str(value)


def _nested(value: object) -> str:
    return f"{{{_shown(value)}}}" if isinstance(value, Mapping) else _shown(value)
