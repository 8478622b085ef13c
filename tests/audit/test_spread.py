"""Distinct documents, readings and tokens covered, against every row that was served (D5)."""

from __future__ import annotations

from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import recipe
from recipe.audit.aligning import lacks_edges
from recipe.audit.ancestry import with_parents
from recipe.audit.chain import read_text
from recipe.audit.course import Course
from recipe.audit.reads import History, histories
from recipe.audit.record import read_recipe
from recipe.audit.spread import Spread, count, from_cursor, spread_of, summed
from recipe.config import recipe_from_plain
from recipe.pools import Pool, open_pool
from tests.audit.runs import plain_recipe, write_pools

NAMES = ("web", "code", "maths")
STAGE: dict[str, Any] = {"context": 48, "batch": {"sequences": 1}, "chunk": 700}
SHARES = {"web": "50%", "code": "30%", "maths": "20%"}


def begin(root: Path, *, tokens: int = 9_000, stages: Any = None, **top: Any) -> Path:
    """A run of one sequence a step: what a step served is one epoch's."""
    one = {**STAGE, "tokens": tokens, "quotas": SHARES}
    plain = plain_recipe(
        root, stages or {"one": one}, pools={name: {"block_units": 8} for name in NAMES}, max_epochs=99, **top
    )
    recipe.start_run(recipe_from_plain(plain, source="test"), root / "run").close()
    return root / "run"


def write(root: Path, **options: Any) -> None:
    write_pools(root, {"web": 40, "code": 25, "maths": 6}, mean=30, **options)


def to_the_end(path: Path, step: int | None = None) -> None:
    with recipe.open_run(path) as run:
        run.checkpoint(run.num_steps if step is None else step)


def audited(path: Path) -> tuple[dict[str, Pool], dict[str, History]]:
    """The pools of a run, and what the audit knows of their reading."""
    text, _ = read_text(path / "ledger.jsonl")
    intent, _ = read_recipe(path, text.row(text.entries[0]))
    assert intent is not None
    course = Course(text, intent, path)
    course.follow()
    assert not any(course.findings.values())
    pools = {n: open_pool(Path(course.holdings[n].get("path", path.parent / "pools" / n)), n) for n in NAMES}
    assert not any([lacks_edges(pool, course.recipes) for pool in pools.values()])
    courses, whole = with_parents(path, course)
    return pools, histories(courses, pools, whole=whole)


def truth(*parts: tuple[Path, range, int]) -> dict[str, Spread]:
    """By every row: the epochs in which each document was read, and the tokens that were ever served fresh.

    Each part is a run, steps of it, and how often its data had begun anew.
    """
    epochs: dict[str, dict[Any, set[tuple[int, int]]]] = {name: defaultdict(set) for name in NAMES}
    seen: dict[str, dict[Any, set[int]]] = {name: defaultdict(set) for name in NAMES}
    for path, steps, life in parts:
        with recipe.open_run(path) as run:
            stream = run.stream()
            pools = dict(zip(stream.pools, stream.ground.pools, strict=True))
            for step in steps:
                pieces = stream.provenance(step, 0)
                for piece in pieces:
                    epochs[piece.pool][piece.document].add(
                        (life, epoch_of(stream.at(step), step, piece.pool))
                    )
                    seen[piece.pool][piece.document].update(range(piece.fresh, piece.stop))
    found = {}
    for name in NAMES:
        readings = Counter(len(times) for times in epochs[name].values())
        readings[0] = pools[name].num_documents - readings.total()
        readings = Counter({times: number for times, number in readings.items() if number})
        covered = sum(map(len, seen[name].values()))
        found[name] = Spread(pools[name].num_documents, dict(readings), pools[name].stock, covered)
    return found


def epoch_of(stream: Any, step: int, name: str) -> int:
    """The epoch of the one sequence that a step served."""
    index, start = stream.pools.index(name), stream.snapshot(step)
    (end,) = stream.walk(start, step + 1)
    before, after = start.pools[index], end.pools[index]
    if before.held != after.held:
        return int(before.held[0].epoch)
    ended = (after.cursor.block, after.cursor.stage) == (0, -1)
    return int(before.cursor.epoch if ended else after.cursor.epoch)


def last_step(path: Path) -> int:
    with recipe.open_run(path) as run:
        return run.step


def agree(path: Path, *parts: tuple[Path, range, int], plain: bool | None = None) -> dict[str, Spread]:
    """The audit's answer, which is the truth; by counting and, where it may, from the cursor alone."""
    pools, known = audited(path)
    right = truth(*(parts or ((path, range(last_step(path)), 0),)))
    for name in NAMES:
        counted = summed(pools[name], count(pools[name], known[name]))
        assert counted == right[name], name
        quick = from_cursor(pools[name], known[name])
        assert quick is None or quick == right[name], name
        assert plain is None or (quick is not None) is plain, name
        assert spread_of(pools[name], known[name]) == right[name]
    return right


