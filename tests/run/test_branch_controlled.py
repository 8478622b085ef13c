"""E1: a comparison is controlled when what differs is what was named, and what must be fixed did not move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from recipe.config import Recipe, recipe_from_plain, settle
from recipe.config.amending import amended
from recipe.run.branching.controlled import Control, Side, compare_sides

SHARES = {
    "english": "61.6%",
    "rewrites": "7.9%",
    "chinese": "14%",
    "code_web": "5%",
    "code": "9.9%",
    "maths": "1.5%",
    "teacher": "0.1%",
}
STOCK = {name: 10**9 for name in SHARES}


def plan(**changes: Any) -> Recipe:
    """The plan of 10,000B tokens (fact D), settled."""
    base: dict[str, Any] = {
        "seed": 1,
        "pools": {name: {"stock": 10**9} for name in SHARES},
        "groups": {"code_all": {"pools": ["code_web", "code", "teacher"], "within": "natural"}},
        "trainer": {"lr": "3e-4", "warmup": 2000},
        "stages": {
            "base": {
                "tokens": "10T",
                "context": 4096,
                "batch": {"sequences": 1024},
                "quotas": SHARES,
            }
        },
    }
    return settle(recipe_from_plain({**base, **changes}, source="test"), STOCK, dict.fromkeys(STOCK, 10**6))


def side(recipe: Recipe, step: int = 1000, **changes: Any) -> Side:
    told = Side(
        recipe=recipe,
        pools=dict.fromkeys(recipe.pools, "f" * 64),
        tokenizers=dict.fromkeys(recipe.pools, "t" * 64),
        step=step,
        origin="m" * 64,
    )
    return replace(told, **changes)


def held(words: list[str], named: list[str], *, from_pool: str | None = None) -> tuple[Recipe, Control]:
    trunk = plan()
    other = amended(trunk, words, stage="base", from_pool=from_pool)
    other = settle(other, STOCK, dict.fromkeys(STOCK, 10**6))
    return other, compare_sides(side(trunk), side(other), named)


def percents(shares: Mapping[str, Fraction]) -> dict[str, str]:
    return {name: f"{float(100 * share):.4f}" for name, share in shares.items()}


def test_E1_the_group_raised_pro_rata_from_english_is_controlled():
    """15 % code becomes 20 %: each member's share in force, pro rata; english 61.6 → 56.6 %; nothing else."""
    names = ["stages.base.quotas.code_all", "stages.base.quotas.english"]
    other, control = held(["stages.base.quotas.code_all=20%"], names, from_pool="english")
    shares = other.shares("base")
    assert shares["code_web"] == Fraction(20, 300)
    assert shares["code"] == Fraction("0.132")
    assert shares["teacher"] == Fraction(1, 750)
    assert percents(shares) == {
        "english": "56.6000",
        "rewrites": "7.9000",
        "chinese": "14.0000",
        "code_web": "6.6667",
        "code": "13.2000",
        "maths": "1.5000",
        "teacher": "0.1333",
    }
    assert control.controlled
    assert control.differs == (
        "stages.base.shares.english: 61.6% → 56.6%",
        "stages.base.shares.code_web: 5% → 1/15",
        "stages.base.shares.code: 9.9% → 13.2%",
        "stages.base.shares.teacher: 0.1% → 1/750",
    )


def test_E1_five_points_on_one_named_pool_is_controlled():
    names = ["stages.base.quotas.code", "stages.base.quotas.english"]
    other, control = held(["stages.base.quotas.code=14.9%"], names, from_pool="english")
    assert other.shares("base") == {
        **plan().shares("base"),
        "code": Fraction(149, 1000),
        "english": Fraction(566, 1000),
    }
    assert control.controlled
    assert control.differs == (
        "stages.base.quotas.english: 61.6% → 56.6%",
        "stages.base.quotas.code: 9.9% → 14.9%",
    )


def test_a_pool_that_changes_and_was_not_named_makes_it_uncontrolled():
    _, control = held(
        ["stages.base.quotas.code_all=20%"], ["stages.base.quotas.code_all"], from_pool="english"
    )
    assert control.against == ("not named: stages.base.shares.english: 61.6% → 56.6%",)
    assert not control.controlled


def test_nothing_differs_for_a_control():
    trunk = plan()
    assert compare_sides(side(trunk), side(trunk), []) == Control(named=(), differs=(), against=())


@pytest.mark.parametrize(
    ("changes", "against"),
    [
        ({"trainer": {"lr": "1e-4", "warmup": 2000}}, ["trainer.lr: 3e-4 → 1e-4"]),
        ({"trainer": None}, ["trainer.lr: 3e-4 → (nothing)", "trainer.warmup: 2000 → (nothing)"]),
        ({"max_epochs": 5}, ["not named: max_epochs: 4 → 5"]),
        ({"seed": 2}, ["not named: seed: 1 → 2"]),
        ({"on_exhausted": "stop"}, ["not named: on_exhausted: repeat → stop"]),
    ],
)
def test_what_was_not_named_is_listed(changes: dict[str, Any], against: list[str]):
    control = compare_sides(side(plan()), side(plan(**changes)), [])
    assert list(control.against) == against


