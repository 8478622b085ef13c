"""Small corpora of every kind, written with the libraries that people write them with."""

from __future__ import annotations

import io
import json
import tarfile

import pyarrow as pa
import pyarrow.parquet as pq

from recipe.text.documents import Tally
from recipe.text.readers import read_documents
from recipe.text.sources import ReadOptions

RECORDS = [
    {"id": f"d{i}", "text": f"text {i} é\n{'x' * (i % 5)}", "lang": ("en", "zh")[i % 2]} for i in range(25)
]


def read(path, **options):
    """Documents, tally, refusals; what is read is what is kept, empty or refused."""
    tally, refused = Tally(), []
    documents = list(read_documents([path], ReadOptions(**options), tally=tally, quarantine=refused.append))
    assert tally.read == len(documents) + tally.empty + len(refused)
    return documents, tally, refused


def write_jsonl(path, records=RECORDS):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")


def write_parquet(path, records=RECORDS, row_group_size=7, **options):
    table = records if isinstance(records, pa.Table) else pa.Table.from_pylist(records)
    pq.write_table(table, path, row_group_size=row_group_size, **options)


def write_arrow(path, records=RECORDS, *, stream=True, batch=7):
    table = records if isinstance(records, pa.Table) else pa.Table.from_pylist(records)
    new = pa.ipc.new_stream if stream else pa.ipc.new_file
    with new(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=batch)


def write_arrow_file(path, records=RECORDS):
    write_arrow(path, records, stream=False)


def write_tar(path, members, mode="w"):
    """``members``: (name, bytes)."""
    with tarfile.open(path, mode) as tar:
        for name, data in members:
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def members_of(records=RECORDS):
    """A text and the rest, for each record."""
    for number, record in enumerate(records):
        rest = {key: value for key, value in record.items() if key != "text"}
        yield f"{number:04d}.txt", record["text"].encode()
        yield f"{number:04d}.json", json.dumps(rest).encode()
