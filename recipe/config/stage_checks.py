"""What must hold between the values of one stage: one length, one batch, a slicing that fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from recipe.config.partial import Model, given_of, is_given, overlay, run_checks
from recipe.config.problems import Fault
from recipe.config.slicing import WINDOW_MARKS, SlicingConfig, write_duplicates
from recipe.config.stage import BATCHES, LENGTHS, SHARES, Stage

LARGEST_BATCH = 2**37
"""Positions: 2**40 bytes of ids."""


def exactly_one(model: Model, keys: Sequence[str], fix: str) -> Iterator[Fault]:
    """The fault of alternatives of which not exactly one is given."""
    given, expected = given_of(model, keys), f"exactly one of {', '.join(keys)}"
    if not given:
        yield Fault((), f"none of {', '.join(keys)}", expected, fix, is_absence=True)
    if len(given) > 1:
        together = f"{' and '.join(given)} together"
        yield Fault((given[-1],), together, expected, f"keep one of {', '.join(given)}")


def _one_length(stage: Stage) -> Iterator[Fault]:
    if given_of(stage, LENGTHS) or not is_given(stage, "quotas_tokens"):
        yield from exactly_one(stage, LENGTHS, "write tokens: 1B")


def _one_form_of_shares(stage: Stage) -> Iterator[Fault]:
    yield from exactly_one(stage, SHARES, "write quotas: {pool: 100%}, with every pool of the recipe")


def _one_batch(stage: Stage) -> Iterator[Fault]:
    for fault in exactly_one(stage.batch, BATCHES, "write {sequences: 8}"):
        yield fault.below(("batch",))


def _whole_sequences(stage: Stage) -> Iterator[Fault]:
    tokens = stage.batch.tokens
    if tokens is None or tokens % stage.context == 0:
        return
    below = tokens - tokens % stage.context
    nearest_two = [size for size in (below, below + stage.context) if size]
    expected = f"a whole number of sequences of {stage.context} positions"
    fix = f"write {' or '.join(f'{size} ({size // stage.context} sequences)' for size in nearest_two)}"
    yield Fault(("batch", "tokens"), tokens, expected, fix)


def _fits_in_memory(stage: Stage) -> Iterator[Fault]:
    """A batch is held whole: its ids are 8 bytes a position."""
    batch = stage.batch
    sizes = (
        list(batch.ramp.values()) if batch.ramp else [batch.sequences or (batch.tokens or 0) // stage.context]
    )
    positions = max(sizes) * stage.context
    if positions > LARGEST_BATCH:
        fix = "lower it: the arrays of a batch are held whole, 8 bytes a position"
        yield Fault(("batch",), f"{positions} positions", f"at most {LARGEST_BATCH} positions", fix)


def _slicing(stage: Stage) -> Iterator[Fault]:
    for fault in _slicing_faults(stage.declared_slicing, stage):
        yield fault.below(("slicing",))


BATCH_CHECKS = (_one_batch, _whole_sequences, _fits_in_memory)
STAGE_CHECKS = (_one_length, _one_form_of_shares, *BATCH_CHECKS, _slicing)


def pool_slicing_faults(own: SlicingConfig, stage: Stage) -> list[Fault]:
    """Faults of a pool's own slicing laid over a stage's; those that the stage has anyway are left out."""
    of_stage = _slicing_faults(stage.declared_slicing, stage)
    return [
        fault
        for fault in _slicing_faults(overlay(own, stage.declared_slicing), stage)
        if fault not in of_stage or is_given(own, fault.place[0])
    ]


def _slicing_faults(slicing: SlicingConfig, stage: Stage) -> list[Fault]:
    return run_checks(_SLICING_CHECKS, slicing, stage)


def _window_fits(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    most, less = stage.context - slicing.marks, " less BOS and EOS" if slicing.marks else ""
    if most < 1:
        fix = f"use specials: document, or raise the context to {WINDOW_MARKS + 1} or more"
        expected = f"document with a context of {stage.context}"
        yield Fault(("specials",), slicing.specials, expected, fix)
    elif slicing.window is not None and slicing.window > most:
        fix = f"lower the window to {most}, or raise the stage's context"
        yield Fault(("window",), slicing.window, f"1..{most} (the context{less})", fix)


def _stride_leaves_no_gap(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    given, window = slicing.stride, _window(slicing, stage)
    by_region = given if isinstance(given, dict) else {"": given}
    for region, stride in by_region.items():
        if stride is not None and stride > window:
            fix = f"lower the stride to {window}, or raise the window: a larger stride would skip tokens"
            yield Fault(
                ("stride", region) if region else ("stride",), stride, f"1..{window} (the window)", fix
            )


def _cuts_stay_in_order(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    within, stride = slicing.align_within, min(slicing.strides(_window(slicing, stage)))
    if within is not None and slicing.align not in (None, "none") and within >= stride:
        fix = f"lower align_within to {stride - 1}, or leave it out"
        yield Fault(("align_within",), within, f"0..{stride - 1} (less than the stride)", fix)


def _tail_fits(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    if slicing.min_tail is not None and slicing.min_tail > (window := _window(slicing, stage)):
        fix = f"lower min_tail to at most {window}"
        yield Fault(("min_tail",), slicing.min_tail, f"0..{window} (the window)", fix)


def _window(slicing: SlicingConfig, stage: Stage) -> int:
    return slicing.window if slicing.window is not None else stage.context - slicing.marks


def _concat_has_one_window(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    if stage.packing.method == "concat" and slicing.window is not None and slicing.window < stage.context:
        fix = "leave the window out, or use packing best_fit"
        expected = f"{stage.context} (the context) with packing concat"
        yield Fault(("window",), slicing.window, expected, fix)


def _concat_has_one_tail(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    if stage.packing.method == "concat" and slicing.tail not in (None, "keep", "drop"):
        fix = "use keep or drop, or packing best_fit: concat has one tail per block, not one per document"
        yield Fault(("tail",), slicing.tail, "keep or drop with packing concat", fix)


def _concat_reads_all(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    if stage.packing.method == "concat" and slicing.oversize not in (None, "split"):
        fix = "use split, or packing best_fit: concat does not look at a document's length"
        yield Fault(("oversize",), slicing.oversize, "split with packing concat", fix)


def _concat_cuts_anywhere(slicing: SlicingConfig, stage: Stage) -> Iterator[Fault]:
    """Documents that are joined before they are cut have no windows of their own."""
    if stage.packing.method != "concat":
        return
    duplicates = None if slicing.duplicates is None else write_duplicates(slicing.duplicates)
    options = (
        ("stride", slicing.stride if isinstance(slicing.stride, dict) else None, None, "one number"),
        ("offset", slicing.offset, 0, "0"),
        ("density", slicing.density or None, None, "1"),
        ("duplicates", duplicates, "keep", "keep"),
        ("specials", slicing.specials, "document", "document"),
        ("align", slicing.align, "none", "none"),
    )
    for key, given, default, expected in options:
        if given not in (None, default):
            fix = f"use {expected}, or packing best_fit: concat cuts what is joined, not documents"
            yield Fault((key,), _shown(given), f"{expected} with packing concat", fix)


def _shown(given: object) -> object:
    return ", ".join(f"{key} {value}" for key, value in given.items()) if isinstance(given, dict) else given


_SLICING_CHECKS = (
    _window_fits,
    _stride_leaves_no_gap,
    _cuts_stay_in_order,
    _concat_cuts_anywhere,
    _tail_fits,
    _concat_has_one_window,
    _concat_has_one_tail,
    _concat_reads_all,
)
