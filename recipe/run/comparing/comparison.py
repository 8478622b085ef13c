"""What a comparison says: values that tables, JSON and the evidence of a decision are made from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field

from recipe.run.canonical import Plain
from recipe.run.comparing.arms import Arm, Seeds
from recipe.run.comparing.effects import Cell, Metric
from recipe.run.comparing.lineage_tree import Node
from recipe.run.comparing.margins import Judgement
from recipe.run.comparing.measured import Direction
from recipe.run.comparing.throughput import Rest

FORMAT = 1
"""Version of the plain form."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """What is asked of the runs."""

    step: int | None = None
    """Default: the last step at which all have a checkpoint."""
    no_worse_than: Mapping[str, object] = field(default_factory=dict)
    """Margins by metric."""
    better: Mapping[str, Direction] = field(default_factory=dict)
    """Which way a metric is better, where its name does not say so."""
    rank_by: str | None = None
    """The metric that arms are ranked by."""


@dataclass(frozen=True, kw_only=True)
class RunAtStep:
    """A run at the compared step."""

    label: str
    """Its name; its path where several of the runs have that name."""
    name: str
    id: str
    path: str
    arm: str
    seeds: Seeds
    manifest: int
    manifest_hash: str
    version: int
    """Of the recipe in force."""
    fingerprint: str
    """Of that recipe."""
    parent: Plain | None
    """Where it branched, and what was named."""
    count: str
    """The kind of token that quotas are counted in."""
    positions: int
    gpu_hours: int | float | None
    """As its trainer stated them, in total."""
    prior: object
    """Tokens that the start weights had seen; never added."""
    pools: dict[str, dict[str, int]]
    """Cumulative tokens by pool and kind."""
    groups: dict[str, tuple[str, ...]]
    """Members of the recipe's pool groups."""
    metrics: dict[str, Plain]
    """Those that may be seen."""
    rest: Rest | None

    @property
    def counted(self) -> int:
        """Counted tokens, over all pools."""
        return sum(self.spent.values())

    @property
    def spent(self) -> dict[str, int]:
        """Counted tokens by pool."""
        return {name: kinds["spent"] for name, kinds in self.pools.items()}

    def to_plain(self, first: RunAtStep) -> Plain:
        """As answers hold it, with what it read more (+) and less (-) than the first run."""
        plain = {**asdict(self), "seeds": dict(self.seeds), "rest": self.rest and self.rest.to_plain()}
        plain["groups"] = {group: list(members) for group, members in self.groups.items()}
        return {**plain, "counted": self.counted, "more": self.more(first)}

    def more(self, first: RunAtStep) -> dict[str, int]:
        """Counted tokens that it read more (+) and less (-) than another run, by pool."""
        pools = dict.fromkeys([*first.spent, *self.spent])
        return {pool: self.spent.get(pool, 0) - first.spent.get(pool, 0) for pool in pools}

    def of_group(self, group: str) -> int:
        """Counted tokens of a pool group."""
        return sum(self.spent.get(pool, 0) for pool in self.groups.get(group, ()))


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Runs at one step, held against the first of them."""

    step: int
    common_steps: tuple[int, ...]
    """The steps at which all have a checkpoint."""
    runs: tuple[RunAtStep, ...]
    arms: tuple[Arm, ...]
    """Runs that differ only in seeds are one arm; the first arm is what the others are compared with."""
    metrics: tuple[Metric, ...]
    judgements: tuple[Judgement, ...]
    """Margins held against the arms."""
    rank_by: str | None
    ranking: tuple[Cell, ...]
    """Arms, best first."""
    lineage: tuple[Node, ...]
    sealed: dict[str, tuple[str, ...]]
    """Final sets that are not shown, and the runs that have them."""
    opened: tuple[str, ...]
    """Final sets that are shown."""
    remarks: tuple[str, ...]
    """What speaks against the comparison; empty for a controlled one."""
    decided: bool = False
    """Whether a decision for one of the runs is on record; no part of the evidence for one."""

    @property
    def violated(self) -> bool:
        """Whether an arm is worse than a margin allows."""
        return any(judgement.verdict == "violated" for judgement in self.judgements)

    @property
    def controlled(self) -> bool:
        """Whether nothing speaks against the comparison."""
        return not self.remarks

    def to_plain(self) -> Plain:
        """Plain values for ``recipe compare --json``; also what a decision keeps as its evidence."""
        return {
            "format": FORMAT,
            "step": self.step,
            "controlled": self.controlled,
            "remarks": list(self.remarks),
            "runs": [run.to_plain(self.runs[0]) for run in self.runs],
            "arms": [
                {"name": arm.name, "runs": [self.runs[run].label for run in arm.runs]} for arm in self.arms
            ],
            "metrics": [metric.to_plain() for metric in self.metrics],
            "margins": [judgement.to_plain() for judgement in self.judgements],
            "violated": self.violated,
            "ranking": {
                "by": self.rank_by,
                "arms": [{"place": k, **cell.to_plain()} for k, cell in enumerate(self.ranking, start=1)],
            }
            if self.rank_by
            else None,
            "lineage": [asdict(node) for node in self.lineage],
            "sealed": {name: list(runs) for name, runs in self.sealed.items()},
            "opened": list(self.opened),
        }
