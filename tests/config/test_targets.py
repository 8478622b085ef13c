"""Only names on the list are imported."""

import sys

import pytest

from recipe.config import PolicyConfig, load_recipe
from recipe.config.targets import SHIPPED, make_policy, resolve_target
from recipe.errors import RecipeError
from recipe.maths.policies import DynamicLoading, OnlineMixing

OWN = """
from os import system
limit = 3
class Mine:
    def __init__(self, rate="0.1"):
        if rate == "bad":
            raise ValueError("rate is bad")
    def __call__(self, view):
        return view
class Mute:
    pass
"""


@pytest.fixture
def own(tmp_path, monkeypatch):
    (tmp_path / "own_policies_here.py").write_text(OWN)
    (tmp_path / "broken_policies_here.py").write_text("raise KeyError('no such thing')")
    monkeypatch.syspath_prepend(tmp_path)
    yield "own_policies_here"
    sys.modules.pop("own_policies_here", None)


def problem(call, *args, **options):
    with pytest.raises(RecipeError) as caught:
        call(*args, **options)
    (found,) = caught.value.problems
    return found


def test_what_ships_may_be_named():
    assert [resolve_target(name) for name in SHIPPED] == [DynamicLoading, OnlineMixing]


@pytest.mark.parametrize(
    "name",
    [
        "os.system",
        "builtins.eval",
        "recipe.maths.policies.View",
        "recipe.maths.policies.exact_shares",
        "recipe.maths.policies.dataclass",
        "recipe.maths.policies.DynamicLoading.__call__",
        "recipe.maths.policies.*",
        "own_policies_here.Mine",
    ],
)
def test_whatever_else_is_refused_before_it_is_imported(own, name):
    found = problem(resolve_target, name)
    assert found.where == "policy._target_" and found.given == name
    assert "recipe.maths.policies.DynamicLoading" in found.expected and f"allow {name}" in found.fix
    assert own not in sys.modules


def test_a_near_miss_is_told():
    assert (
        "did you mean 'recipe.maths.policies.OnlineMixing'?"
        in problem(resolve_target, "recipe.maths.policies.OnlineMixin").fix
    )


def test_a_name_may_be_allowed(own):
    assert resolve_target(f"{own}.Mine", allow=[f"{own}.Mine"]).__name__ == "Mine"
    assert own in sys.modules
    assert "one of" in problem(resolve_target, f"{own}.Mute", allow=[f"{own}.Mine"]).expected


def test_all_that_a_module_defines_may_be_allowed_but_not_what_it_imports(own):
    assert resolve_target(f"{own}.Mute", allow=[f"{own}.*"]).__name__ == "Mute"
    for name in ("system", "limit"):
        assert "a class or function" in problem(resolve_target, f"{own}.{name}", allow=[f"{own}.*"]).expected


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("own_policies_here.Nobody", "AttributeError"),
        ("nowhere_at_all.Mine", "ModuleNotFoundError"),
        ("broken_policies_here.Mine", "KeyError"),
    ],
)
def test_what_cannot_be_imported_is_told(own, name, word):
    assert word in problem(resolve_target, name, allow=[name]).fix


def policy(target, **params):
    return PolicyConfig.model_validate({"_target_": target, "every": 1, **params})


def test_a_policy_is_made_with_its_parameters(own):
    made = make_policy(policy(SHIPPED[0], reference={"web": "1.5"}, floor=0.01))
    assert made == DynamicLoading(reference={"web": "1.5"}, floor="0.01")


def test_parameters_that_do_not_fit_are_told(own):
    found = problem(make_policy, policy(SHIPPED[0], refrence={}))
    assert "reference" in found.expected and "missing a required" in found.fix
    assert "rate is bad" in problem(make_policy, policy(f"{own}.Mine", rate="bad"), allow=[f"{own}.Mine"]).fix


def test_what_cannot_be_called_is_no_policy(own):
    assert "a policy" in problem(make_policy, policy(f"{own}.Mute"), allow=[f"{own}.*"]).expected


def test_loading_a_recipe_imports_nothing(own):
    recipe = load_recipe("minimal", [f"policy={{_target_: {own}.Mine, every: 10k, rate: 0.5}}"])
    assert recipe.policy.params == {"rate": "0.5"}
    assert own not in sys.modules
