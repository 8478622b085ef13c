"""Read = kept + duplicate + other split + quarantined + empty: any kind, policy, split, extension, cut."""

from __future__ import annotations

import gzip
import json
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from recipe.errors import RecipeError
from recipe.pools.beside import QUARANTINE_NAME
from recipe.pools.renumbering import copy_without
from recipe.pools.sheet import left_out
from recipe.pools.splits import parse_split
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_arrow, write_jsonl, write_parquet, write_tar

BYTES = ByteTokenizer()
SPLIT = parse_split("train=1/2,validation=1/2")
TEXTS = st.sampled_from(["", "", "a", "b", "c", "d", "é", "two\u2028lines\u0085", "e" * 70])
LINES = st.one_of(
    TEXTS.map(lambda text: json.dumps({"text": text}).encode()),
    st.sampled_from(
        [
            b"no record", b"[]", b"7", b"{}", b'{"text": null}', b'{"text": 7}', b'{"txt": "a"}',
            b'{"text": "a"', b'{"text": "\xff\xfe"}', b'{"text": "ok\\ud800bad"}', b'{"text": NaN}',
            b'\xef\xbb\xbf{"text": "b"}', b'{"text": "a\x00"}', b'{"text": "a", "text": "b"}',
        ]
    ),
)  # fmt: skip
RAW = st.sampled_from([b"", b"a", b"b\n", b"\xff\xfe", "é".encode(), b"\xef\xbb\xbfc", b"\x00"])
FILES = {
    "a.jsonl": st.lists(LINES, max_size=12),
    "b.jsonl.gz": st.lists(LINES, max_size=8),
    "c.parquet": st.lists(st.none() | TEXTS, min_size=1, max_size=8),
    "d.arrow": st.lists(st.none() | TEXTS, min_size=1, max_size=8),
    "e.tar": st.lists(RAW, max_size=6),
    "f": st.lists(RAW, max_size=4),
}
CORPORA = st.fixed_dictionaries({}, optional=FILES).filter(lambda found: any(found.values()))


def write(folder, corpus):
    """The files, and how many records are in them."""
    for name, said in corpus.items():
        path = folder / name
        if name == "a.jsonl":
            path.write_bytes(b"".join(line + b"\n" for line in said))
        elif name == "b.jsonl.gz":
            half = len(said) // 2
            lines = [b"\r\n".join(some) + b"\n" * bool(some) for some in (said[:half], said[half:])]
            path.write_bytes(b"".join(map(gzip.compress, lines)))
        elif name in ("c.parquet", "d.arrow"):
            writer = write_parquet if name == "c.parquet" else write_arrow
            writer(path, pa.table({"text": pa.array(said, pa.string())}))
        elif name == "e.tar":
            write_tar(path, [(f"{i:03d}.txt", data) for i, data in enumerate(said)])
        else:
            path.mkdir()
            for number, data in enumerate(said):
                (path / f"{number}.md").write_bytes(data)
    return sum(map(len, corpus.values()))


def made(folder, out, options, progress=None):
    """Pools by name; cut once where ``progress`` stops."""
    prepare = prepare_pool if options.split is None else prepare_splits
    more = {} if progress is None else {"progress": progress}
    found = prepare([folder], out, BYTES, options, **more)
    return {"": found} if options.split is None else found


@settings(max_examples=40)
@given(
    corpus=CORPORA,
    on_bad=st.sampled_from(["skip", "replace", "error"]),
    duplicates=st.sampled_from(["keep", "drop"]),
    split=st.sampled_from([None, SPLIT]),
    extends=st.booleans(),
    cut=st.integers(0, 6),
)
def test_every_record_read_is_kept_or_left_out_for_a_reason(corpus, on_bad, duplicates, split, extends, cut):
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "in").mkdir()
        wanted = write(folder / "in", corpus)
        options = {"split": split, "workers": 1, "part_tokens": 50, "duplicates": duplicates}
        num_old = 0
        if extends:
            (folder / "before").mkdir()
            write_jsonl(folder / "before" / "o.jsonl", [{"text": text, "id": text} for text in "abcdxyz"])
            old = made(
                folder / "before", folder / "old", PrepareOptions(**options, read=ReadOptions(id_key="id"))
            )
            num_old, options["extends"] = sum(pool.num_documents for pool in old.values()), folder / "old"
        options = PrepareOptions(**options, read=ReadOptions(on_bad=on_bad))
        before = contents(folder)
        try:
            if cut:
                made(folder / "in", folder / "out", options, stopping(cut)[0])
        except (RecipeError, Stop):
            pass
        try:
            pools = made(folder / "in", folder / "out", options)
        except RecipeError:
            assert contents(folder) == before
            return
        check(pools, folder / "out", wanted, num_old)


def check(pools, out, wanted, num_old):
    """What the cards say adds up with what was written, and with what is quarantined."""
    tally = next(iter(pools.values())).card.source["read"]
    refused = out / QUARANTINE_NAME
    rows = refused.read_text().splitlines() if refused.is_file() else []
    new = sum(pool.num_documents for pool in pools.values()) - num_old
    gone = [count for pool in pools.values() for count in pool.card.dropped.values()]
    assert tally["read"] == wanted
    assert len(rows) == sum(tally["quarantined"].values())
    assert new == tally["kept"]
    left = sum(tally.get(key) or 0 for key in ("duplicate", "other_split", "empty"))
    assert tally["read"] == tally["kept"] + left + len(rows), gone
    assert all(left_out(pool.card)["adds_up"] for pool in pools.values())


def test_what_a_copy_left_out_is_counted_in_pools_that_extend_it(tmp_path):
    """Withdrawn and renumbered, extended, and renumbered again: every record read is still accounted for."""
    for name in "ab":
        write_jsonl(tmp_path / f"{name}.jsonl", [{"text": f"{name} {i}"} for i in range(6)])
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(workers=1))
    less = copy_without(old, np.array([1, 4]), tmp_path / "less", reason="asked")
    more = PrepareOptions(workers=1, extends=less.path)
    longer = prepare_pool([tmp_path / "b.jsonl"], tmp_path / "longer", BYTES, more)
    last = copy_without(longer, np.array([0]), tmp_path / "last", reason="asked")
    for pool, gone in ((less, 2), (longer, 2), (last, 3)):
        found = left_out(pool.card)
        assert (found["adds_up"], found["reasons"]) == (True, {"withdrawn": gone})
