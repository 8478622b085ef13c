"""Which steps share a file: a function of what is wanted and of the curriculum alone."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Literal

from recipe.errors import RecipeError
from recipe.integrations.exporting.subject import Subject
from recipe.mixing.dealing import check_dealing
from recipe.run.stream import RunStream

Format = Literal["parquet", "megatron", "mds", "npy"]
FORMATS: tuple[Format, ...] = ("parquet", "megatron", "mds", "npy")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wanted:
    """What is asked for."""

    format: Format
    steps: tuple[int, int] | None = None
    """First step and the step after the last; default: all."""
    dp_rank: int = 0
    dp_size: int = 1
    micro_batch: int | None = None
    rows_per_file: int = 8192
    """Sequences in a file, about: a file holds whole steps of one stage, batch size and recipe."""
    lossy: bool = False
    """Whether what the format cannot express may be left out."""

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"steps": self.steps and list(self.steps)}


@dataclass(frozen=True, kw_only=True)
class Shard:
    """Steps that one file, or one set of files, holds."""

    first: int
    stop: int
    stage: str
    context: int
    rows: int
    stream: RunStream

    @property
    def stem(self) -> str:
        """The name of its files, without what says their kind."""
        return f"steps-{self.first:09d}-{self.stop:09d}"


def shards(subject: Subject, wanted: Wanted) -> list[Shard]:
    """The files that are wanted, in step order.

    Raises:
        RecipeError: there are no such steps, or a batch cannot be dealt to so many ranks.
    """
    end = subject.end()
    first, stop = wanted.steps or (0, end)
    if stop > end:
        raise RecipeError.single(
            subject.name, "--steps", given=f"{first}..{stop}", expected=f"steps within 0..{end}",
            fix="ask for steps that there are",
        )  # fmt: skip
    turns = subject.turns(first, stop)
    batches = {stretch.batch for *_, stream in turns for stretch in stream.curriculum.stretches}
    check_dealing(tuple(sorted(batches)), wanted.dp_size, wanted.micro_batch)
    return [shard for turn in turns for shard in _of_turn(*turn, wanted)]


def _of_turn(first: int, stop: int, stream: RunStream, wanted: Wanted) -> Iterator[Shard]:
    """Files begin at multiples of so many steps from where a size of batch begins: not where one asked."""
    names, curriculum = [stage.name for stage in stream.curriculum.stages], stream.curriculum
    while first < stop:
        stretch = curriculum.stretch(first)
        rows = stretch.batch // wanted.dp_size
        steps = max(1, wanted.rows_per_file // rows)
        grid = stretch.first_step + ((first - stretch.first_step) // steps + 1) * steps
        end = min(stop, stretch.stop_step, grid)
        yield Shard(
            first=first, stop=end, stage=names[stretch.stage], context=stretch.context,
            rows=rows * (end - first), stream=stream,
        )  # fmt: skip
        first = end
