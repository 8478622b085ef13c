"""Memory of ``recipe prepare``, all processes together, for inputs that are unlike most."""

from __future__ import annotations

import io
import json
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.integrations.corpora.measured import run_verb
from tests.benchmarks.figures import Figure

GOAL = "<= 1536"
WORDS = ("one two three", "some more words", "and so on")
EMOJI = "one two three " * 999 + "\U0001f600"


def measure(scratch: Path) -> Iterator[Figure]:
    """Each kind of input, made, prepared and removed."""
    scratch.mkdir(parents=True, exist_ok=True)
    for name, (make, options) in KINDS.items():
        source = scratch / f"memory-{name}"
        source.mkdir(exist_ok=True)
        make(source)
        size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
        out = scratch / f"memory-{name}-pool"
        shutil.rmtree(out, ignore_errors=True)
        done = run_verb(["prepare", str(out), str(source), *options])
        card, inputs = json.loads((out / "card.json").read_bytes()), (out / "prepare.json").stat().st_size
        documents = card["num_documents"]
        beside = sum(
            path.stat().st_size
            for path in out.iterdir()
            if not path.name.startswith("part-") and path.name != "prepare.json"
        )
        yield Figure(
            name=f"memory of preparing {name}",
            value=done.peak_bytes / 2**20,
            unit="MiB",
            goal="" if "--max-line-bytes" in options else GOAL,
            beside={
                "input MB": size / 1e6,
                "documents": documents,
                "seconds": done.seconds,
                "bytes a document beside the token files": beside / max(1, documents),
                "list of sources MB": inputs / 1e6,
                "left out": sum(done.answer["left_out"].values()),
            },
        )
        shutil.rmtree(out)
        shutil.rmtree(source)


def _tiny(folder: Path) -> None:
    with (folder / "tiny.jsonl").open("w", encoding="utf-8") as file:
        for number in range(5_000_000):
            file.write(f'{{"text": "{WORDS[number % 3]} {number}"}}\n')


def _long(text: str, size: int, lines: int = 1) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        with (folder / "long.jsonl").open("w", encoding="utf-8") as file:
            file.write('{"text": "first"}\n')
            for _ in range(lines):
                file.write('{"text": "')
                for _ in range(size // len(text.encode())):
                    file.write(text)
                file.write('"}\n')
            file.write('{"text": "last"}\n')

    return make


def _values(folder: Path) -> None:
    line = '{"text": "few words", "x": [' + "[], " * 50_000_000 + "[]]}\n"
    (folder / "values.jsonl").write_text(f'{line}{{"text": "last"}}\n')


def _page(folder: Path) -> None:
    """As its writer makes one of a thousand long texts, if nobody says how large it may be."""
    texts = [f"{number} " + "some more words " * 62_500 for number in range(1000)]
    pq.write_table(pa.table({"text": texts}), folder / "page.parquet")
    (folder / "last.jsonl").write_text('{"text": "last"}\n')


def _repeated(folder: Path) -> None:
    line = json.dumps({"text": "the same words in every line of a large file. " * 40}) + "\n"
    with (folder / "repeated.jsonl").open("w", encoding="utf-8") as file:
        for _ in range((2 << 30) // len(line) // 1000):
            file.write(line * 1000)


def _row_group(folder: Path) -> None:
    texts = [f"row {number} " + "of a group of one gigabyte " * 400 for number in range(100_000)]
    pq.write_table(pa.table({"text": texts}), folder / "rows.parquet", row_group_size=len(texts))


def _members(folder: Path) -> None:
    with tarfile.open(folder / "members.tar", "w") as archive:
        for number in range(300_000):
            data = f"member {number} with some words".encode()
            entry = tarfile.TarInfo(f"{number // 1000:04d}/{number:06d}.txt")
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))


def _files(folder: Path) -> None:
    for number in range(50_000):
        path = folder / f"{number // 500:03d}" / f"{number:05d}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"file {number} with some words\n" * 8, "utf-8")


KINDS: dict[str, tuple[Callable[[Path], None], list[str]]] = {
    "50,000 files": (_files, []),
    "300,000 members": (_members, []),
    "a row group of 1 GB": (_row_group, []),
    "a line of 50,000,000 values": (_values, ["--on-bad", "skip"]),
    "a page of 1 GB": (_page, ["--on-bad", "skip"]),
    "three lines of 250 MB": (_long("one two three ", 250 * 10**6, 3), []),
    "a line of 250 MB": (_long("one two three ", 250 * 10**6), []),
    "a line of 130 MB with an emoji": (_long(EMOJI, 130 * 10**6), []),
    "a line of 250 MB with an emoji": (_long(EMOJI, 250 * 10**6), ["--on-bad", "skip"]),
    "a line of 500 MB": (_long("one two three ", 500 * 10**6), ["--max-line-bytes", "600000000"]),
    "a file of 2 GiB": (_repeated, []),
    "5,000,000 documents": (_tiny, []),
}
