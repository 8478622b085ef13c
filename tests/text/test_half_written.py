"""Preparations that end badly: what is wrong leaves nothing, what is cut goes on to the same bytes."""

import os
import signal
import sys
from pathlib import Path

import numpy as np
import pytest

from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.about import describe_pool
from recipe.pools.dedup import dedup_pools
from recipe.pools.renumbering import copy_without
from recipe.pools.splits import parse_split
from recipe.pools.splitting import split_pool
from recipe.pools.workplace import Workplace, move_whole
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool, prepare_splits
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()
SPLIT = parse_split("train=1/2,validation=1/2")


def units(id, group, needs=()):
    return {"text": f"text {id}", "g": group, "units": [{"start": 0, "id": f"s{id}", "needs": list(needs)}]}


def options(**more):
    return PrepareOptions(**{"workers": 1, "part_tokens": 40, **more})


@pytest.mark.parametrize("split", [None, SPLIT])
def test_a_fault_that_closing_finds_leaves_nothing(tmp_path, split):
    rows = [units(i, f"g{i}") for i in range(40)] + [units(99, "g7", ["nowhere"])]
    write_jsonl(tmp_path / "a.jsonl", rows)
    read = ReadOptions(group_key="g", units_key="units")
    prepare = prepare_pool if split is None else prepare_splits
    with pytest.raises(RecipeError, match="needs 'nowhere'") as error:
        prepare([tmp_path / "a.jsonl"], tmp_path / "out", BYTES, options(read=read, split=split))
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]
    assert str(error.value).startswith(str(tmp_path / "out")) and ".prepare" not in str(error.value)


def test_a_split_of_nothing_leaves_nothing(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": "alone"}])
    with pytest.raises(RecipeError, match="at least one"):
        prepare_splits([tmp_path / "a.jsonl"], tmp_path / "out", BYTES, options(split=SPLIT))
    assert [path.name for path in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize("split", [None, SPLIT])
def test_cut_while_it_is_closed_it_goes_on_to_the_same_bytes(tmp_path, monkeypatch, split):
    """At every file that only the writing needed, and that closing removes."""
    write_jsonl(tmp_path / "a.jsonl", [{"text": f"text {i}"} for i in range(24)])
    prepare = prepare_pool if split is None else prepare_splits
    wanted = {"options": options(split=split)}
    prepare([tmp_path / "a.jsonl"], tmp_path / "whole", BYTES, **wanted)
    unlink = Path.unlink
    for cut in range(1, 40):
        left = [cut]

        def stop(path, missing_ok=False, left=left):
            if path.parent.suffix == ".partial" and path.name != "writer.lock":
                left[0] -= 1
                if not left[0]:
                    raise Stop
            unlink(path, missing_ok=missing_ok)

        out = tmp_path / f"out-{cut}"
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", stop)
            try:
                prepare([tmp_path / "a.jsonl"], out, BYTES, **wanted)
            except Stop:
                assert not (out / "validation").exists()
        prepare([tmp_path / "a.jsonl"], out, BYTES, **wanted)
        assert contents(out) == contents(tmp_path / "whole")
        if left[0] > 0:
            break
    assert cut > 6
    assert not list(tmp_path.glob(".out*")) and not list(tmp_path.glob("*.partial"))


def test_no_pool_of_a_split_is_seen_before_all_are_whole(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": f"text {i}"} for i in range(24)])
    wanted = options(split=SPLIT)
    prepare_splits([tmp_path / "a.jsonl"], tmp_path / "whole", BYTES, wanted)
    for cut in range(1, 20):
        try:
            prepare_splits([tmp_path / "a.jsonl"], tmp_path / "out", BYTES, wanted, progress=stopping(cut)[0])
        except Stop:
            assert not (tmp_path / "out").exists()
        else:
            break
    assert cut > 3
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")


def test_what_a_killed_call_had_still_to_remove_goes_with_the_next_one(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"text": "t"}])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "out", BYTES, options())
    (tmp_path / ".out.prepare").mkdir()
    (tmp_path / ".out.prepare" / "task-000000.tokens").write_bytes(b"t")
    (tmp_path / "out" / "writer.lock").write_text("another process")
    assert prepare_pool([tmp_path / "a.jsonl"], tmp_path / "out", BYTES, options()).path == pool.path
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "out"]
    assert "writer.lock" not in contents(tmp_path / "out")


def test_the_lock_of_a_writer_at_work_stays(tmp_path):
    place = Workplace(tmp_path / "out")
    (place.folder / "card.json").write_text("{}")
    move_whole(place.folder, tmp_path / "out")
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["card.json", "writer.lock"]
    place.release()


COPIES = {
    "renumber": lambda old, out: copy_without(old, np.array([3]), out, reason="asked"),
    "dedup": lambda old, out: dedup_pools([old.path], out),
    "split": lambda old, out: split_pool(old, SPLIT, out),
}


@pytest.mark.parametrize("copy", COPIES)
def test_a_copy_is_seen_when_all_that_is_said_beside_it_is_there(tmp_path, copy):
    """Killed at a file that it opens, renames or removes, it goes on to the same bytes."""
    write_jsonl(tmp_path / "a.jsonl", [{"text": f"text {i % 20}"} for i in range(24)])
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, options())
    describe_pool(old.path, {"kind": "public"})
    old = open_pool(old.path, "old")
    COPIES[copy](old, tmp_path / "whole")
    whole = contents(tmp_path / "whole")
    for cut in range(1, 200, 2 if copy == "renumber" else 7):
        out = tmp_path / f"out{cut}"
        if killed(cut, out, lambda out=out: COPIES[copy](old, out)):
            for card in out.rglob("card.json"):
                if ".partial" not in str(card):
                    assert b"public" in card.read_bytes() and (card.parent / "prepare.json").is_file()
            if copy != "renumber" or not out.exists():  # else it is whole
                COPIES[copy](old, out)
                assert contents(out) == whole
        else:
            break
    assert cut > 10


def killed(cut, out, call):
    """Whether a call ended with a kill at the operation on files of a folder that is number ``cut``."""
    if pid := os.fork():
        return os.waitpid(pid, 0)[1] != 0
    left = [cut]

    def hook(event, args):
        writes = event == "open" and isinstance(args[2], int) and args[2] & (os.O_WRONLY | os.O_RDWR)
        if (writes or event in ("os.rename", "os.remove")) and str(args[0]).startswith(str(out)):
            left[0] -= 1
            if not left[0]:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(hook)
    call()
    os._exit(0)
