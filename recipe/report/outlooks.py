"""What is left of a run from a step on, one outlook beside another."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from recipe.report.figures import amount, readings, signed
from recipe.report.tables import table

Plain = Mapping[str, Any]
Named = Sequence[tuple[str, Plain]]


def outlook_tables(step: int, outlooks: Named) -> Iterator[Group]:
    """Tokens left and epochs used up by pool, and where the run ends, for some outlooks from one step on.

    Args:
        step: where they begin.
        outlooks: a name for each, and its plain form; of two the difference is shown.
    """
    names = list(dict.fromkeys(name for _, outlook in outlooks for name in outlook["pools"]))
    labels = [label for label, _ in outlooks]
    yield table(
        f"left from step {step:,} on, by share of the positions",
        ("pool", "spent", *labels, *(["difference"] if len(outlooks) == 2 else [])),
        [_left(name, outlooks) for name in names],
    )
    yield table(
        "epochs used up of each pool at the end",
        ("pool", "so far", *labels, "allowed"),
        [_read(name, outlooks) for name in names],
        caption="used up: epochs ended, and the part of this one that is behind; what a skip or a change of\n"
        "the pool passed over counts, too, so it may be more than the epochs that recipe report tells",
    )
    yield table(
        "the end of the run",
        ("", "step", "position"),
        [(label, f"{plain['num_steps']:,}", f"{plain['end_positions']:,}") for label, plain in outlooks],
    )


def _left(name: str, outlooks: Named) -> tuple[str, ...]:
    pools = [outlook["pools"].get(name) for _, outlook in outlooks]
    left = [0 if pool is None else int(pool["left"]) for pool in pools]
    spent = next((pool["spent"] for pool in pools if pool is not None), 0)
    return (name, amount(spent), *map(amount, left), *([signed(left[1] - left[0])] if len(left) == 2 else []))


def _read(name: str, outlooks: Named) -> tuple[str, ...]:
    pools = [outlook["pools"].get(name) for _, outlook in outlooks]
    known = [pool for pool in pools if pool is not None]
    return (
        name,
        readings(known[0]["epochs_read"]),
        *("–" if pool is None else readings(pool["epochs_at_end"]) for pool in pools),
        str(known[-1]["max_epochs"]),
    )
