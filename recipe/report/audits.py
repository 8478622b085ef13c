"""What an audit found, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from textwrap import wrap
from typing import Any

from rich.console import Group

from recipe.report.figures import ratio, signed
from recipe.report.tables import table

WIDTH = 80
"""Of a line of running text."""
KINDS = ("body", "overlap", "special", "padding", "labels")
MOST_VALUES = 8
"""Values of a tag that a table shows one by one."""
MOST_ROWS = 12
"""Rows of a table by tags that a pool has at most."""
MOST_TIMES = 6
"""Numbers of readings that a line shows one by one."""


def audit_tables(plain: Mapping[str, Any]) -> Iterator[Group]:
    """Tables of an audit's plain form: tokens, drift, the budget, and how the pools were read."""
    if not plain["tokens"]:
        return
    yield table(
        "tokens on record",
        ("pool", *KINDS),
        ((pool, *(f"{counts[kind]:,}" for kind in KINDS)) for pool, counts in plain["tokens"].items()),
    )
    drift = plain["drift"]
    yield table(
        "spent less promised, in tokens, at the row's end where it is largest",
        ("pool", *(f"stage {stage}" for stage in drift)),
        ((pool, *(signed(pools.get(pool, 0)) for pools in drift.values())) for pool in plain["tokens"]),
    )
    yield _budget(plain["budget"])
    yield _readings(plain["reading"])
    yield from _lost(plain["reading"])
    yield from _by_tags(plain["reading"])


def _budget(budget: Mapping[str, Any]) -> Group:
    kinds = ("length", "consumed", "left", "overshoot")
    rows = [(stage, *(f"{of[kind]:,}" for kind in kinds)) for stage, of in budget["stages"].items()]
    caption = (
        f"consumed + left = length + overshoot; over all pools owed {budget['owed']:,} = "
        f"spent {budget['spent']:,} counted tokens"
    )
    return table("budget, in positions", ("stage", *kinds), rows, caption=caption)


def _readings(reading: Mapping[str, Any]) -> Group:
    """Distinct documents, how often they were read, and the share of the pool's tokens."""
    rows = []
    for pool, of in reading.items():
        if of["documents"] is None:
            rows.append((pool, "", "", "", of["note"]))
            continue
        rows.append(
            (
                pool,
                f"{of['documents']:,}",
                f"{of['distinct']:,}",
                ratio(of["covered"], of["tokens"]),
                _times(of["readings"]),
            )
        )
    notes = [f"{pool}: {of['note']}" for pool, of in reading.items() if of["note"] and of["documents"]]
    notes.append(
        "read: any token of the document was served; recipe status counts those begun, whose first token was"
    )
    return table(
        "how the pools were read",
        ("pool", "documents", "of them read", "tokens covered", "documents by times read"),
        rows,
        caption="; ".join(notes),
    )


def _times(readings: Mapping[str, int]) -> str:
    """A histogram in a line: ``never: 3, 1x: 20, 2x: 17``.

    >>> _times({"0": 3, "1": 20}), _times({str(k): 1 for k in range(2, 12)})
    ('never: 3, 1x: 20', '2x: 1, 3x: 1, 4x: 1, 5x: 1, 6x: 1, 7x to 11x: 5')
    """
    known = sorted((int(times), documents) for times, documents in readings.items())
    shown = [(f"{times}x" if times else "never", documents) for times, documents in known]
    if len(known) > MOST_TIMES:
        rest = known[MOST_TIMES - 1 :]
        shown = shown[: MOST_TIMES - 1]
        shown.append((f"{rest[0][0]}x to {rest[-1][0]}x", sum(documents for _, documents in rest)))
    return ", ".join(f"{times}: {documents:,}" for times, documents in shown)


def _lost(reading: Mapping[str, Any]) -> Iterator[Group]:
    """Tokens that were not served, by reason, and tokens that rewinds discarded."""
    reasons = sorted({why for of in reading.values() for why in of["dropped"]})
    if not reasons and not any(of["discarded"] for of in reading.values()):
        return
    rows = [
        (
            pool,
            *(f"{of['dropped'].get(why, 0):,}" for why in reasons),
            f"{of['discarded'].get('body', 0):,}",
        )
        for pool, of in reading.items()
    ]
    yield table("tokens not served, and served but discarded", ("pool", *reasons, "by rewinds"), rows)


def _by_tags(reading: Mapping[str, Any]) -> Iterator[Group]:
    """A row for each value of a tag; a tag that has many is added up, all values are in the JSON answer."""
    rows = []
    for pool, known in reading.items():
        own: list[tuple[str, ...]] = []
        for tag, values in known["tags"].items():
            few = len(values) <= MOST_VALUES
            sums = {kind: sum(of[kind] for of in values.values()) for kind in next(iter(values.values()))}
            shown = values if few else {"any": sums}
            own += [_tag_row(f"{pool}: {tag} = {value}", of) for value, of in shown.items()]
        rows += own[:MOST_ROWS]
        if len(own) > MOST_ROWS:
            rows.append((f"{pool}: … {len(own) - MOST_ROWS:,} more (--json)", *[""] * 4))
    if rows:
        columns = ("pool: tag", "documents", "of them read", "tokens", "covered")
        yield table("how they were read by tag", columns, rows)


def _tag_row(name: str, of: Mapping[str, int]) -> tuple[str, ...]:
    counts = (f"{of[kind]:,}" for kind in ("documents", "distinct", "tokens"))
    return name, *counts, ratio(of["covered"], of["tokens"])


def finding_lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """Findings as text: what was checked and where, then both values whole, a line each."""
    for finding in plain["findings"]:
        yield f"{finding['check']}: {finding['where']}"
        yield f"  expected  {finding['expected']}"
        yield f"  observed  {finding['observed']}"


def limit_lines(plain: Mapping[str, Any]) -> Iterator[str]:
    """What the audit cannot prove, in short lines."""
    yield "what this cannot prove:"
    for line in plain["cannot_prove"]:
        yield from wrap(line, WIDTH, initial_indent="  - ", subsequent_indent="    ")
