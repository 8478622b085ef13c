"""Settings of the reference trainer: the recipe's free ``trainer:`` block, read strictly."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from recipe.config.evaluation import HeldOutConfig
from recipe.config.problems import problem
from recipe.errors import RecipeError
from recipe.integrations.training.setting_faults import heads_fault, problems_of

_OTHER_SETS = ("final/", "pool:", "sft/")
"""What the names of measured sets that are no areas begin with."""


def _number(value: Any) -> Any:
    """A recipe keeps the decimals of its free parts as text, exactly."""
    if not isinstance(value, str):
        return value
    try:
        return float(value)
    except ValueError:
        return value


Decimal = Annotated[float, BeforeValidator(_number)]
Part = Annotated[float, BeforeValidator(_number), Field(ge=0, lt=1)]


class Settings(BaseModel):
    """What the reference trainer reads of ``trainer:``; anything else there is refused when it trains."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    layers: int = Field(default=4, ge=1, le=1024)
    """Transformer layers."""
    heads: int = Field(default=4, ge=1, le=1024)
    """Attention heads; twice as many divide ``width``."""
    width: int = Field(default=128, ge=2, le=65_536)
    """Dimensions of a position's vector."""
    learning_rate: Decimal = Field(default=1e-3, gt=0)
    """At the end of the warm-up."""
    warmup_steps: int = Field(default=20, ge=0)
    """Steps in which the learning rate rises from zero."""
    decay: Literal["cosine", "linear", "none"] = "cosine"
    """How it falls over the rest of the run."""
    final_rate: Decimal = Field(default=0.1, ge=0, le=1)
    """What is left of it at the run's last step, as a part of ``learning_rate``."""
    decay_share: Decimal = Field(default=1.0, gt=0, le=1)
    """The part of the run, its last, in which it falls: 0.2 is a plateau and then a decay (WSD)."""
    weight_decay: Decimal = Field(default=0.1, ge=0)
    betas: tuple[Part, Part] = (0.9, 0.95)
    clip: Decimal = Field(default=1.0, gt=0)
    """Largest norm of a step's gradient."""
    micro_batch: int | None = Field(default=None, ge=1)
    """Sequences that go through the model at once; default: all of the step."""
    init_seed: int = Field(default=0, ge=0, lt=1 << 63)
    """Of the first weights; the data has the recipe's own seed."""
    device: str = Field(default="cpu", pattern=r"^(cpu|cuda(:\d+)?)$")
    """``cpu``, ``cuda``, ``cuda:1``."""
    threads: int | None = Field(default=None, ge=1, le=1024)
    """Threads of the processor; part of what makes two runs equal to the bit. Default: torch's."""
    checkpoint_steps: int | None = Field(default=None, ge=1)
    """Steps between checkpoints; default: where a chunk closes."""
    keep: int | None = Field(default=None, ge=1)
    """Checkpoints whose weights stay on disk, the newest ones; that others went is on record. All by default.
    A branch that was not trained yet needs the file of its parent's: train it first."""
    validation: dict[str, HeldOutConfig] = Field(default_factory=dict)
    """Held-out pools by area: ``{code: pools/held/code}``, or entries as of ``evaluation.pools``; read whole,
    never counted in the run's tokens."""
    final: dict[str, HeldOutConfig] = Field(default_factory=dict)
    """Pools of the final test, by name: measured at the run's end, sealed until a decision is recorded."""
    validation_sequences: int = Field(default=64, ge=1)
    """Sequences of a held-out pool that are read, from its beginning; fewer where it holds fewer."""

    @model_validator(mode="before")
    @classmethod
    def _lists_are_pairs(cls, given: Any) -> Any:
        if isinstance(given, Mapping) and isinstance(given.get("betas"), list):
            return {**given, "betas": tuple(given["betas"])}
        return given

    @field_validator("validation")
    @classmethod
    def _areas_are_no_other_sets(cls, given: dict[str, HeldOutConfig]) -> dict[str, HeldOutConfig]:
        if odd := [name for name in given if name.strip().lower().startswith(_OTHER_SETS)]:
            fix = "call them otherwise; pools of the final test stand under trainer.final"
            expected = f"areas that do not begin with {', '.join(_OTHER_SETS)}"
            raise problem("", given=", ".join(odd), expected=expected, fix=fix)
        return given

    @model_validator(mode="after")
    def _heads_fit(self) -> Settings:
        if (fault := heads_fault(self.width, self.heads)) is not None:
            raise fault
        return self


def settings_of(trainer: Mapping[str, Any] | None) -> Settings:
    """The settings that a recipe's ``trainer:`` block gives.

    Raises:
        RecipeError: every key that is none, with the nearest name, and every value that does not fit.

    >>> settings_of({"layers": 2}).layers
    2
    """
    try:
        return Settings.model_validate(dict(trainer or {}))
    except ValidationError as error:
        problems = problems_of(error.errors(), Settings.model_json_schema()["properties"])
        raise RecipeError("trainer", problems) from None