def test_training_settings_must_be_the_same_even_where_they_are_named():
    other = plan(trainer={"lr": "1e-4", "warmup": 2000})
    control = compare_sides(side(plan()), side(other), ["trainer.lr"])
    assert control.against == ("trainer.lr: 3e-4 → 1e-4",)


def stage(**changes: Any) -> dict[str, Any]:
    own = {"tokens": "10T", "context": 4096, "batch": {"sequences": 1024}, "quotas": SHARES}
    return {"base": {**own, **changes}}


@pytest.mark.parametrize(
    ("changes", "named", "what"),
    [
        ({"tokens": "9T"}, "stages.base.tokens", ["steps left", "positions left"]),
        (
            {"batch": {"sequences": 512}},
            "stages.base.batch.sequences",
            ["steps left", "positions left", "batches"],
        ),
        (
            {"context": 8192, "batch": {"sequences": 512}},
            "stages.base",
            ["batches", "contexts"],
        ),
    ],
)
def test_steps_positions_batches_and_contexts_must_be_the_same(
    changes: dict[str, Any], named: str, what: list[str]
):
    other = plan(stages=stage(**changes))
    control = compare_sides(side(plan()), side(other), [named])
    assert [line.partition(":")[0] for line in control.against] == what


def test_a_batch_that_is_stated_another_way_is_the_same_batch():
    other = plan(stages=stage(batch={"tokens": 1024 * 4096}))
    control = compare_sides(side(plan()), side(other), ["stages.base.batch.tokens"])
    assert control.controlled


def test_pools_and_tokenizers_are_held_by_fingerprint():
    trunk = plan()
    other = side(trunk, pools={**dict.fromkeys(SHARES, "f" * 64), "maths": "e" * 64})
    assert compare_sides(side(trunk), other, ["pools.maths.path"]).against == (
        f"pools.maths: fingerprint {'f' * 16} → {'e' * 16}",
    )
    other = side(trunk, tokenizers=dict.fromkeys(SHARES, "u" * 64))
    assert compare_sides(side(trunk), other, []).against == (f"tokenizer: {'t' * 16} → {'u' * 16}",)


def test_other_places_names_files_and_accounting_periods_are_listed_and_harmless():
    moved = {name: {"stock": 10**9, "path": f"elsewhere/{name}"} for name in SHARES}
    other = plan(pools=moved, name="another", stages=stage(chunk="2B"))
    control = compare_sides(side(plan()), side(other), [])
    assert control.controlled
    assert len(control.differs) == 7 + 2


def test_runs_from_other_checkpoints_are_not_comparable():
    trunk = plan()
    control = compare_sides(side(trunk), side(trunk, step=2000, origin="n" * 64), [])
    assert [line.partition(":")[0] for line in control.against] == [
        "checkpoint",
        "steps left",
        "positions left",
    ]


def test_a_pool_added_with_a_share_of_nothing_needs_no_other_name():
    """Invariant 7."""
    trunk = plan()
    other = amended(trunk, ["+pools.extra={stock: 5}"], stage="base")
    control = compare_sides(side(trunk), side(other), ["pools.extra"])
    assert control.controlled
    assert control.differs == ("pools.extra.stock: (nothing) → 5",)


GROUPED = {"english": "61.6%", "rewrites": "7.9%", "chinese": "14%", "code_all": "15%", "maths": "1.5%"}
WITHIN = {
    "pools": ["code_web", "code", "teacher"],
    "within": {"shares": {"code_web": 50, "code": 99, "teacher": 1}},
}
Q = "stages.base.quotas"


def grouped(**changes: Any) -> Recipe:
    return plan(**{"groups": {"code_all": WITHIN}, "stages": stage(quotas=GROUPED), **changes})


def branched(trunk: Recipe, words: list[str], from_pool: str | None = None) -> Control:
    """Held against the trunk with what the overrides name, as a branch is."""
    other = amended(trunk, words, stage=next(iter(trunk.stages)), from_pool=from_pool)
    other = settle(other, STOCK, dict.fromkeys(STOCK, 10**6))
    names = [word.partition("=")[0].lstrip("+") for word in words]
    return compare_sides(side(trunk), side(other), [*names, *([f"{Q}.{from_pool}"] if from_pool else [])])


