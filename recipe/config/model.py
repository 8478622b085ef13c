"""The models of a recipe without other models inside: the shapes of their values."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from math import prod
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_serializer

from recipe.config.files import FilesConfig
from recipe.config.free import FreeMapping
from recipe.config.partial import Model
from recipe.config.problems import TARGET, problem
from recipe.config.slicing import SlicingConfig
from recipe.config.transform import Portion, TransformConfig
from recipe.config.values import Count, Multiple, Prior, Ramp, RampSteps, Text
from recipe.config.view import By, Where

Exhaustion = Literal["repeat", "stop", "redistribute"]
Method = Literal["best_fit", "concat", "none"]
Attention = Literal["piece", "group", "sequence"]
Positions = Literal["restart", "continue"]
Labels = Literal["shifted", "inputs"]
Counted = Literal["body", "fresh", "labels", "positions"]
Dealing = Literal["order", "balanced"]


class TokenizerConfig(Model):
    """The tokenizer that made the pools; only needed to prepare or decode."""

    builtin: Literal["bytes"] | None = None
    """A tokenizer that ships with the program: ``bytes`` has one id per byte and needs no file."""
    path: str | None = None
    """A ``tokenizer.json``, tiktoken ranks, a SentencePiece model, or a folder that holds one of them."""

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """Text is a builtin or a path."""
        if isinstance(given, str):
            return {"builtin": given} if given == "bytes" else {"path": given}
        return given


class ModelConfig(Model):
    """What the model that will be trained can take."""

    max_positions: Count | None = None
    """Rows of its position table: no stage's context may be longer."""
    vocab_size: Count | None = None
    """Rows of its embedding: no token id may be as large."""


class ParallelConfig(Model):
    """How the trainer splits one model over processes: ranks that share the rows of a batch."""

    tp: Count = 1
    """Tensor-parallel size."""
    pp: Count = 1
    """Pipeline-parallel size."""
    cp: Count = 1
    """Context-parallel size: each rank has two of ``2 * cp`` chunks of every row, or of every document."""
    sequence_parallel: bool = False
    """Whether tensor-parallel ranks also split the positions between them."""

    @property
    def num_ranks(self) -> int:
        """Processes that share rows; the world is this times the data-parallel size."""
        return self.tp * self.pp * self.cp


class SinkConfig(Model):
    """Where ``recipe run`` sends the stream: into files, or through the reference trainer."""

    format: Literal["parquet", "train"] = "parquet"
    """``parquet``: files; ``train``: a small GPT, whose settings are ``trainer:`` (the ``train`` extra)."""
    rows_per_file: Count = 8192
    """Sequences in a file, about: a file holds whole steps."""
    compression: Literal["zstd", "snappy", "none"] = "zstd"

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """Text is a format."""
        return {"format": given} if isinstance(given, str) else given


class StartConfig(Model):
    """Weights from elsewhere that the run starts from, with what must be known of them, on one record."""

    weights: Text
    """Where they are: a path, an address, or a name with the publisher's."""
    revision: Text | None = None
    """Which version of them, such as a commit; in quotes if it looks like a number."""
    tokenizer: Text | None = None
    """The tokenizer they were trained with: a folder, a name or a fingerprint."""
    prior: Prior | None = None
    """Tokens they have seen before this run, in total or by area; shown apart, never added to the run's."""

    @property
    def prior_tokens(self) -> int:
        """Tokens before the start, over all areas."""
        return sum(self.prior.values()) if isinstance(self.prior, dict) else self.prior or 0


class PolicyConfig(Model):
    """What decides on new shares while the run goes on; keys beside the two are its parameters."""

    target: Text = Field(alias="_target_")
    """Dotted name of what is made with the parameters: of ``recipe.maths.policies``, or one that whoever
    starts the run allows."""
    every: Count
    """Positions between two decisions, counted from the last one, or from the stage's beginning where that is
    later: each is made at the first batch end at or after at which the trainer asks."""
    params: FreeMapping = Field(default_factory=dict)
    """Parameters by name, as they are written."""

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """Whatever is no key of ours is a parameter."""
        if not isinstance(given, Mapping):
            return given
        own = {key: given[key] for key in (TARGET, "every") if key in given}
        return {**own, "params": {key: value for key, value in given.items() if key not in own}}

    @model_serializer
    def _plain(self) -> dict[str, Any]:
        return {TARGET: self.target, "every": self.every, **self.params}


