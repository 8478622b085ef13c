"""Text found on the machine: real, deterministic, and true where it claims to be."""

import doctest
import inspect
from collections import Counter

import pytest

from recipe.text.dice import Dice
from recipe.text.found import found_sources
from recipe.text.found_maths import KINDS, maths_documents
from recipe.text.found_teacher import teacher_documents, verify
from recipe.text.lessons import LESSONS

NAMES = ["english", "chinese", "tutorials", "code", "teacher", "maths"]


@pytest.fixture(scope="module")
def documents():
    return {pool.name: list(pool.documents()) for pool in found_sources()}


def test_six_pools_hold_text(documents):
    assert list(documents) == NAMES
    assert all(document.text for pool in documents.values() for document in pool)
    sizes = {name: sum(len(d.text.encode()) for d in pool) for name, pool in documents.items()}
    assert sizes["chinese"] > 25_000
    assert min(size for name, size in sizes.items() if name != "chinese") > 300_000


def test_ids_are_unique_in_a_pool(documents):
    for pool in documents.values():
        assert len({document.id for document in pool}) == len(pool)


def test_the_files_of_a_package_are_one_group_in_order(documents):
    groups = [document.group for document in documents["code"]]
    runs = [
        group for group, before in zip(groups, [None, *groups], strict=False) if group and group != before
    ]
    assert len(runs) == len(set(runs)) > 10
    assert None in groups


def test_every_reading_gives_the_same(documents):
    for pool in found_sources():
        if pool.name in ("code", "teacher", "maths", "chinese"):
            assert list(pool.documents()) == documents[pool.name]


def test_another_seed_gives_other_arithmetic():
    assert next(maths_documents(1)) != next(maths_documents(2))


def test_no_path_of_the_machine_is_in_an_id(documents):
    import sysconfig

    root = sysconfig.get_path("stdlib")
    assert not any(root in f"{d.id} {d.source}" for pool in documents.values() for d in pool)


def test_lessons_pass_the_real_doctest():
    for document in teacher_documents(5, len(LESSONS)):
        space = {}
        exec(document.text, space)
        [function] = [value for value in space.values() if inspect.isfunction(value)]
        tests = doctest.DocTestFinder().find(function, globs=space, module=False)
        results = [doctest.DocTestRunner(verbose=False).run(test) for test in tests]
        assert sum(r.failed for r in results) == 0
        assert sum(r.attempted for r in results) == document.tags["examples"]


def test_a_wrong_lesson_is_never_given():
    with pytest.raises(AssertionError):
        verify('def f():\n    """One.\n\n    >>> f()\n    2\n    """\n    return 1\n')


@pytest.mark.parametrize("kind", KINDS)
def test_arithmetic_is_checked_by_itself(kind):
    problems = {kind(Dice(seed, "test")) for seed in range(200)}
    assert len(problems) > 190


def test_addition_by_hand():
    first = next(text for text in map(_addition, range(50)) if text.count("carry"))
    numbers = first.split(",")[0].removeprefix("Add ").split(" + ")
    assert first.splitlines()[-1] == f"Sum: {sum(map(int, numbers))}"


def _addition(seed):
    return KINDS[0](Dice(seed, "test"))


def test_dice_are_pinned():
    dice = Dice(7, "pinned")
    assert [dice.between(1, 100) for _ in range(5)] == [78, 51, 34, 36, 26]
    counts = Counter(dice.between(1, 6) for _ in range(6000))
    assert set(counts) == {1, 2, 3, 4, 5, 6}
    assert min(counts.values()) > 900


def test_the_guide_uses_the_words_of_the_product(documents):
    guide = "".join(document.text for document in documents["chinese"])
    for word in ("词元池", "配额", "窗口", "步幅", "训练块", "账本", "清单", "欠账", "快照"):
        assert guide.count(word) >= 2


def test_every_pool_says_where_it_is_from():
    assert all(pool.origin and pool.licence for pool in found_sources())
