"""How much of a run an audit looked at: it says no more than this."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from recipe.audit.sampling import Detection

_SHOWN = 20
LEDGER_GONE = "is not here; its ledger was not looked at"
FILES_GONE = "not here, and not compared"
"""How sentences on a parent, or on the files of the main job, end where these were not looked at."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Coverage:
    """What was checked, in numbers."""

    rows: int = 0
    """Rows of the ledger; each was checked for its hash and its place in the chain, and for its sums."""
    chain_only: bool = False
    """Whether nothing but hashes, order and numbers was looked at."""
    named: int = 0
    """Files that rows name by hash, of an audit of the chain alone: recipes, manifests and the like."""
    chunk_rows: int = 0
    replayed: tuple[int, ...] = ()
    """Rows whose numbers were computed again from the snapshot before them."""
    replayable: int = 0
    """Rows that could have been, of those asked for."""
    unavailable: int = 0
    """Rows asked for that could not, because a pool they were served from is not there any more."""
    scope: str = ""
    """The rows that were asked for, where not all were: ``since step 1200 of stage long``."""
    outside: int = 0
    """Rows that were not asked for."""
    sample_seed: int | None = None
    """Seed of the choice of rows; None when all were replayed."""
    seed_given: bool = False
    """Whether the seed was given, not drawn for this audit."""
    detection: Detection | None = None
    """What the choice finds if rows are wrong; None where no row could be computed."""
    positions: int = 0
    """Positions computed again."""
    blocks: int = 0
    """Completed blocks whose tokens were added up from document lengths alone."""
    manifests: int = 0
    manifests_parsed: int = 0
    """Manifests whose contents were compared as well, not only their hash with the one on record."""
    metadata_only: bool = False
    """Whether no token file was opened, so that contents were not looked at."""
    pools: Mapping[str, str] = field(default_factory=dict)
    """How far each pool's contents were compared with their hashes."""
    files: str = ""
    """How far the files of the main job were; "" where the run has none."""
    head: str = ""
    """What the hash that was published proves; "" where none was given, or it was not found."""
    served: str = ""
    """How far batch digests were compared; "" where nobody asked."""
    parent: str = ""
    """How far the run that a branch started from was looked at; "" for a run that is no branch."""
    left: Mapping[str, int] = field(default_factory=dict)
    """Stage and pool: the step by which it had run dry and left (``on_exhausted: redistribute``)."""

    @property
    def unchecked(self) -> tuple[str, ...]:
        """What is on record and could not be looked at, in sentences; not what nobody asked for.

        Contents of files that were made elsewhere are on no record: `lines` and the limits say so.
        """
        if self.chain_only:
            return ()
        gone = [(self.parent, self.is_parent_gone), (self.files, self.are_files_gone)]
        return (*self._lost(), *(said for said, is_gone in gone if is_gone))

    @property
    def is_parent_gone(self) -> bool:
        """Whether the ledger that a branch started from could not be looked at."""
        return self.parent.endswith(LEDGER_GONE)

    @property
    def are_files_gone(self) -> bool:
        """Whether the files of the main job could not be."""
        return self.files.endswith(FILES_GONE)

    def _lost(self) -> list[str]:
        rows = f"{self.unavailable:,} rows could not be computed again: their pools are not there"
        return [rows] if self.unavailable else []

    def lines(self) -> list[str]:
        """The same in sentences."""
        return [*self._of_rows(), *self._of_the_rest()]

    def _of_rows(self) -> Iterator[str]:
        if self.chain_only:
            yield (
                f"chain only: hashes, order and numbers of {self.rows:,} rows, and the bytes of "
                f"{self.named:,} files that rows name by hash; no sum, no share and no pool was looked at"
            )
            return
        yield f"{self.rows:,} rows: hashes, chain and sums of all; {self._computed()}"
        if self.detection is not None and self.sample_seed is not None:
            yield detection_text(self.detection, seed_given=self.seed_given)
        yield (
            f"{self.positions:,} positions computed again; "
            f"{self.blocks:,} completed blocks added up from document lengths"
        )
        yield (
            f"{self.manifests:,} manifests held against the ledger, in both directions; "
            f"contents of {self.manifests_parsed:,}"
        )
        yield from self._lost()

    def _computed(self) -> str:
        rows = f"rows {self.scope}" if self.scope else "rows with a snapshot"
        outside = f"; {self.outside:,} others were not asked for" if self.scope else ""
        if self.sample_seed is None:
            return f"all {self.replayable:,} {rows} were computed again{outside}"
        numbers = ", ".join(map(str, self.replayed[:_SHOWN])) + (", …" if len(self.replayed) > _SHOWN else "")
        return (
            f"{len(self.replayed):,} of {self.replayable:,} {rows} were computed again "
            f"(sample, seed {self.sample_seed}: {numbers or 'none'}); full=True computes all{outside}"
        )

    def _of_the_rest(self) -> Iterator[str]:
        yield from (
            f"{place} ran dry by step {step} and left; the others share what was to be its"
            for place, step in self.left.items()
        )
        yield from (f"pool {name}: {how}" for name, how in self.pools.items())
        yield from filter(None, (self.parent, self.files, self.served, self.head))

    def to_plain(self) -> dict[str, Any]:
        """As ``recipe audit --json`` prints it, and in sentences."""
        kept = (
            "rows", "chain_only", "named", "chunk_rows", "replayable", "unavailable", "scope", "outside",
            "sample_seed", "positions", "blocks", "manifests", "manifests_parsed", "metadata_only", "files",
            "head", "served",
        )  # fmt: skip
        return {
            **{name: getattr(self, name) for name in kept},
            "computed": len(self.replayed),
            "detection": None if self.detection is None else detection_plain(self.detection),
            "pools": dict(self.pools),
            "left": dict(self.left),
            "lines": self.lines(),
        }


def detection_text(found: Detection, *, seed_given: bool) -> str:
    """What a choice of rows finds, in a sentence.

    >>> detection_text(Detection(200, 50, Fraction(1, 4), 2, Fraction(7, 16)), seed_given=False)[:75]
    'if one of the 200 rows were wrong, it would be found with probability 25 %,'
    """
    known = "; whoever knew the seed beforehand could have avoided it" if seed_given else ""
    several = (
        f", and if {found.several:,} were (1 %), at least one with {at_least(found.of_several)}"
        if found.several > 1
        else ""
    )
    return (
        f"if one of the {found.rows:,} rows were wrong, it would be found with probability "
        f"{at_least(found.one)}, wherever it is{several} (hypergeometric, for the worst place){known}"
    )


def detection_plain(found: Detection) -> dict[str, Any]:
    """The same for programs; probabilities are rounded down."""
    return {
        "rows": found.rows,
        "computed": found.computed,
        "if_wrong": [
            {"rows": wrong, "found_with_probability": int(chance * 10**9) / 10**9}
            for wrong, chance in ((1, found.one), (found.several, found.of_several))
        ],
    }


def at_least(chance: Fraction) -> str:
    """A probability in percent, rounded down: never more than it is.

    >>> [at_least(p) for p in (Fraction(1), Fraction(1, 4), Fraction(999_999, 1_000_000), Fraction(1, 3))]
    ['100 %', '25 %', '99.99 %', '33.33 %']
    """
    whole, rest = divmod(chance.numerator * 10_000 // chance.denominator, 100)
    return f"{whole}.{rest:02d} %".replace(".00", "")