class Packing(Model):
    """How pieces fill rows of ``context`` positions, and what they see of each other."""

    method: Method = "best_fit"
    attention: Attention = "piece"
    """``piece``: pieces of a row do not see each other; ``group``: those of documents of one group lie side
    by side, in order, and do; ``sequence``: the whole row is one."""
    positions: Positions = "restart"
    """Whether positions start at 0 in each piece or run on through the row."""
    cross_labels: bool = False
    """Whether the last token of a document predicts the first of the next in its row."""
    document_multiple: Multiple = 1
    """Every piece takes a multiple of so many positions, padded: a number, or a product such as ``2*cp``
    with the sizes of ``parallel``."""
    eos_keep: Portion = Fraction(1)
    """Of the end marks stored with documents, the part that takes a position, by keyed hashes anew in every
    epoch; the label of the token before it stays, and the others are counted as ``separators``."""
    shuffle_fit: bool = False
    """Pieces of about the same length are packed in reading order, and so are rows of about the same room, so
    that neighbours in a row change with every epoch, at the cost of up to a 64th of padding."""

    def multiple(self, parallel: ParallelConfig) -> int:
        """``document_multiple`` as a number."""
        factors = str(self.document_multiple).split("*")
        return prod({"cp": parallel.cp, "tp": parallel.tp}.get(part) or int(part) for part in factors)

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """Text is a method."""
        return {"method": given} if isinstance(given, str) else given


class Batch(Model):
    """Sequences of one optimizer step: exactly one of the three ways to say it."""

    sequences: Count | None = None
    tokens: Count | None = None
    """Positions of a batch; a whole number of sequences of the stage's context."""
    ramp: Ramp | None = None
    """Sequences by position of the run: ``{0: 256, 100B: 512}``; a size changes at a batch end."""

    @classmethod
    def spelled_out(cls, given: Any) -> Any:
        """A bare number is refused: sequences or tokens?"""
        if isinstance(given, int | str) and not isinstance(given, bool):
            raise problem(
                "",
                given=given,
                expected="a mapping with one of sequences, tokens, ramp",
                fix=f"write {{sequences: {given}}} or {{tokens: {given}}}",
            )
        return given


class QuotaRamp(Model):
    """Shares that go over, in equal steps, from those the stage before ended with to the stage's own."""

    over: Count
    """Positions of the stage until its own shares hold; at most its length."""
    steps: RampSteps
    """Stretches of constant shares on the way, each as long as the others: step j of n, from 0, has
    from + (to - from) * (2j + 1) / 2n."""


class PoolConfig(FilesConfig):
    """A named set of tokenised documents, as the recipe knows it before it is opened."""

    stock: Count | None = None
    """Body tokens it has or will have: enough to plan without data; with a path it is a target."""
    max_epochs: Count | None = None
    """Readings allowed; default: the recipe's."""
    on_exhausted: Exhaustion | None = None
    """What happens when every token was read; default: the recipe's."""
    slicing: SlicingConfig | None = None
    """Slicing of this pool where it differs from the stage's."""
    transform: TransformConfig | None = Field(
        default=None,
        json_schema_extra={
            "description": "What is made of its pieces before they are packed: fill in the middle."
        },
    )
    block_units: Annotated[
        Count | None, BeforeValidator(lambda given: None if given == "auto" else given)
    ] = Field(
        default=None,
        json_schema_extra={
            "description": "Units planned and shuffled together; default auto: about 64 Mi tokens."
        },
    )
    renamed_from: Text | None = None
    """The name it had before: its reading order stays that of the old name."""
    of: Text | None = None
    """A view: the documents of the folder that another pool names, or as many of them as pass its filters.
    In a stage each is owned by the first such pool that draws from them and holds it."""
    where: Where | None = None
    """Only documents whose tags, id, group or source are so: ``{language: en, quality: {min: 0.5},
    licence: [mit, apache-2.0], source: {not: forum}}``; all must hold."""
    min_tokens: Count | None = None
    """Only documents of so many body tokens or more."""
    max_tokens: Count | None = None
    """Only documents of so many body tokens or fewer."""
    by: By | None = None
    """What the tokens are counted of: each ``document`` (default), the ``group`` it belongs to, for which
    ``where`` must hold of all its documents, too; or its largest unit with what that ``needs``."""
