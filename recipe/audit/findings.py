"""What an audit says: findings, and how much was looked at."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from typing import Any

from recipe.pools import Finding
from recipe.run.canonical import canonical

__all__ = ["MISSING", "Audit", "Coverage", "Finding", "compared", "differences", "once", "shown"]

_LONGEST = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """What was checked: an audit says no more than this."""

    rows: int = 0
    """Rows of the ledger; each was checked for its hash, its place in the chain and its sums."""
    chunk_rows: int = 0
    replayed: tuple[int, ...] = ()
    """Rows whose numbers were computed again from the snapshot before them."""
    replayable: int = 0
    """Rows that could have been."""
    unavailable: int = 0
    """Rows that could not, because a pool they were served from is not there any more."""
    sample_seed: int | None = None
    """Seed of the choice of rows; None when all were replayed."""
    positions: int = 0
    """Positions computed again."""
    blocks: int = 0
    """Completed blocks whose tokens were added up from document lengths alone."""
    manifests: int = 0
    manifests_parsed: int = 0
    """Manifests whose contents were compared as well, not only their hash with the one on record."""
    pools: Mapping[str, str] = field(default_factory=dict)
    """How far each pool's contents were compared with their hashes."""
    files: str = ""
    """How far the files of the main job were; "" where the run has none."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Stage and pool: the step by which it had run dry and left (``on_exhausted: redistribute``)."""

    def lines(self) -> list[str]:
        """The same in sentences."""
        if self.sample_seed is None:
            chosen = f"all {self.replayable} rows with a snapshot were computed again"
        else:
            numbers = ", ".join(map(str, self.replayed[:20])) + (", …" if len(self.replayed) > 20 else "")
            chosen = (
                f"{len(self.replayed)} of {self.replayable} rows with a snapshot were computed again "
                f"(sample, seed {self.sample_seed}: {numbers or 'none'}); full=True computes all"
            )
        lines = [
            f"{self.rows} rows: hashes, chain and sums of all; {chosen}",
            f"{self.positions:,} positions computed again; "
            f"{self.blocks} completed blocks added up from document lengths",
            f"{self.manifests} manifests held against the ledger, in both directions; "
            f"contents of {self.manifests_parsed}",
        ]
        if self.unavailable:
            lines.append(f"{self.unavailable} rows could not be computed again: their pools are not there")
        lines += [
            f"{place} ran dry by step {step} and left; the others share what was to be its"
            for place, step in self.left.items()
        ]
        lines += [f"pool {name}: {how}" for name, how in self.pools.items()]
        return lines + ([self.files] if self.files else [])


@dataclass(frozen=True, kw_only=True, slots=True)
class Audit:
    """The result of an audit."""

    run: str
    """Path of the run."""
    findings: tuple[Finding, ...]
    tokens: Mapping[str, Mapping[str, int]]
    """By pool: body, overlap, special, padding, labels of the rows that no rewind discarded."""
    drift: Mapping[str, Mapping[str, int]]
    """By stage and pool: spent less owed, in counted tokens, at the row end where it is largest."""
    largest_drift: Mapping[str, Mapping[str, Fraction]]
    """By stage and pool: the largest distance from its share after any sequence that was computed again."""
    checked: Coverage

    @property
    def ok(self) -> bool:
        """Whether nothing was found."""
        return not self.findings

    def to_plain(self) -> dict[str, Any]:
        """What ``recipe audit --json`` prints."""
        return {
            "ok": self.ok,
            "findings": [asdict(finding) for finding in self.findings],
            "tokens": {pool: dict(kinds) for pool, kinds in self.tokens.items()},
            "drift": {stage: dict(pools) for stage, pools in self.drift.items()},
        }


def differences(expected: Any, observed: Any, path: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Where two plain values differ: the key of the innermost value, and both sides.

    Values of different types differ: ``1``, ``1.0`` and ``True`` are not the same.

    >>> list(differences({"a": {"b": [1, 2]}, "c": 0}, {"a": {"b": [1, 3]}}))
    [('a.b.1', 2, 3), ('c', 0, Missing)]
    """
    if isinstance(expected, dict) and isinstance(observed, dict):
        for key in [*expected, *(key for key in observed if key not in expected)]:
            inner = f"{path}.{key}" if path else str(key)
            yield from differences(expected.get(key, MISSING), observed.get(key, MISSING), inner)
    elif isinstance(expected, list) and isinstance(observed, list) and len(expected) == len(observed):
        for index, (a, b) in enumerate(zip(expected, observed, strict=True)):
            yield from differences(a, b, f"{path}.{index}" if path else str(index))
    elif type(expected) is not type(observed) or expected != observed:
        yield path, expected, observed


class _Missing:
    """Stands for a key that is not there."""

    def __repr__(self) -> str:
        return "Missing"

    __str__ = __repr__


MISSING = _Missing()


def shown(value: object) -> str:
    """A value as a finding shows it: what is not there is called nothing, long texts are cut.

    >>> shown(MISSING), shown("x"), shown(3)
    ('nothing', "'x'", '3')
    """
    if value is MISSING:
        return "nothing"
    text = repr(value) if isinstance(value, str | bytes) else str(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def compared(check: str, where: str, expected: object, observed: object) -> list[Finding]:
    """A finding for every innermost value that differs; ``where`` names what both are."""
    if _are_same(expected, observed):
        return []
    found = []
    for path, a, b in differences(expected, observed):
        place = f"{where}: {path}" if path else where
        found.append(Finding(check, place, shown(a), shown(b)))
    return found


def _are_same(expected: object, observed: object) -> bool:
    """Whether both have one text: quick, where :func:`differences` is thorough."""
    try:
        return canonical(expected) == canonical(observed)
    except (TypeError, ValueError):  # a date or a key of YAML that JSON has no form for
        return False


def once(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings in order, each once."""
    return tuple(dict.fromkeys(findings))
