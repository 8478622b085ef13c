"""Text → pool: all of it, in an order that depends on nothing but seed and names, through any accident."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from recipe.errors import RecipeError
from recipe.pools import PoolWriter, grown_from, open_pool, write_pool
from recipe.text.documents import Document
from recipe.text.inputs import MadeInput
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_documents, prepare_pool
from recipe.text.sources import ReadOptions
from recipe.text.tokenizers import ByteTokenizer, load_tokenizer
from tests.text.cut import Stop, contents, stopping
from tests.text.stored import write_jsonl

BYTES = ByteTokenizer()


def records(count, **more):
    return [{"id": i, "text": f"document {i} " + "x" * (i % 40), **more} for i in range(count)]


def listing(pool):
    numbers = np.arange(pool.num_documents)
    return list(zip(pool.ids(numbers), map(BYTES.decode, map(pool.tokens, numbers)), strict=True))


def test_every_document_is_stored_once_with_one_end(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(50))
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES)
    assert sorted(listing(pool)) == [(r["id"], r["text"]) for r in records(50)]
    assert listing(pool) != sorted(listing(pool))
    assert pool.card.special_tokens == 50
    assert (pool.card.eos, pool.card.vocab_size, pool.card.tokenizer) == (256, 257, BYTES.fingerprint())
    assert (pool.card.shuffled, pool.card.seed) == (True, 0)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "pool"]


def test_the_order_depends_on_the_seed(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(50))
    orders = [
        listing(prepare_pool([tmp_path / "a.jsonl"], tmp_path / f"{seed}", BYTES, PrepareOptions(seed=seed)))
        for seed in (1, 2)
    ]
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1])


def test_documents_with_ids_come_in_one_order_however_they_are_spread(tmp_path):
    everything = records(60)
    write_jsonl(tmp_path / "one" / "a.jsonl", everything)
    for part in range(3):
        write_jsonl(tmp_path / "three" / f"{part}.jsonl", everything[part::3][::-1])
    one, three = (prepare_pool([tmp_path / name], tmp_path / f"p-{name}", BYTES) for name in ("one", "three"))
    assert listing(one) == listing(three)
    assert one.part(0).tobytes() == three.part(0).tobytes()


def test_S04_the_order_in_which_files_were_made_changes_nothing(tmp_path):
    names = ["c", "a", "b", "x/2", "x/1"]
    for folder, order in (("one", names), ("two", names[::-1])):
        for name in order:
            write_jsonl(tmp_path / folder / f"{name}.jsonl", [{"text": name}])
    one, two = (prepare_pool([tmp_path / name], tmp_path / f"p-{name}", BYTES) for name in ("one", "two"))
    assert one.fingerprint == two.fingerprint


def test_groups_stay_together_in_the_order_of_their_source(tmp_path):
    for part in range(3):
        rows = [
            {"id": 100 * part + i, "text": "t", "repo": f"r{i % 4}" if i % 5 else None} for i in range(20)
        ]
        write_jsonl(tmp_path / "in" / f"{part}.jsonl", rows)
    options = PrepareOptions(read=ReadOptions(group_key="repo"))
    pool = prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES, options)
    ids = pool.ids(np.arange(60))
    units = [ids[a:b] for a, b in zip(pool.units[:-1], pool.units[1:], strict=True)]
    assert pool.num_units == len(units) == 4 + 12
    for name in range(4):
        members = [i for i in range(300) if i % 100 < 20 and i % 100 % 5 and i % 100 % 4 == name]
        assert members in units


def big_input(folder, count=400):
    """Three files, 4 MB by default: several tasks."""
    for part in range(3):
        rows = [{"text": f"{part} {i} " + "the quick brown fox " * (2 * i % 400)} for i in range(count)]
        write_jsonl(folder / f"{part}.jsonl", rows)
    return folder


def test_workers_change_no_byte(tmp_path, tokenizer_file):
    source = big_input(tmp_path / "in")
    tokenizer = load_tokenizer(tokenizer_file)
    one, two = (
        prepare_pool([source], tmp_path / f"{workers}", tokenizer, PrepareOptions(workers=workers))
        for workers in (1, 2)
    )
    assert contents(one.path) == contents(two.path)
    assert one.num_documents == 1_200


def test_a_bad_record_met_in_a_worker_is_told_with_its_place(tmp_path, tokenizer_file):
    source = big_input(tmp_path / "in")
    with (source / "1.jsonl").open("a") as file:
        file.write('{"body": 1}\n')
    with pytest.raises(RecipeError, match=r"1\.jsonl:401"):
        prepare_pool([source], tmp_path / "pool", load_tokenizer(tokenizer_file), PrepareOptions(workers=2))
    assert not (tmp_path / "pool").exists()


def test_cut_anywhere_it_goes_on_to_the_same_bytes(tmp_path):
    source = big_input(tmp_path / "in")
    options = PrepareOptions(workers=1, part_tokens=1_500_000)
    tell, calls = stopping(0)
    whole = contents(prepare_pool([source], tmp_path / "whole", BYTES, options, progress=tell).path)
    assert len(calls) > 8
    for at in range(1, len(calls) + 1):
        out = tmp_path / f"cut-{at}"
        with pytest.raises(Stop):
            prepare_pool([source], out, BYTES, options, progress=stopping(at)[0])
        assert not out.exists()
        prepare_pool([source], out, BYTES, options)
        assert contents(out) == whole


def test_what_is_done_is_not_done_again(tmp_path):
    source = big_input(tmp_path / "in")
    with pytest.raises(Stop):
        prepare_pool([source], tmp_path / "pool", BYTES, progress=stopping(2)[0])
    first = tmp_path / ".pool.prepare" / "task-000000.json"
    before = first.stat().st_mtime_ns
    with pytest.raises(Stop):
        prepare_pool([source], tmp_path / "pool", BYTES, progress=stopping(3)[0])
    assert first.stat().st_mtime_ns == before


@pytest.mark.parametrize("change", ["input", "tokenizer", "option"])
def test_an_interrupted_preparation_of_something_else_is_begun_anew(tmp_path, tokenizer_file, change):
    source = big_input(tmp_path / "in", 150)
    tokenizer, options = BYTES, PrepareOptions()
    with pytest.raises(Stop):
        prepare_pool([source], tmp_path / "pool", tokenizer, options, progress=stopping(1)[0])
    if change == "input":
        write_jsonl(source / "0.jsonl", records(10))
    elif change == "tokenizer":
        tokenizer = load_tokenizer(tokenizer_file)
    else:
        options = PrepareOptions(seed=5)
    told = []
    after = prepare_pool([source], tmp_path / "pool", tokenizer, options, progress=told.append)
    fresh = prepare_pool([source], tmp_path / "fresh", tokenizer, options)
    assert contents(after.path) == contents(fresh.path)
    assert any("something else" in progress.text for progress in told)


def test_a_pool_of_the_same_is_used_as_it_is_even_when_moved_or_touched(tmp_path):
    write_jsonl(tmp_path / "in" / "a.jsonl", records(20))
    first = prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES)
    made = (tmp_path / "pool" / "card.json").stat().st_mtime_ns
    (tmp_path / "in").rename(tmp_path / "moved")
    os.utime(tmp_path / "moved" / "a.jsonl")
    told = []
    again = prepare_pool([tmp_path / "moved"], tmp_path / "pool", BYTES, progress=told.append)
    assert (tmp_path / "pool" / "card.json").stat().st_mtime_ns == made
    assert again.fingerprint == first.fingerprint
    assert "up to date" in told[-1].text


def test_a_pool_of_something_else_is_refused_with_the_difference(tmp_path, tokenizer_file):
    write_jsonl(tmp_path / "a.jsonl", records(20))
    source = [tmp_path / "a.jsonl"]
    prepare_pool(source, tmp_path / "pool", BYTES)
    with pytest.raises(RecipeError, match=r"seed\n +given +3\n +expected +0"):
        prepare_pool(source, tmp_path / "pool", BYTES, PrepareOptions(seed=3))
    with pytest.raises(RecipeError, match="tokenizer"):
        prepare_pool(source, tmp_path / "pool", load_tokenizer(tokenizer_file))
    write_jsonl(tmp_path / "a.jsonl", records(20)[::-1])
    with pytest.raises(RecipeError, match=r"a\.jsonl\n +given +changed"):
        prepare_pool(source, tmp_path / "pool", BYTES)


def test_overwrite_replaces_a_pool_when_the_new_one_is_whole(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(20))
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES).fingerprint
    write_jsonl(tmp_path / "a.jsonl", records(30))
    options = PrepareOptions(overwrite=True)
    with pytest.raises(Stop):
        prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, options, progress=stopping(2)[0])
    assert open_pool(tmp_path / "pool", "pool").fingerprint == old
    new = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, options)
    assert (new.num_documents, new.path) == (30, tmp_path / "pool")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "pool"]


def test_a_replacement_cut_between_its_two_renames_loses_no_pool(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(20))
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES).fingerprint
    (tmp_path / ".pool.prepare").mkdir()
    (tmp_path / "pool").rename(tmp_path / ".pool.prepare" / "old")
    assert prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES).fingerprint == old
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "pool"]


def test_a_folder_that_is_no_pool_is_never_written_over(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(2))
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "chapter.txt").write_text("years of work")
    with pytest.raises(RecipeError, match="no pool"):
        prepare_pool([tmp_path / "a.jsonl"], tmp_path / "thesis", BYTES, PrepareOptions(overwrite=True))


def prepared_key(pool):
    return pool.card.source["prepared"]


def test_C02_the_key_of_tokens_depends_on_content_alone(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(20))
    source = [tmp_path / "a.jsonl"]
    keys = {prepared_key(prepare_pool(source, tmp_path / name, BYTES)) for name in ("one", "two")}
    keys.add(prepared_key(prepare_pool(source, tmp_path / "three", BYTES, PrepareOptions(workers=2))))
    assert len(keys) == 1
    keys.add(prepared_key(prepare_pool(source, tmp_path / "four", BYTES, PrepareOptions(seed=1))))
    assert len(keys) == 2


def test_C01_another_vocabulary_is_another_key(tmp_path, tokenizer_file, train):
    write_jsonl(tmp_path / "a.jsonl", records(5))
    (tmp_path / "t").mkdir()
    train(vocab_size=300).save(str(tmp_path / "t" / "tokenizer.json"))
    tokenizers = [BYTES, load_tokenizer(tokenizer_file), load_tokenizer(tmp_path / "t")]
    keys = {
        prepared_key(prepare_pool([tmp_path / "a.jsonl"], tmp_path / f"{number}", tokenizer))
        for number, tokenizer in enumerate(tokenizers)
    }
    assert len(keys) == 3


def test_C04_two_folders_with_equal_file_names_make_one_pool_of_both(tmp_path):
    write_jsonl(tmp_path / "web" / "part0.jsonl", [{"text": "w" * 100}])
    write_jsonl(tmp_path / "code" / "part0.jsonl", [{"text": "c" * 50}])
    pool = prepare_pool([tmp_path / "web", tmp_path / "code"], tmp_path / "pool", BYTES)
    assert pool.stock == 150
    assert sorted(pool.ids([0, 1])) == ["code/part0.jsonl:1", "web/part0.jsonl:1"]


@pytest.mark.parametrize("texts", [["", "a b", ""], ["a b", "", ""], ["", "", "a b"]])
def test_D01_empty_documents_are_counted_not_stored(tmp_path, texts):
    write_jsonl(tmp_path / "a.jsonl", [{"text": text} for text in texts])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES)
    assert (pool.num_documents, pool.stock, pool.card.special_tokens) == (1, 3, 1)
    assert pool.card.dropped == {"empty": 2}


def test_what_was_left_out_is_counted_and_kept_apart(tmp_path):
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "one"}\n{"body": 1}\n{"text": "\\ud800"}\n\n{"text": ""}\n')
    options = PrepareOptions(read=ReadOptions(on_bad="skip"))
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES, options)
    assert pool.card.dropped == {"empty": 1, "lone_surrogate": 1, "text_missing": 1}
    rows = [json.loads(line) for line in (tmp_path / "pool" / "quarantine.jsonl").read_text().splitlines()]
    assert [(row["source"], row["line"], row["reason"]) for row in rows] == [
        ("a.jsonl", 2, "text_missing"),
        ("a.jsonl", 3, "lone_surrogate"),
    ]
    read = json.loads((tmp_path / "pool" / "prepare.json").read_text())["read"]
    assert read["read"] == read["kept"] + read["empty"] + sum(read["quarantined"].values()) == 4


def test_N01_ids_above_16_bits_are_read_back(tmp_path):
    vocab = {"<|endoftext|>": 0, "a": 70_000, "b": 100_257, "[UNK]": 119_546}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    write_jsonl(tmp_path / "a.jsonl", [{"text": "a b c"}])
    pool = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", load_tokenizer(tmp_path))
    assert pool.tokens(0).tolist() == [70_000, 100_257, 119_546]


def test_groups_of_records_and_of_folders_are_not_asked_for_together():
    with pytest.raises(RecipeError, match="group_depth\n    given     1 with group_key 'repo'"):
        ReadOptions(group_key="repo", group_depth=1)


def test_repeated_ids_are_named_with_both_places_and_places_can_be_the_ids(tmp_path):
    for part in range(2):
        write_jsonl(tmp_path / "in" / f"{part}.jsonl", records(10)[4 * part :])
    with pytest.raises(RecipeError) as caught:
        prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES)
    assert len(caught.value.problems) == 6
    assert "id 4, as 0.jsonl:5" in str(caught.value) and "--place-ids" in str(caught.value)
    assert not (tmp_path / "pool").exists()
    options = PrepareOptions(read=ReadOptions(place_ids=True))
    pool = prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES, options)
    assert pool.find("1.jsonl:6") >= 0


def test_the_same_number_and_text_are_two_ids(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": 1, "text": "a"}, {"id": "1", "text": "b"}])
    assert prepare_pool([tmp_path / "a.jsonl"], tmp_path / "pool", BYTES).num_documents == 2


def test_repeated_ids_are_found_before_all_is_read(tmp_path):
    write_jsonl(tmp_path / "in" / "0.jsonl", [{"id": 1, "text": "a"}, {"id": 1, "text": "b"}])
    write_jsonl(tmp_path / "in" / "1.jsonl", [{"id": i, "text": "x" * 1_000_000} for i in range(2, 32)])
    told = []
    with pytest.raises(RecipeError, match="id 1"):
        prepare_pool([tmp_path / "in"], tmp_path / "pool", BYTES, progress=told.append)
    assert told[-1].done < told[-1].total * 0.6


def test_documents_of_a_program_are_known_by_what_it_says_of_itself(tmp_path):
    made = [Document(id=i, text="t" * i, source="made") for i in range(10)]
    pool = prepare_documents(MadeInput(lambda: made, {"origin": "v1"}), tmp_path / "pool", BYTES)
    assert (pool.num_documents, pool.card.dropped, pool.card.source["origin"]) == (9, {"empty": 1}, "v1")
    with pytest.raises(RecipeError, match="prepared from something else"):
        prepare_documents(MadeInput(lambda: made, {"origin": "v2"}), tmp_path / "pool", BYTES)


SCRIPT = """
import sys, resource
from recipe.errors import RecipeError
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer
from recipe.text.preparation import PrepareOptions
if __name__ == "__main__":
    source, out, tokenizer, limit, workers = sys.argv[1:]
    if int(limit):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
    try:
        options = PrepareOptions(workers=int(workers))
        print(prepare_pool([source], out, load_tokenizer(tokenizer), options).fingerprint)
    except RecipeError as error:
        print(error)
        sys.exit(2)
