"""The audit says of a branch what differs and what nobody named; written apart from the branching."""

from __future__ import annotations

from typing import Any

import pytest

from recipe.audit.controlled import differences, unnamed
from recipe.config import Recipe, recipe_from_plain, settle
from recipe.config.amending import amended
from recipe.run.branching.share_differences import recipe_differences

POOLS = {"web": 10**6, "code": 10**6, "maths": 10**6}
WITHIN = {"code": 3, "maths": 1}
GROUPED = {"quotas": {"web": "60%", "hard": "40%"}}
ALONE = {"quotas": {"web": "60%", "code": "30%", "maths": "10%"}}
Q = "stages.s.quotas"


def plan(within: dict[str, int] | None = None, **shares: Any) -> Recipe:
    data = {
        "seed": 1,
        "pools": {name: {"stock": stock} for name, stock in POOLS.items()},
        "groups": {"hard": {"pools": ["code", "maths"], "within": {"shares": within or WITHIN}}},
        "stages": {"s": {"tokens": "64k", "context": 64, "batch": {"sequences": 10}, **shares}},
    }
    return settle(recipe_from_plain(data, source="test"), POOLS, dict.fromkeys(POOLS, 10))


def weights(**parts: int) -> dict[str, Any]:
    return {"weights": parts}


FORMS = [
    GROUPED,
    ALONE,
    weights(web=6, hard=4),
    weights(web=6, code=3, maths=1),
    weights(web=12, code=6, maths=2),
    weights(web=6, code=3, maths=2),
    {"quotas": {"web": "60%", "code": "25%", "maths": "15%"}},
    {"quotas": {"web": "50%", "hard": "50%"}},
]


@pytest.mark.parametrize("one", FORMS)
@pytest.mark.parametrize("other", FORMS)
def test_E1_both_say_the_same_of_every_two_forms(one: dict[str, Any], other: dict[str, Any]):
    a, b = plan(**one), plan(**other)
    assert differences(a, b) == recipe_differences(a, b)
    same = a.shares("s") == b.shares("s")
    assert (not differences(a, b)) == same


def test_E1_a_pool_of_a_group_with_a_quota():
    old = plan(**GROUPED)
    new = amended(old, [f"{Q}.code=35%"], stage="s", from_pool="web")
    assert differences(old, new) == [f"{Q}.web: 60% → 55%", f"{Q}.code: 30% → 35%"]


def test_a_group_whose_parts_stay_in_proportion_need_not_be_named():
    old = plan(**GROUPED)
    for within, many in (({"code": 6, "maths": 2}, 0), ({"code": 2, "maths": 2}, 2)):
        new = plan(within, **GROUPED)
        assert len(unnamed(differences(old, new), [f"{Q}.web"], old, new)) == many