@pytest.mark.parametrize("stop", [0, 1, 7, 60, None])
def test_D05_what_was_read_is_counted_document_by_document(tmp_path, stop):
    write(tmp_path)
    path = begin(tmp_path)
    to_the_end(path, stop)
    found = agree(path, plain=True)
    if stop is None:
        assert max(found["maths"].readings) > 5 and found["maths"].covered == found["maths"].tokens


@pytest.mark.parametrize(
    "rule",
    [
        {"slicing": {"stride": 32, "window": 40}},
        {"slicing": {"window": 12, "stride": 12, "tail": "drop"}},
        {"slicing": {"window": 40, "stride": 30, "tail": "backfill", "min_tail": 12}},
        {"slicing": {"window": 32, "stride": 32, "oversize": "drop"}},
        {"slicing": {"window": 32, "stride": 32, "oversize": "truncate"}},
        {"packing": {"method": "concat"}},
        {"packing": {"method": "concat"}, "slicing": {"tail": "drop"}},
        {"packing": {"method": "none"}},
        {"slicing": {"window": 12, "stride": 10, "tail": "drop", "offset": "random"}},
        {"slicing": {"window": 10, "density": {"head": 0.5, "middle": 0.25}}},
        {"slicing": {"window": 16, "stride": 12, "tail": "drop", "align": "word"}},
        {"slicing": {"window": 16, "stride": {"head": 8}, "align": "line", "oversize": "truncate"}},
    ],
    ids=lambda rule: "-".join(str(v) for part in rule.values() for v in part.values()),
)
def test_tokens_that_a_rule_leaves_out_are_not_covered(tmp_path, rule):
    write(tmp_path)
    stage = {**STAGE, "tokens": 7_000, "quotas": SHARES, **rule}
    path = begin(tmp_path, stages={"one": stage}, tokenizer="bytes")
    to_the_end(path)
    agree(path)


