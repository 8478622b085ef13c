"""Records of every kind, read and parsed, against encoding the same texts; memory of a row group."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import cycle
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import tokenizers
from tokenizers import models, pre_tokenizers, trainers

from recipe.text.documents import Tally
from recipe.text.found_library import code_documents, english_documents
from recipe.text.inputs import FileInput
from recipe.text.readers import parse_batch
from recipe.text.records import Raw
from recipe.text.sources import ReadOptions, list_sources
from tests.benchmarks.figures import Figure
from tests.text.stored import members_of, write_arrow, write_jsonl, write_parquet, write_tar

CHARACTERS = 8_000_000
ROUNDS = 3
GROUP_CHARACTERS = 200_000_000
"""Of a row group much larger than what may be in memory."""

WRITERS: dict[str, Callable[[Path, list[dict[str, str]]], None]] = {
    "jsonl": write_jsonl,
    "parquet": lambda path, records: write_parquet(path, records, row_group_size=len(records)),
    "arrow": lambda path, records: write_arrow(path, records, batch=1000),
    "tar": lambda path, records: write_tar(path, members_of(records)),
}


def corpus() -> list[dict[str, str]]:
    """Prose and code that is on every machine, as often as it takes."""
    texts = [document.text for make in (english_documents, code_documents) for document in make()]
    records, size = [], 0
    for number, text in enumerate(cycle(texts)):
        records.append({"id": f"d{number}", "text": text})
        size += len(text)
        if size >= CHARACTERS:
            return records
    raise AssertionError("unreachable")


def train(path: Path, texts: list[str]) -> None:
    """A byte-level BPE of 16,000 tokens."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=16_000,
        show_progress=False,
        special_tokens=["<|endoftext|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    tokenizer.train_from_iterator(texts[:2000], trainer)
    tokenizer.save(str(path))


def seconds(work: Callable[[], object]) -> float:
    """Processor seconds of some work."""
    before = time.process_time()
    work()
    return time.process_time() - before


def measure(scratch: Path) -> Iterator[Figure]:
    """What reading adds to encoding, in processor time, and what a large row group takes of memory."""
    records = corpus()
    texts = [record["text"] for record in records]
    train(scratch / "tokenizer.json", texts)
    tokenizer = tokenizers.Tokenizer.from_file(str(scratch / "tokenizer.json"))
    encoding = seconds(lambda: tokenizer.encode_batch(texts, add_special_tokens=False))
    for kind, write in WRITERS.items():
        source = scratch / f"a.{kind}"
        write(source, records)
        rounds = sorted(seconds(lambda source=source: read_all(source)) for _ in range(ROUNDS))
        reading = rounds[ROUNDS // 2]
        yield Figure(
            name=f"reading {kind}",
            value=reading / encoding,
            unit="× encoding",
            goal="<= 0.05",
            spread=(rounds[0] / encoding, rounds[-1] / encoding),
            against="encode_batch of a BPE of 16,000 tokens over the same texts, processor time",
            beside={"MB/s": sum(len(text.encode()) for text in texts) / 1e6 / reading},
        )
    yield _row_group(scratch)


def read_all(source: Path) -> None:
    """Everything that is done to a text before it is encoded: read, hashed, parsed."""
    options = ReadOptions()
    files = list_sources([source], options)
    for batch, _ in FileInput(files, options).batches():
        parse_batch([raw for raw in batch if isinstance(raw, Raw)], files, options, Tally())


def _row_group(scratch: Path) -> Figure:
    """What Arrow holds while it reads one row group."""
    rows = GROUP_CHARACTERS // 20_000
    table = pa.table({"text": [f"{row:08d} " * 2222 for row in range(rows)]})
    pq.write_table(table, scratch / "group.parquet", row_group_size=rows, use_dictionary=False)
    size = table.nbytes
    del table
    options = ReadOptions()
    before, most = pa.total_allocated_bytes(), 0
    for _ in FileInput(list_sources([scratch / "group.parquet"], options), options).batches():
        most = max(most, pa.total_allocated_bytes() - before)
    return Figure(
        name="memory of a row group",
        value=most / 1e6,
        unit="MB",
        goal="<= 64",
        against="one page and some rows, whatever the size of the group",
        beside={"MB of text in it": size / 1e6},
    )
