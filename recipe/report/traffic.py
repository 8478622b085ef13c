"""What a run asks of stores, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group

from recipe.report.figures import amount
from recipe.report.tables import table


def traffic_tables(traffic: Mapping[str, Any], step_seconds: float | None) -> Iterator[Group]:
    """The table of :meth:`recipe.mixing.traffic.Traffic.to_plain`.

    Args:
        traffic: in its plain form.
        step_seconds: what a step of the trainer takes; None: not known, figures are those of a step.
    """
    steps = traffic["steps"]
    requests, read = traffic["requests"] / steps, traffic["bytes_read"] / steps
    rows = [
        ("requests a step", f"{requests:,.1f}"),
        ("bytes read a step", f"{amount(round(read))}"),
        ("bytes of a request", f"{amount(round(read / requests)) if requests else '0'}"),
        ("bytes read ÷ bytes used", f"{traffic['amplification']:.3f}"),
        ("steps fetched together", f"{traffic['steps_together']:,}"),
    ]
    if step_seconds is not None:
        rows[:0] = [
            ("requests/s", f"{requests / step_seconds:,.0f}"),
            ("MB/s", f"{read / step_seconds / 1e6:,.1f}"),
        ]
    rate = "" if step_seconds is None else f", a step in {step_seconds:g} s"
    told = [
        f"of the first {steps:,} steps{rate}; all ranks together, with a cache of "
        f"{amount(traffic['cache_bytes'])} bytes (RECIPE_CACHE_BYTES, of each process)"
    ]
    if traffic["aligned"]:
        looked = traffic["looked_requests"] / steps, amount(round(traffic["looked_bytes"] / steps))
        told.append(
            f"cuts of {', '.join(traffic['aligned'])} are aligned at texts: of these, "
            f"{looked[0]:,.1f} requests and {looked[1]} bytes a step look for them, in every process"
        )
    yield table(
        f"from stores: {', '.join(traffic['pools'])}", ("what", "how much"), rows, caption="; ".join(told)
    )
