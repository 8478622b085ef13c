"""The recipe: the whole declared intent, as the rest of the program reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from recipe.config.drawing import owners
from recipe.config.evaluation import EvaluationConfig, ScoringRule
from recipe.config.free import FreeMapping
from recipe.config.group import GroupConfig
from recipe.config.legs import Leg, ramp_legs
from recipe.config.model import (
    Attention,
    Counted,
    Dealing,
    Exhaustion,
    Labels,
    Method,
    ModelConfig,
    ParallelConfig,
    PolicyConfig,
    PoolConfig,
    Positions,
    SinkConfig,
    StartConfig,
    TokenizerConfig,
)
from recipe.config.partial import Model
from recipe.config.places import place
from recipe.config.slicing import Align, Oversize, Specials, Tail
from recipe.config.spans import Span, stage_spans
from recipe.config.stage import Stage
from recipe.config.transform import MARKERS, FimConfig, Stated, TransformConfig, stated_transforms
from recipe.config.values import Count, Name, Seed
from recipe.config.view import parent_name
from recipe.maths.shares import loss_weights


@dataclass(frozen=True, kw_only=True, slots=True)
class Rule:
    """How one pool is sliced, packed and labelled in one stage: everything resolved."""

    context: int
    window: int
    stride: int
    tail: Tail
    min_tail: int
    overlap_labels: bool
    oversize: Oversize
    method: Method
    attention: Attention
    positions: Positions
    cross_labels: bool
    labels: Labels
    document_multiple: int = 1
    """Every piece takes a multiple of so many positions of its row."""
    eos_keep: Fraction = Fraction(1)
    """Of the stored end marks, the part that takes a position."""
    shuffle_fit: bool = False
    """Whether pieces of about the same length are packed in reading order."""
    fim: FimConfig | None = None
    """Pieces that are filled in the middle: three markers more."""
    strides: tuple[int, int, int] | None = None
    """Strides in head, middle and tail of a document, where they differ."""
    random_offset: bool = False
    """Whether a long document's windows start at a place that hashes choose."""
    density: tuple[Fraction, Fraction, Fraction] | None = None
    """Shares of pieces that are kept in head, middle and tail; None: all."""
    duplicates: Fraction | None = None
    """Part of a window's fresh tokens that repeats at least, for it to be left out; None: none is."""
    specials: Specials = "document"
    align: Align = "none"
    align_within: int = 0
    """Tokens that a cut may move back; 0 where nothing is aligned."""
    behind: tuple[str, ...] = ()
    """Of pools that share its folder and come before it: what their orders are keyed by. It leaves out what
    they hold."""

    @property
    def room(self) -> int:
        """Positions that a piece and its marks may take: the context, less the markers of a transform."""
        return self.context - (0 if self.fim is None else MARKERS)


