"""What an audit says of each pool's reading: by tag, dropped, discarded; and of the budget."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.config import recipe_from_plain
from recipe.pools import open_pool
from tests.audit.runs import plain_recipe, read_rows

LANGUAGES = ("de", "en", "zh")


@pytest.fixture(scope="module")
def tagged(tmp_path_factory) -> Path:
    """A run over a pool whose documents have a language and, some, where else they were found (D4)."""
    root = tmp_path_factory.mktemp("tagged")
    chance = np.random.default_rng(1)
    texts = [chance.integers(0, 200, length) for length in chance.integers(1, 80, 60)]
    tags = [{"lang": LANGUAGES[k % 3], **({"also": ["books"]} if k % 5 == 0 else {})} for k in range(60)]
    recipe.write_pool(root / "pools/web", texts, vocab_size=256, eos=255, tags=tags)
    recipe.write_pool(root / "pools/code", texts[:20], vocab_size=256, eos=255)
    stage = {
        "tokens": 4_000,
        "context": 48,
        "batch": {"sequences": 2},
        "chunk": 600,
        "slicing": {"window": 32, "stride": 32, "oversize": "truncate"},
        "quotas": {"web": "60%", "code": "40%"},
    }
    plain = plain_recipe(root, {"one": stage}, pools={"web": {"block_units": 8}, "code": {}}, max_epochs=9)
    with recipe.start_run(recipe_from_plain(plain, source="test"), root / "run") as run:
        for step in (5, 12, 20):
            run.checkpoint(step)
    with recipe.open_run(root / "run", step=5) as run:
        run.checkpoint(14)
    with recipe.open_run(root / "run", step=12) as run:
        run.checkpoint(18)
    return root / "run"


def served(path: Path) -> dict[str, set[tuple[int, int]]]:
    """By pool: (document, token) of every token that was served fresh, by every row."""
    found: dict[str, set[tuple[int, int]]] = {"web": set(), "code": set()}
    with recipe.open_run(path) as run:
        stream = run.stream()
        for step in range(run.step):
            for row in range(2):
                for piece in stream.provenance(step, row):
                    tokens = range(piece.fresh, piece.stop)
                    found[piece.pool].update((int(piece.document), token) for token in tokens)
    return found


def test_D04_D05_documents_and_tokens_by_tag(tagged):
    """A page that was found in two pools keeps where else it was as a tag, and is counted by it."""
    reading = recipe.audit_run(tagged).reading["web"]
    tokens = served(tagged)["web"]
    pool = open_pool(tagged.parent / "pools/web", "web")
    rows = pool.rows(range(60))
    for tag, value, holds in (
        ("lang", "de", lambda row: row.tags["lang"] == "de"),
        ("lang", "zh", lambda row: row.tags["lang"] == "zh"),
        ("also", '["books"]', lambda row: "also" in row.tags),
    ):
        those = {row.document for row in rows if holds(row)}
        found = reading.tags[tag][value]
        assert found.documents == len(those)
        assert found.tokens == sum(row.tokens for row in rows if row.document in those)
        assert found.distinct == len({document for document, _ in tokens} & those)
        assert found.covered == sum(document in those for document, _ in tokens)
    assert sum(found.covered for found in reading.tags["lang"].values()) == reading.spread.covered


def test_D05_a_pool_without_tags_says_none_and_is_counted_all_the_same(tagged):
    audit = recipe.audit_run(tagged)
    tokens = served(tagged)["code"]
    assert audit.reading["code"].tags == {}
    assert audit.reading["code"].spread.covered == len(tokens)
    assert audit.reading["code"].spread.distinct == len({document for document, _ in tokens})


def test_tokens_dropped_and_discarded_are_those_on_record(tagged):
    rows = read_rows(tagged)
    reading = recipe.audit_run(tagged).reading
    last = [row for row in rows if row["kind"] == "checkpoint"][-1]
    discarded = Counter()
    for row in rows:
        if row["kind"] == "rewind":
            discarded["web"] += row["discarded"]["web"]["body"]
    assert sum(row["kind"] == "rewind" for row in rows) == 2
    assert reading["web"].discarded["body"] == discarded["web"] > 0
    assert (
        reading["web"].dropped == last["snapshot"]["pools"][0]["dropped"]
        and reading["web"].dropped["oversize"]
    )


def test_a_budget_adds_up(tagged, recorded):
    for path in (tagged, recorded):
        audit = recipe.audit_run(path)
        budget, last = audit.budget, read_rows(path)[-1]
        assert sum(stage.consumed for stage in budget.stages.values()) == last["positions"]
        for stage in budget.stages.values():
            assert stage.consumed + stage.left == stage.length + stage.overshoot
        assert budget.owed == budget.spent == sum(pool["spent"] for pool in last["cumulative"].values())


def test_a_pool_that_is_not_here_says_so(recorded, tmp_path):
    reading = recipe.audit_run(recorded, pools_root=tmp_path).reading["web"]
    assert reading.spread is None and "not here" in reading.note and reading.begun > 0


def test_the_json_of_a_reading(tagged):
    plain = json.loads(json.dumps(recipe.audit_run(tagged).to_plain()))["reading"]["web"]
    assert plain["distinct"] + plain["readings"].get("0", 0) == plain["documents"] == 60
    assert plain["tags"]["lang"]["en"]["documents"] == 20
    assert set(plain["discarded"]) >= {"spent", "body", "overlap", "special", "padding"}


def test_metadata_without_the_document_table_know_no_tags(tagged, tmp_path):
    from recipe.pools.metadata import copy_metadata

    for name in ("web", "code"):
        copy_metadata(open_pool(tagged.parent / "pools" / name, name), tmp_path / "pools" / name)
    bare = recipe.audit_run(tagged, metadata_only=True, pools_root=tmp_path)
    whole = recipe.audit_run(tagged)
    assert bare.reading["web"].tags == {} and bare.reading["web"].spread == whole.reading["web"].spread