@pytest.mark.parametrize(
    ("words", "from_pool", "differs"),
    [
        ([f"{Q}.code_all=20%"], "english", [f"{Q}.english: 61.6% → 56.6%", f"{Q}.code_all: 15% → 20%"]),
        ([f"{Q}.code=14.9%"], "english", [f"{Q}.english: 61.6% → 56.6%", f"{Q}.code: 9.9% → 14.9%"]),
        ([f"{Q}.code=14.9%"], "code_web", [f"{Q}.code_web: 5% → 0%", f"{Q}.code: 9.9% → 14.9%"]),
        (
            [f"{Q}.code_web=6%", f"{Q}.code=13%", f"{Q}.teacher=1%"],
            "english",
            [
                f"{Q}.english: 61.6% → 56.6%",
                f"{Q}.code_web: 5% → 6%",
                f"{Q}.code: 9.9% → 13%",
                f"{Q}.teacher: 0.1% → 1%",
            ],
        ),
        (
            [Q + "={code: 14.9%, english: 56.6%}"],
            None,
            [f"{Q}.english: 61.6% → 56.6%", f"{Q}.code: 9.9% → 14.9%"],
        ),
    ],
)
def test_E1_a_group_with_a_quota_whose_pools_are_named(
    words: list[str], from_pool: str | None, differs: list[str]
):
    """The group may be dissolved into its pools: that those get what they got is no difference."""
    control = branched(grouped(), words, from_pool)
    assert (control.against, list(control.differs)) == ((), differs)


def test_a_pool_of_a_dissolved_group_that_was_not_named_makes_it_uncontrolled():
    trunk = grouped()
    other = amended(trunk, [f"{Q}.code=14.9%", f"{Q}.teacher=1.1%"], stage="base", from_pool="english")
    control = compare_sides(side(trunk), side(other), [f"{Q}.code", f"{Q}.english"])
    assert control.against == (f"not named: {Q}.teacher: 0.1% → 1.1%",)


def test_shares_that_are_written_another_way_do_not_differ():
    alone = plan(groups={"code_all": WITHIN})
    assert compare_sides(side(grouped()), side(alone), []) == Control(named=(), differs=(), against=())
    doubled = {**WITHIN, "within": {"shares": {"code_web": 100, "code": 198, "teacher": 2}}}
    control = compare_sides(side(grouped()), side(grouped(groups={"code_all": doubled})), [])
    assert control.controlled


def test_parts_of_a_group_must_be_named():
    other = grouped(
        groups={"code_all": {**WITHIN, "within": {"shares": {"code_web": 51, "code": 98, "teacher": 1}}}}
    )
    control = compare_sides(side(grouped()), side(other), ["groups.code_all.within"])
    assert control.controlled
    control = compare_sides(side(grouped()), side(other), [f"{Q}.maths"])
    assert [line.partition(": ")[2].rpartition(":")[0] for line in control.against] == [
        f"groups.code_all.within.shares.{name}" for name in ("code_web", "code")
    ]


def test_naming_one_pool_does_not_name_its_group():
    other = grouped(stages=stage(quotas={**GROUPED, "english": "56.6%", "code_all": "20%"}))
    control = compare_sides(side(grouped()), side(other), [f"{Q}.code", f"{Q}.english"])
    assert control.against == (f"not named: {Q}.code_all: 15% → 20%",)
    names = [f"{Q}.{name}" for name in ("english", "code", "code_web", "teacher")]
    assert compare_sides(side(grouped()), side(other), names).controlled


@pytest.mark.parametrize(
    ("weights", "named", "against"),
    [
        ({"english": 2, "code": 2}, [], []),
        ({"english": 2, "code": 1}, ["english"], []),
        ({"english": 2, "code": 1}, ["code"], ["english"]),
        ({"english": 2, "code": 1, "maths": 1}, ["english"], ["maths"]),
    ],
)
def test_weights_count_by_their_proportion(weights: dict[str, int], named: list[str], against: list[str]):
    """The others' shares follow from a weight that was named; weights of the same proportion are the same."""
    nothing = dict.fromkeys(SHARES, 0)
    one, other = (
        plan(stages=stage(quotas=None, weights={**nothing, **own}))
        for own in ({"english": 1, "code": 1}, weights)
    )
    control = compare_sides(side(one), side(other), [f"stages.base.weights.{name}" for name in named])
    assert [line.partition(":")[2].split(":")[0].rpartition(".")[2] for line in control.against] == against


def ramped(ramp: dict[str, Any] | None, **second: Any) -> Recipe:
    own = stage(quotas=GROUPED)["base"]
    after = {**own, **second, **({"quota_ramp": ramp} if ramp else {})}
    return grouped(stages={"base": own, "next": after})


def test_a_ramp_is_a_difference_where_shares_are():
    """A ramp between equal shares changes nothing."""
    ramp, code = {"over": "1T", "steps": 4}, {"quotas": {**GROUPED, "english": "56.6%", "code_all": "20%"}}
    assert compare_sides(side(ramped(None)), side(ramped(ramp)), []).controlled
    control = compare_sides(side(ramped(None, **code)), side(ramped(ramp, **code)), [])
    assert len(control.against) == 2
    named = ["stages.next.quota_ramp"]
    assert compare_sides(side(ramped(None, **code)), side(ramped(ramp, **code)), named).controlled
    dissolved = {"quotas": {**SHARES, "english": "56.6%", "code": "14.9%"}}
    names = ["stages.next.quotas.english", "stages.next.quotas.code"]
    control = compare_sides(side(ramped(ramp)), side(ramped(ramp, **dissolved)), names)
    assert control.controlled
    assert len(control.differs) == 2