class Recipe(Model):
    """Pools, stages, quotas and seed; order of pools and stages is meant."""

    name: Name = "recipe"
    """What runs are called by default; no part of the recipe's identity."""
    seed: Seed
    """Base seed of every order: 0..2**63-1, and 0 is a seed like any other."""
    tokenizer: TokenizerConfig | None = None
    model: ModelConfig | None = None
    pools_root: str | None = None
    """Folder that relative pool paths start from; default: the working directory."""
    pools: dict[str, PoolConfig]
    """By name. A name with ``*`` is a set: when the recipe is loaded, a pool for every folder that its path
    matches replaces it (``"lang_*": {path: multilingual/*}``); what is said of one of them goes over it."""
    groups: dict[str, GroupConfig] = Field(default_factory=dict)
    """Pools with one quota. A pool with ``*`` stands for all whose names it fits; ``quotas: {"lang_*": 40%}``
    makes a group of that name."""
    count: Counted = "body"
    """Kind of token that quotas, debts and "spent" are counted in."""
    labels: Labels = "shifted"
    """``shifted``: labels are the next tokens; ``inputs``: labels equal inputs, for trainers that shift."""
    on_exhausted: Exhaustion = "repeat"
    """What happens when a pool was read whole: ``repeat``, ``stop`` or ``redistribute``."""
    deal: Dealing = "order"
    """``order``: rows go to ranks and micro-batches as they are scheduled; ``balanced``: the rows of a global
    batch change places, so that every micro-batch has about the same sum of squared lengths."""
    max_epochs: Count = 4
    """Readings of a pool that are allowed; beyond about four, repeated tokens lose their value
    (Muennighoff et al., *Scaling Data-Constrained Language Models*, 2023)."""
    stages: dict[str, Stage]
    start: StartConfig | None = Field(
        default=None, json_schema_extra={"description": "Weights from elsewhere that the run starts from."}
    )
    policy: PolicyConfig | None = Field(
        default=None, json_schema_extra={"description": "What decides on new shares while the run goes on."}
    )
    parallel: ParallelConfig = ParallelConfig()
    """Ranks that share rows. No part of the identity: batches depend on it only through
    ``document_multiple``, which counts as the number it comes to."""
    trainer: FreeMapping | None = None
    """Settings of the trainer, under its own names: part of what makes two runs comparable, read by nobody
    here."""
    evaluation: EvaluationConfig | None = Field(
        default=None,
        json_schema_extra={"description": "Held-out pools, and the windows that score their tokens."},
    )
    simulate_budget: Count | None = None
    """Positions of the full run that this one is a small proxy of: its pools are shrunk, so that it sees the
    repetition that the full run will see."""
    sink: SinkConfig | None = Field(
        default=None, json_schema_extra={"description": "Files that `recipe run` writes."}
    )

    @property
    def spans(self) -> dict[str, Span]:
        """Where each stage starts and stops, in positions of the run."""
        return stage_spans(self.stages.values())

    @property
    def is_settled(self) -> bool:
        """Whether every share and chunk is a number, as in a stored recipe."""
        shares = all(group.within.shares is not None for group in self.groups.values())
        stages = self.stages.values()
        numbers = all(isinstance(stage.packing.document_multiple, int) for stage in stages)
        markers = [fim.markers.values() for _, _, fim in self.transforms]
        numbers = numbers and all(isinstance(marker, int) for of in markers for marker in of)
        return shares and numbers and all(stage.chunk is not None for stage in stages)

    def shares(self, stage_name: str) -> dict[str, Fraction]:
        """The exact share of every pool in a stage, in the order of the pools; they sum to one.

        A stage with a `quota_ramp` has them from its last leg on (see `legs`).

        Raises:
            ValueError: the stage names a group whose shares depend on the stocks (see `settle`).
        """
        return self._by_pool(self.stages[stage_name].parts)

    def _by_pool(self, parts: Mapping[str, Fraction]) -> dict[str, Fraction]:
        """Parts of pools and groups, by pool; of every pool, in their order."""
        shares = dict.fromkeys(self.pools, Fraction(0))
        for name, part in parts.items():
            if name in self.pools:
                shares[name] += part
                continue
            within = self.groups[name].within.shares
            if within is None:
                raise ValueError(
                    f"group {name!r} is {self.groups[name].within.kind}: settle the recipe first"
                )
            for member, share in within.items():
                shares[member] += part * share
        return shares

    def objective(self, stage_name: str) -> dict[str, Fraction] | None:
        """What the loss of a stage counts of every pool; they sum to one. None: every label counts once.

        Raises:
            ValueError: as `shares`.
        """
        parts = self.stages[stage_name].objective
        return None if parts is None else self._by_pool(parts)

    @property
    def is_weighted(self) -> bool:
        """Whether the loss of any stage has an objective of its own."""
        return any(stage.objective is not None for stage in self.stages.values())

    def loss_weights(self, stage_name: str) -> tuple[dict[str, Fraction], ...] | None:
        """What a label of every pool counts in the loss, in each leg of a stage (see `legs`).

        Its share of the objective over its share in force; 0 for a pool that is not sampled. None: one each.

        Raises:
            ValueError: as `shares`.
        """
        objective = self.objective(stage_name)
        if objective is None:
            return None
        return tuple(loss_weights(objective, leg.shares) for leg in self.legs(stage_name))

    def legs(self, stage_name: str) -> tuple[Leg, ...]:
        """The stretches of constant shares in a stage, in order; without a ramp it is one.

        Raises:
            ValueError: as `shares`, of this stage or of the one before.
        """
        shares, ramp = self.shares(stage_name), self.stages[stage_name].quota_ramp
        if ramp is None:
            return (Leg(Fraction(0), shares),)
        names = list(self.stages)
        before = self.shares(names[names.index(stage_name) - 1])
        return ramp_legs(ramp, before, shares)

    @property
    def transforms(self) -> list[Stated]:
        """Every transform that is stated: those of pools, then those of stages."""
        return stated_transforms(self.pools, self.stages)

    def transform(self, stage_name: str, pool_name: str) -> TransformConfig | None:
        """What is made of a pool's pieces in a stage: the stage's own word for it, or else the pool's."""
        own = self.stages[stage_name].transform or {}
        return own.get(pool_name, self.pools[pool_name].transform)

    def rule(self, stage_name: str, pool_name: str) -> Rule:
        """How a pool is sliced and packed in a stage: the pool's own slicing over the stage's."""
        asked = stage_name, pool_name
        if asked not in self._rules:  # asked for at every block that is looked at
            self._rules[asked] = self._rule(stage_name, pool_name)
        return self._rules[asked]

    @cached_property
    def _rules(self) -> dict[tuple[str, str], Rule]:
        return {}

    def __copy__(self) -> Self:
        """The same recipe, which may become another one: it knows no rules yet."""
        made = super().__copy__()
        made.__dict__.pop("_rules", None)
        return made

    def __deepcopy__(self, memo: dict[int, Any] | None = None) -> Self:
        """As ``__copy__``."""
        made = super().__deepcopy__(memo)
        made.__dict__.pop("_rules", None)
        return made

    def _rule(self, stage_name: str, pool_name: str) -> Rule:
        stage, own = self.stages[stage_name], self.pools[pool_name].slicing
        declared = own.over(stage.declared_slicing) if own is not None else stage.declared_slicing
        transform = self.transform(stage_name, pool_name)
        room = stage.context - (0 if transform is None else MARKERS)
        return Rule(
            context=stage.context,
            **dict(declared.resolved(room)),
            **dict(stage.packing) | {"document_multiple": stage.packing.multiple(self.parallel)},
            labels=self.labels,
            fim=None if transform is None else transform.fim,
            behind=tuple(self.order_name(name) for name in owners(self, stage_name, pool_name)),
        )

    @property
    def longest_context(self) -> int:
        """Positions of the longest sequence of all stages."""
        return max(stage.context for stage in self.stages.values())

    @property
    def scoring_rule(self) -> ScoringRule | None:
        """The windows that score held-out pools, of a recipe that says so."""
        return None if self.evaluation is None else self.evaluation.resolved(self.longest_context)

    def epochs_allowed(self, pool_name: str) -> int:
        """Readings of a pool that are allowed."""
        parent = self.pools[parent_name(self.pools, pool_name)]
        return self.pools[pool_name].max_epochs or parent.max_epochs or self.max_epochs

    def exhaustion(self, pool_name: str) -> Exhaustion:
        """What happens when a pool was read whole."""
        return self.pools[pool_name].on_exhausted or self.on_exhausted

    def order_name(self, pool_name: str) -> str:
        """The name that a pool's reading order is keyed by: the one it had before it was renamed."""
        return self.pools[pool_name].renamed_from or pool_name

    @property
    def simulated_fraction(self) -> Fraction | None:
        """The part of every pool that a proxy reads; None for a run that simulates no other.

        The stated length of this run over that of the full one (``simulate_budget``); at most one.
        """
        if self.simulate_budget is None:
            return None
        return Fraction(sum(span.stated for span in self.spans.values()), self.simulate_budget)

    def folder(self, pool_name: str) -> str | None:
        """The path of a pool as it is stated: its own, or that of the pool it is a view of."""
        return self.pools[parent_name(self.pools, pool_name)].path

    def pool_path(self, pool_name: str) -> Path:
        """Where a pool is.

        Raises:
            ValueError: the pool has a stock to plan with, and no path.
        """
        path = self.folder(pool_name)
        if path is None:
            raise ValueError(f"pool {pool_name!r} has no path")
        return place(self.pools_root or "", path)

    def group_shares(self, stage_name: str) -> Mapping[str, Fraction]:
        """The share of every group in a stage: the sum over its pools."""
        shares = self.shares(stage_name)
        return {
            name: sum((shares[pool] for pool in group.pools), Fraction(0))
            for name, group in self.groups.items()
        }
