"""Pools that grow: the old pool is the beginning of the new one, and that is proven by content."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import Pool, PoolWriter, extend_pool, grown_from, open_pool, write_pool
from recipe.pools.growth import Prefix
from tests.pools.megatron_files import write_pair
from tests.pools.sparse import sparse_pool

OLD = [[5, 6, 7], [1, 2], [9, 9, 9, 9], [3]]
NEW = [[8, 8], [4], [7, 7, 7]]


def bodies(pool: Pool) -> list[list[int]]:
    return [pool.tokens(number).tolist() for number in range(pool.num_documents)]


def old_pool(root: Path, **more: object) -> Pool:
    return write_pool(root / "old", OLD, vocab_size=50, part_tokens=6, **more)  # type: ignore[arg-type]


def test_a_grown_pool_holds_the_old_documents_and_then_the_new(tmp_path: Path):
    old = old_pool(tmp_path, eos=0)
    new = extend_pool(tmp_path / "old", tmp_path / "new", NEW, part_tokens=6)
    assert bodies(new) == OLD + NEW
    assert new.num_parts > old.num_parts
    assert (new.eos, new.stock, new.num_documents) == (0, 16, 7)
    assert [row.id for row in new.rows(range(7))] == list(range(7))
    assert new.verify(full=True) == [] == old.verify(full=True)


def test_a_grown_pool_is_the_one_that_would_be_written_at_once(tmp_path: Path):
    old_pool(tmp_path, eos=0, bos=1)
    new = extend_pool(tmp_path / "old", tmp_path / "new", NEW, part_tokens=6)
    with PoolWriter(tmp_path / "whole", vocab_size=50, eos=0, bos=1, part_tokens=6) as writer:
        for k, document in enumerate(OLD + NEW):
            if k == len(OLD):
                writer._finish_part()
            writer.add(document)
        whole = writer.close()
    assert new.fingerprint == whole.fingerprint
    plain = [
        {k: v for k, v in p.card.to_plain().items() if k not in ("source", "files")} for p in (new, whole)
    ]
    assert plain[0] == plain[1]


def test_token_files_are_linked_and_not_copied_on_one_disk(tmp_path: Path):
    old = old_pool(tmp_path)
    new = extend_pool(tmp_path / "old", tmp_path / "new", NEW)
    for name in old.layout.part_names:
        files = [(tmp_path / pool / f"{name}.bin").stat() for pool in ("old", "new")]
        assert files[0].st_ino == files[1].st_ino
    assert {path.suffix for path in (tmp_path / "new").iterdir()} == {
        ".bin",
        ".idx",
        ".npy",
        ".json",
        ".parquet",
    }
    assert new.card.max_id == old.card.max_id


def test_what_it_was_is_known_from_the_old_pool_and_from_its_fingerprint_alone(tmp_path: Path):
    old = old_pool(tmp_path)
    new = extend_pool(tmp_path / "old", tmp_path / "new", NEW, part_tokens=6)
    newer = extend_pool(tmp_path / "new", tmp_path / "newer", [[2]] * 3)
    right = Prefix(units=4, extent_units=1, documents=4, parts=old.num_parts)
    for grown in (new, newer):
        assert grown_from(old, grown) == grown_from(old.fingerprint, grown) == right
    assert grown_from(new.fingerprint, newer).documents == 7
    assert newer.card.source["extends"][0]["fingerprint"] == old.fingerprint
    assert json.dumps(newer.card.to_plain())
    with pytest.raises(ValueError, match="has not grown"):
        grown_from(new, new)


@pytest.mark.parametrize("groups", [None, [0, 0, 1, 2], ["a", None, "b", None]])
@pytest.mark.parametrize("more", [None, [7, 7, 8], [None, "x", "x"]])
def test_units_of_groups_stay_and_more_may_come(tmp_path: Path, groups: list | None, more: list | None):
    old = old_pool(tmp_path, groups=groups)
    new = extend_pool(tmp_path / "old", tmp_path / "new", NEW, groups=more)
    prefix = grown_from(old, new)
    units = [0, 1, 2, 3, 4] if old.units is None else old.units.tolist()
    assert prefix.units == old.num_units
    assert new.units is None or new.units[: prefix.units + 1].tolist() == units
    assert (new.units is None) == (groups is None and more is None)


def test_a_group_cannot_go_on_in_what_is_appended(tmp_path: Path):
    old_pool(tmp_path, groups=[0, 0, 1, 2])
    for group in (2, 0):
        with pytest.raises(RecipeError, match="of the extended pool"):
            extend_pool(tmp_path / "old", tmp_path / "new", NEW, groups=[group, 4, 5])
    assert not (tmp_path / "new").exists()


def test_ids_are_unique_over_old_and_new(tmp_path: Path):
    old_pool(tmp_path, ids=["a", "b", "c", "d"])
    with pytest.raises(RecipeError, match="'b', as document 1 has"):
        extend_pool(tmp_path / "old", tmp_path / "new", NEW, ids=["x", "b", "y"])
    new = extend_pool(tmp_path / "old", tmp_path / "new", NEW, ids=["x", "y", "z"])
    assert [new.find(name) for name in "abcdxyz"] == list(range(7))


def test_an_interrupted_extension_goes_on_where_it_was(tmp_path: Path):
    old = old_pool(tmp_path)
    keys = {"vocab_size": 50, "part_tokens": 2, "resume": True, "extends": old}
    with PoolWriter(tmp_path / "new", **keys) as writer:  # type: ignore[arg-type]
        writer.add(NEW[0])
        writer.add(NEW[1])
    again = PoolWriter(tmp_path / "new", **keys)  # type: ignore[arg-type]
    assert again.num_documents == 5
    for document in NEW[1:]:
        again.add(document)
    assert bodies(again.close()) == OLD + NEW


def test_documents_of_another_kind_are_refused(tmp_path: Path):
    old = old_pool(tmp_path, eos=0)
    with pytest.raises(RecipeError) as refused:
        PoolWriter(tmp_path / "new", vocab_size=60, tokenizer="other", extends=old)
    assert [p.where for p in refused.value.problems] == ["vocab_size", "eos", "tokenizer"]
    write_pair(tmp_path / "pair", [[[1, 2]]], 3)
    with pytest.raises(RecipeError, match="sorts behind"):
        extend_pool(tmp_path / "pair", tmp_path / "new", NEW)


def test_the_first_part_that_differs_is_named(tmp_path: Path):
    old = old_pool(tmp_path)
    changed = write_pool(
        tmp_path / "changed", [*OLD[:2], [9, 9, 9, 8], *OLD[3:], *NEW], vocab_size=50, part_tokens=6
    )
    with pytest.raises(RecipeError, match=r"part-00001\.bin with other contents"):
        grown_from(old, changed)
    with pytest.raises(RecipeError, match="notes nothing"):
        grown_from(old.fingerprint, changed)
    with pytest.raises(RecipeError, match="2 parts"):
        grown_from(old, write_pool(tmp_path / "same", OLD[::-1], vocab_size=50, part_tokens=6))
    with pytest.raises(RecipeError, match="vocab_size"):
        grown_from(old, write_pool(tmp_path / "wide", OLD + NEW, vocab_size=60, part_tokens=6))


def test_a_note_in_the_card_is_no_proof(tmp_path: Path):
    """The fingerprint of what a pool extends is computed again from its own parts."""
    old = old_pool(tmp_path)
    with PoolWriter(
        tmp_path / "new", vocab_size=50, part_tokens=6,
        source={"extends": [{"fingerprint": old.fingerprint, "parts": 2, "units": 4, "extent_units": 1}]},
    ) as writer:  # fmt: skip
        for document in [[1, 1, 1], [1, 2], [9, 9, 9, 9], [3], *NEW]:
            writer.add(document)
        forged = writer.close()
    with pytest.raises(RecipeError, match="notes nothing it extends"):
        grown_from(old.fingerprint, forged)


def test_pairs_grow_by_pairs_that_sort_behind(tmp_path: Path):
    for name in ("a", "b"):
        write_pair(tmp_path / f"{name}", [[[1, 2]], [[3]], [[4, 5, 6]]], 3)
    old = open_pool(tmp_path, "p")
    then = old.fingerprint
    old_offsets = old.offsets.copy()
    write_pair(tmp_path / "c", [[[1]] * 2, [[3]]], 3)
    new = open_pool(tmp_path, "p")
    assert grown_from(then, new) == Prefix(units=6, extent_units=1, documents=6, parts=2)
    assert np.array_equal(new.offsets[:7], old_offsets)
    write_pair(tmp_path / "aa", [[[1]]], 3)
    with pytest.raises(RecipeError, match="no beginning with fingerprint"):
        grown_from(then, open_pool(tmp_path, "p"))


def test_the_extents_of_a_prefix_are_those_it_had(tmp_path: Path):
    for name, parts in (("old", 2), ("new", 3)):
        sparse_pool(tmp_path / name, 100 * parts, 4, num_parts=parts, extent=1 if name == "new" else 64)
    old, new = (open_pool(tmp_path / name, "p") for name in ("old", "new"))
    assert (old.extent_units, new.extent_units) == (64, 1)
    assert grown_from(old, new).extent_units == 64