"""


def start(source, out, tokenizer="bytes", limit=0, workers=1):
    command = [sys.executable, "-c", SCRIPT, source, out, tokenizer, limit, workers]
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)


def test_X01_processes_that_start_at_once_make_one_pool(tmp_path):
    source = big_input(tmp_path / "in", 100)
    running = [start(source, tmp_path / "pool") for _ in range(4)]
    answers = {process.communicate()[0] for process in running}
    assert {process.returncode for process in running} == {0}
    assert answers == {open_pool(tmp_path / "pool", "pool").fingerprint + "\n"}
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in", "pool"]


def test_F06_a_full_disk_is_told_with_bytes_and_the_second_try_succeeds(tmp_path):
    source = big_input(tmp_path / "in", 100)
    full = start(source, tmp_path / "pool", limit=200_000)
    message = full.communicate()[0]
    assert full.returncode == 2
    assert "no space left" in message and "bytes" in message
    assert not (tmp_path / "pool").exists()
    second = start(source, tmp_path / "pool")
    second.communicate()
    assert second.returncode == 0


def test_a_killed_preparation_goes_on_and_leaves_no_process(tmp_path, tokenizer_file):
    source = big_input(tmp_path / "in")
    killed = start(source, tmp_path / "pool", tokenizer_file, workers=2)
    while not list(tmp_path.glob(".pool.prepare/task-*.json")) and killed.poll() is None:
        time.sleep(0.01)
    killed.send_signal(signal.SIGKILL)
    killed.communicate()  # ends when the last worker that holds its output has ended
    assert not (tmp_path / "pool").exists()
    tokenizer = load_tokenizer(tokenizer_file)
    after = prepare_pool([source], tmp_path / "pool", tokenizer, PrepareOptions(workers=1))
    fresh = prepare_pool([source], tmp_path / "fresh", tokenizer, PrepareOptions(workers=1))
    assert contents(after.path) == contents(fresh.path)


PEAK_OF_A_LONG_LINE = """
import sys
from pathlib import Path
import recipe  # noqa: F401
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer

