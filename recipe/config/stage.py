"""One stage of the curriculum: its length, context, batch, slicing, packing and shares."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from pydantic import Field
from pydantic.json_schema import SkipJsonSchema

from recipe.config.model import Batch, Packing, QuotaRamp
from recipe.config.partial import Model
from recipe.config.share_values import Quotas, TokenQuotas, Weights
from recipe.config.slicing import Slicing, SlicingConfig
from recipe.config.transform import TransformConfig
from recipe.config.values import Context, Count
from recipe.maths.amounts import parse_amount
from recipe.maths.shares import from_weights

LENGTHS = ("tokens", "steps", "until")
SHARES = ("quotas", "weights", "quotas_tokens")
BATCHES = ("sequences", "tokens", "ramp")
OBJECTIVE = "objective"


class Stage(Model):
    """A stretch of the run with one context, slicing and packing."""

    name: SkipJsonSchema[str] = Field(exclude=True)
    tokens: Count | None = None
    """Length in positions: steps x sequences x context. Exactly one of tokens, steps, until."""
    steps: Count | None = None
    """Length in optimizer steps."""
    until: Count | None = None
    """The stage ends at the first batch end at or after this position of the run."""
    context: Context
    """Positions of a sequence."""
    batch: Batch
    """Sequences of one optimizer step."""
    chunk: Count | None = None
    """Positions of an accounting period; default: a twentieth of the stage, at most 1B."""
    declared_slicing: SlicingConfig = Field(default=SlicingConfig(), alias="slicing")
    packing: Packing = Packing()
    quotas: Quotas | None = None
    """Percent text by pool or group, summing to exactly 100%; one may say ``rest``."""
    weights: Weights | None = None
    """Numbers by pool or group; the share is the number over their sum."""
    quotas_tokens: TokenQuotas | None = None
    """Token amounts by pool or group; their sum is the length of the stage."""
    objective: Quotas | None = None
    """What the loss counts, shaped like ``quotas``: a label of a pool weighs its share here over its share
    that is sampled. Left out, or null: every label counts once."""
    transform: dict[str, TransformConfig] | None = Field(
        default=None,
        json_schema_extra={
            "description": "By pool, what is made of its pieces in this stage, in place of the pool's own "
            "transform; `rate: 0%` leaves them as they are."
        },
    )
    quota_ramp: QuotaRamp | None = Field(
        default=None,
        json_schema_extra={
            "description": "Goes over to the stage's shares from those of the stage before, in equal steps; "
            "belongs to this stage alone (`like` does not take it)."
        },
    )

    @property
    def slicing(self) -> Slicing:
        """The stage's rule, defaults filled in; a pool may override it (`Recipe.rule`)."""
        return self.declared_slicing.resolved(self.context)

    @property
    def ramp(self) -> tuple[tuple[int, int], ...]:
        """Sequences of a batch by position of the run; a constant batch is ``((0, n),)``."""
        if self.batch.ramp is not None:
            return tuple(self.batch.ramp.items())
        if self.batch.sequences is not None:
            return ((0, self.batch.sequences),)
        assert self.batch.tokens is not None
        return ((0, self.batch.tokens // self.context),)

    @property
    def parts(self) -> dict[str, Fraction]:
        """Shares as stated, by pool or group; they sum to one."""
        if self.quotas is not None:
            return dict(self.quotas)
        return from_weights(self.weights or self.quotas_tokens or {})

    @property
    def shares_form(self) -> str:
        """Which of quotas, weights and quotas_tokens is given."""
        return next(form for form in SHARES if getattr(self, form) is not None)

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """Token quotas say the stage's length where nothing else does."""
        if not isinstance(given, Mapping) or any(given.get(key) is not None for key in LENGTHS):
            return given
        amounts = given.get("quotas_tokens")
        if not isinstance(amounts, Mapping):
            return given
        try:
            return {**given, "tokens": sum(map(parse_amount, amounts.values())) or None}
        except ValueError:
            return given
