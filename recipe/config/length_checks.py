"""What must hold between stages in a row: lengths, and what depends on where a stage starts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from recipe.config.partial import Faulty, UnsoundError, given_of, is_given, run_checks
from recipe.config.problems import Fault
from recipe.config.spans import Span, stage_span
from recipe.config.stage import LENGTHS, Stage
from recipe.config.stage_checks import BATCH_CHECKS


def length_faults(stages: Mapping[str, Stage], *, in_order: bool) -> Iterator[Fault]:
    """Faults of lengths and chunks.

    After a faulty length, or when the order of the stages is not known, only those that need no position of
    the run.
    """
    start = 0 if in_order else None
    for number, (name, stage) in enumerate(stages.items()):
        if number == 0 and in_order:
            yield from (fault.below(("stages", name)) for fault in run_checks([_ramps_from_something], stage))
        for fault in run_checks(_LENGTH_CHECKS, stage, start):
            yield fault.below(("stages", name))
        start = _stop(stage, start)


def stated_length(stages: Mapping[str, Stage]) -> int:
    """Positions of all stages in their order, as stated.

    Raises:
        UnsoundError: a length cannot be known.
    """
    start, length = 0, 0
    for stage in stages.values():
        span = _span(stage, start)
        if span.stated < 1:
            raise UnsoundError
        start, length = span.stop, length + span.stated
    return length


def _stop(stage: Stage, start: int | None) -> int | None:
    """Where a stage stops; None where that is not known."""
    try:
        span = _span(stage, start)
    except UnsoundError:
        return None
    return span.stop if start is not None and span.stated >= 1 else None


def _span(stage: Stage, start: int | None) -> Span:
    """The span of a stage; from 0 where its start is not known and neither length nor batch depend on it."""
    ramp, lengths = _ramp(stage), given_of(stage, LENGTHS)
    if len(lengths) != 1 or (start is None and (lengths == ["until"] or len(ramp) > 1)):
        raise UnsoundError
    return stage_span(stage, start or 0)


def _ramp(stage: Stage) -> tuple[tuple[int, int], ...]:
    if run_checks(BATCH_CHECKS, stage):
        raise UnsoundError
    return stage.ramp


def _ends_after_its_start(stage: Stage, start: int | None) -> Iterator[Fault]:
    if stage.until is not None and start is not None and stage.until <= start:
        fix = f"write a position after {start}, or tokens: for a length of its own"
        yield Fault(("until",), stage.until, f"more than {start}, where the stage starts", fix)


def _chunk_holds_a_batch(stage: Stage, start: int | None) -> Iterator[Fault]:
    if stage.chunk is None:
        return
    sizes = _ramp(stage)
    batch = stage.context * (sizes[0][1] if len(sizes) == 1 else _span(stage, start).largest_batch)
    if stage.chunk < batch:
        fix = f"raise the chunk to {batch} or more, or leave it out"
        yield Fault(("chunk",), stage.chunk, f"{batch} or more (the stage's largest batch)", fix)


def _quotas_sum_to_length(stage: Stage, start: int | None) -> Iterator[Fault]:
    amounts = stage.quotas_tokens
    if amounts is None or any(isinstance(amount, Faulty) for amount in amounts.values()):
        return
    stated, total = _stated(stage, start), sum(amounts.values())
    if stated >= 1 and total not in (0, stated):
        fix = f"make them sum to {stated}, or leave the stage's length out, or use weights"
        given = f"sum {total} of {dict(amounts)}"
        yield Fault(("quotas_tokens",), given, f"amounts that sum to {stated} (the length)", fix)


def _stated(stage: Stage, start: int | None) -> int:
    if given_of(stage, LENGTHS) == ["tokens"] and stage.tokens is not None:
        return stage.tokens
    return _span(stage, start).stated


def _ramps_from_something(stage: Stage) -> Iterator[Fault]:
    """The first stage has none before it whose shares it could go over from."""
    if is_given(stage, "quota_ramp"):
        expected, fix = (
            "a stage after the first",
            "remove it here: a ramp starts from the shares of the stage before",
        )
        yield Fault(("quota_ramp",), "a ramp in the first stage", expected, fix)


def _ramp_fits(stage: Stage, start: int | None) -> Iterator[Fault]:
    if stage.quota_ramp is None:
        return
    over, stated = stage.quota_ramp.over, _stated(stage, start)
    if 1 <= stated < over:
        fix = f"lower it to at most {stated}, or make the stage longer"
        yield Fault(("quota_ramp", "over"), over, f"1..{stated} (the length of the stage)", fix)


_LENGTH_CHECKS = (_ends_after_its_start, _chunk_holds_a_batch, _quotas_sum_to_length, _ramp_fits)
