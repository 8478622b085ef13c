"""Where stages start and end, in positions of the run: known before any data is read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from recipe.config.stage import Stage


@dataclass(frozen=True, slots=True)
class Stretch:
    """Steps of a stage that have the same batch."""

    steps: int
    sequences: int


@dataclass(frozen=True, slots=True)
class Span:
    """A stage's place in the run, in positions."""

    start: int
    stated: int
    """Length as the recipe states it; below 1 where ``until`` comes before the start."""
    stop: int
    """End of its last batch: at most one batch after ``start + stated``."""
    stretches: tuple[Stretch, ...]

    @property
    def steps(self) -> int:
        """Optimizer steps of the stage."""
        return sum(stretch.steps for stretch in self.stretches)

    @property
    def overshoot(self) -> int:
        """Positions after the stated end; less than one batch."""
        return self.stop - self.start - self.stated

    @property
    def largest_batch(self) -> int:
        """Sequences of the stage's largest batch."""
        return max((stretch.sequences for stretch in self.stretches), default=0)


def stage_spans(stages: Iterable[Stage]) -> dict[str, Span]:
    """The span of every stage, in order; each starts where the one before stopped."""
    spans, start = dict[str, Span](), 0
    for stage in stages:
        spans[stage.name] = stage_span(stage, start)
        start = spans[stage.name].stop
    return spans


def stage_span(stage: Stage, start: int) -> Span:
    """The span of a stage that starts at a position of the run.

    A batch has the size of the last key of its ramp that is not after its first position, so a size
    changes at the first batch end at or after its key.
    """
    if stage.tokens is not None or stage.until is not None:
        stated = stage.tokens if stage.tokens is not None else (stage.until or 0) - start
        stretches, stop = _walk(stage, start, max_positions=stated)
        return Span(start, stated, stop, stretches)
    stretches, stop = _walk(stage, start, max_steps=stage.steps)
    return Span(start, stop - start, stop, stretches)


def _walk(
    stage: Stage, start: int, *, max_positions: int | None = None, max_steps: int | None = None
) -> tuple[tuple[Stretch, ...], int]:
    """Stretches of equal batches from ``start`` up to the stated length, and where they stop."""
    keys = [position for position, _ in stage.ramp[1:]]
    at, left_steps, stretches = start, max_steps, list[Stretch]()
    for (_, sequences), following in zip(stage.ramp, [*keys, None], strict=True):
        batch, steps = sequences * stage.context, left_steps
        if following is not None:
            to_key = _ceil(following - at, batch)
            steps = to_key if steps is None else min(steps, to_key)
        if max_positions is not None:
            to_end = _ceil(start + max_positions - at, batch)
            steps = to_end if steps is None else min(steps, to_end)
        assert steps is not None, "a stage has a length in positions or in steps"
        if steps <= 0:
            continue
        at += steps * batch
        left_steps = None if left_steps is None else left_steps - steps
        stretches.append(Stretch(steps, sequences))
    return tuple(stretches), at


def _ceil(amount: int, size: int) -> int:
    return max(0, -(-amount // size))


def default_chunk(span: Span, context: int) -> int:
    """Positions of a chunk by default: a twentieth of the stage, at most 1B, at least a batch."""
    return max(span.largest_batch * context, min(10**9, _ceil(span.stated, 20)))