def peak():
    status = Path("/proc/self/status").read_text()
    return 1024 * int(status.split("VmHWM:")[1].split()[0])

folder = Path(sys.argv[1])
for name in ("short", "long"):
    before = peak()
    sources = [folder / f"{name}.jsonl"]
    prepare_pool(sources, folder / name, load_tokenizer("bytes"), PrepareOptions(workers=1))
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_T04_a_line_of_20_mib_takes_a_few_times_its_size_through_both_passes(tmp_path):
    """About three times; the bound leaves room for other allocators."""
    (tmp_path / "short.jsonl").write_text('{"text": "one"}\n')
    line = json.dumps({"text": "one two " * (20 << 17)})
    (tmp_path / "long.jsonl").write_text('{"text": "one"}\n' + line + '\n{"text": "three"}\n')
    words = [sys.executable, "-c", PEAK_OF_A_LONG_LINE, str(tmp_path)]
    done = subprocess.run(words, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 5 * len(line)
    with open_pool(tmp_path / "long", "long") as pool:
        assert sorted(np.diff(pool.offsets).tolist()) == [4, 6, (20 << 20) + 1]


def test_a_prepared_pool_is_extended_by_what_is_new(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [*records(30), {"id": "none", "text": ""}])
    write_jsonl(tmp_path / "b.jsonl", [{"id": f"new {i}", "text": "y" * (i + 1)} for i in range(20)])
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(part_tokens=200))
    more = PrepareOptions(part_tokens=100, extends=tmp_path / "old")
    new = prepare_pool([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more)
    assert listing(new)[:30] == listing(old)
    assert sorted(listing(new)[30:]) == sorted((f"new {i}", "y" * (i + 1)) for i in range(20))
    assert grown_from(old, new) == grown_from(old.fingerprint, new)
    assert (new.card.shuffled, new.card.dropped) == (False, {"empty": 1})
    assert new.verify(full=True) == []
    told = []
    again = prepare_pool([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more, progress=told.append)
    assert again.fingerprint == new.fingerprint
    assert "up to date" in told[0].text


def test_a_group_of_the_extended_pool_that_comes_again_is_named_and_nothing_is_written(tmp_path):
    """Sorting helps nobody: the fix is another key, or all texts again."""
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": "x" * (i + 1), "g": f"g{i % 5}"} for i in range(20)])
    rows = [{"id": f"b{i}", "text": "y" * (i + 1), "g": group} for i, group in enumerate(["g3", "new", "g3"])]
    write_jsonl(tmp_path / "b.jsonl", rows)
    read = ReadOptions(group_key="g")
    old = prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(read=read))
    there = sorted(tmp_path.iterdir())
    more = PrepareOptions(read=read, extends=old.path)
    with pytest.raises(RecipeError) as error:
        prepare_pool([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more)
    (problem,) = error.value.problems
    first = next(row for row in old.rows(np.arange(20)) if row.group == "g3")
    at = [row.id for row in old.rows(np.arange(20))].index(first.id)
    assert problem.where == "b.jsonl:1"
    assert problem.given == f"group 'g3', which the extended pool has: document {at} (id {first.id!r})"
    assert str(old.path) in problem.expected
    assert "--group-key" in problem.fix and "sort" not in problem.fix
    assert sorted(tmp_path.iterdir()) == there
    with PoolWriter(
        tmp_path / "new", vocab_size=257, eos=256, tokenizer=old.card.tokenizer, extends=old
    ) as new:
        new.add([1], id="b", group="g3")
        with pytest.raises(RecipeError, match="another group, or make one pool anew"):
            new.close()


def test_a_copy_of_a_group_s_document_that_is_left_out_scatters_no_group(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", [{"id": i, "text": "x" * (i + 1), "g": "one"} for i in range(3)])
    write_jsonl(
        tmp_path / "b.jsonl", [{"id": "b", "text": "xx", "g": "one"}, {"id": "c", "text": "y", "g": "two"}]
    )
    read = ReadOptions(group_key="g")
    prepare_pool([tmp_path / "a.jsonl"], tmp_path / "old", BYTES, PrepareOptions(read=read))
    more = PrepareOptions(read=read, extends=tmp_path / "old", duplicates="drop")
    new = prepare_pool([tmp_path / "b.jsonl"], tmp_path / "new", BYTES, more)
    assert (new.num_documents, new.card.dropped) == (4, {"duplicate": 1})


def test_what_another_tokenizer_makes_is_not_appended_and_nothing_is_read_for_it(tmp_path):
    write_jsonl(tmp_path / "a.jsonl", records(5))
    write_pool(tmp_path / "old", [[1, 2]], vocab_size=257, eos=256)
    with pytest.raises(RecipeError, match="tokenizer"):
        prepare_pool(
            [tmp_path / "a.jsonl"], tmp_path / "new", BYTES, PrepareOptions(extends=tmp_path / "old")
        )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.jsonl", "old"]