def test_documents_in_groups_and_empty_ones(tmp_path):
    chance = np.random.default_rng(3)
    for name, documents in (("web", 40), ("code", 25), ("maths", 6)):
        lengths = chance.integers(0, 60, documents)
        texts = [chance.integers(0, 200, length) for length in lengths]
        groups = [int(k) // 3 for k in range(documents)]
        recipe.write_pool(tmp_path / "pools" / name, texts, vocab_size=256, groups=groups)
    path = begin(tmp_path)
    to_the_end(path)
    agree(path)


@pytest.mark.parametrize("part", ["drop", "40%"])
def test_A12_duplicates_that_are_left_out_are_not_covered(tmp_path, part):
    chance = np.random.default_rng(3)
    for name, documents in (("web", 40), ("code", 25), ("maths", 6)):
        texts = [chance.integers(0, 3, length) for length in chance.integers(0, 60, documents)]
        groups = [int(k) // 3 for k in range(documents)]
        recipe.write_pool(tmp_path / "pools" / name, texts, vocab_size=256, groups=groups, repeats=4)
    slicing = {"window": 12, "stride": 8, "duplicates": part}
    path = begin(tmp_path, stages={"one": {**STAGE, "tokens": 7_000, "quotas": SHARES, "slicing": slicing}})
    to_the_end(path)
    found = agree(path, plain=False)
    assert all(of.covered < of.tokens for of in found.values())


@pytest.mark.parametrize("tail", ["keep", "drop"])
def test_stages_that_cut_blocks_anew(tmp_path, tail):
    write(tmp_path)
    stages = {
        "one": {
            **STAGE,
            "tokens": 3_000,
            "quotas": SHARES,
            "slicing": {"tail": tail, "window": 12, "stride": 12},
        },
        "two": {**STAGE, "tokens": 3_000, "context": 80, "quotas": SHARES},
        "three": {
            **STAGE,
            "tokens": 2_000,
            "context": 32,
            "quotas": {"web": "80%", "code": "20%", "maths": "0%"},
        },
    }
    path = begin(tmp_path, stages=stages)
    to_the_end(path)
    agree(path)


def test_what_a_rewind_discarded_was_not_read(tmp_path):
    write(tmp_path)
    path = begin(tmp_path)
    for step in (10, 30, 55):
        to_the_end(path, step)
    with recipe.open_run(path, step=30) as run:
        run.checkpoint(34)
    agree(path, plain=True)


@pytest.mark.parametrize("returned", [False, True])
@pytest.mark.parametrize(("start", "stop"), [(0, 12), (20, 23), (20, 60), (40, 41)])
def test_steps_that_were_skipped_were_not_read_until_they_come_back(tmp_path, returned, start, stop):
    from recipe.run.changing.skip import skip_run

    write(tmp_path)
    path = begin(tmp_path)
    for step in (start, 100):
        to_the_end(path, step)
    skip_run(path, (start, stop), reason="a spike", returned=returned)
    for step in (start + 3, 90, None):
        to_the_end(path, step)
        agree(path)


def test_documents_that_were_withdrawn_are_not_read_from_then_on(tmp_path):
    from recipe.run.changing.withdraw import Ticket, withdraw_run

    write(tmp_path)
    path = begin(tmp_path)
    to_the_end(path, 33)
    ticket = Ticket(reason="take-down")
    withdraw_run(path, [3, 4, 5], ticket=ticket, pool="web")
    to_the_end(path, 70)
    withdraw_run(path, [0, 1], ticket=ticket, pool="maths")
    to_the_end(path, 71)
    agree(path)
    to_the_end(path)
    agree(path)


def test_an_amendment_changes_nothing_of_what_was_read(tmp_path):
    from recipe.run.changing.amend import amend_run
    from recipe.run.changing.approval import Approval

    write(tmp_path)
    path = begin(tmp_path)
    to_the_end(path, 50)
    amend_run(path, ["stages.one.quotas.code=40%"], from_pool="web", approval=Approval(reason="more code"))
    to_the_end(path)
    agree(path, plain=True)


def test_data_that_was_replaced_is_read_from_its_beginning(tmp_path):
    write(tmp_path)
    path = begin(tmp_path)
    to_the_end(path, 50)
    (tmp_path / "pools/code").rename(tmp_path / "pools/was")
    chance = np.random.default_rng(5)
    texts = [chance.integers(0, 200, 25) for _ in range(30)]
    recipe.write_pool(tmp_path / "pools/code", texts, vocab_size=256, eos=255)
    with recipe.open_run(path, accept_data_change=True) as run:
        run.checkpoint(90)
    pools, known = audited(path)
    after = truth((path, range(50, 90), 0))["code"]
    assert summed(pools["code"], count(pools["code"], known["code"])) == after
    assert from_cursor(pools["code"], known["code"]) is None and known["code"].replaced > 0


@pytest.mark.parametrize("opens", ["next-epoch", "now"])
@pytest.mark.parametrize("start", [0, 3, 50])
def test_a_pool_that_has_grown_is_read_on(tmp_path, opens, start):
    from recipe.pools import extend_pool
    from recipe.run.changing.amend import amend_run
    from recipe.run.changing.approval import Approval

    write(tmp_path)
    path = begin(tmp_path)
    to_the_end(path, start)
    chance = np.random.default_rng(5)
    texts = [chance.integers(0, 200, 25) for _ in range(9)]
    extend_pool(tmp_path / "pools/code", tmp_path / "pools/more", texts)
    approval = Approval(reason="more code")
    amend_run(path, ["pools.code.path=pools/more"], approval=approval, opens=opens)
    for step in (53, 80, None):
        to_the_end(path, step)
        agree(path)


def test_a_pool_may_grow_by_documents_of_another_length(tmp_path):
    """Blocks of what it is now hold fewer sequences than were served of the block of then."""
    from recipe.pools import extend_pool
    from recipe.run.changing.amend import amend_run
    from recipe.run.changing.approval import Approval

    write_pools(tmp_path, {"web": 40, "maths": 6}, mean=30)
    recipe.write_pool(tmp_path / "pools/code", [np.arange(60)] * 8, vocab_size=256, eos=255)
    path = begin(tmp_path)
    to_the_end(path, 25)
    extend_pool(tmp_path / "pools/code", tmp_path / "pools/more", [[7]] * 60)
    amend_run(path, ["pools.code.path=pools/more"], approval=Approval(reason="more code"), opens="now")
    to_the_end(path, 60)
    agree(path)


@pytest.mark.parametrize("data", ["continue", "fresh"])
@pytest.mark.parametrize("parent", [True, False])
def test_a_branch_counts_what_its_parents_read(tmp_path, data, parent):
    from recipe.run.branching.branch import branch_run
    from recipe.run.branching.wishes import Wish

    write(tmp_path)
    path = begin(tmp_path)
    to_the_end(path, 60)
    wish = Wish(name="other", data=data, overrides=("stages.one.quotas.code=40%",), from_pool="web")
    (branch,) = branch_run(path, wish)
    to_the_end(path, 100)
    to_the_end(branch, 85)
    if parent:
        notes = agree(branch, (path, range(60), 0), (branch, range(60, 85), int(data == "fresh")))
        assert notes and not any(history.note for history in audited(branch)[1].values())
        return
    right = truth((path, range(60), 0), (branch, range(60, 85), 0))
    alone = truth((branch, range(60, 85), 0))
    path.rename(tmp_path / "away")
    pools, known = audited(branch)
    for name in NAMES:
        assert "parent is not here" in known[name].note
        expected = alone if data == "fresh" else right
        assert summed(pools[name], count(pools[name], known[name])) == expected[name]
