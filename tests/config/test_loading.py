# ruff: noqa: E501  (tables: a row is a line)
"""Recipes from names, files and folders, with overrides."""

from pathlib import Path

import pytest

from recipe.config import Recipe, load_recipe, recipe_to_plain
from recipe.config.naming import is_plain_name
from recipe.errors import RecipeError

BASE = """\
seed: 1
pools:
  web: {path: pools/web}
  code: {path: pools/code}
stages:
  short:
    tokens: 1M
    context: 512
    batch: {sequences: 8}
    slicing: {stride: 256}
    quotas: {web: 61.6%, code: rest}
  long: {like: short, context: 1024}
"""


@pytest.fixture
def base(in_tmp: Path) -> Path:
    return written(in_tmp / "base.yaml", BASE)


def written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def problems(source, overrides=(), **options):
    with pytest.raises(RecipeError) as caught:
        load_recipe(source, overrides, **options)
    return list(caught.value.problems)


def test_a_path_as_text_or_path_gives_the_recipe_and_its_name(base):
    recipe = load_recipe("base.yaml")
    assert isinstance(recipe, Recipe)
    assert recipe == load_recipe(base)
    assert recipe.name == "base"


def test_a_name_finds_shipped_recipes_from_any_folder(in_tmp):
    assert load_recipe("minimal").name == "minimal"


def test_own_folders_come_before_shipped_ones(in_tmp):
    written(in_tmp / "mine/recipe/demo.yaml", BASE)
    recipe = load_recipe("demo", config_dir=Path("mine"))
    assert list(recipe.pools) == ["web", "code"]
    assert list(load_recipe("minimal", config_dir=Path("mine")).pools) == ["a", "b"]


def test_a_recipe_may_start_from_another_by_defaults(base, in_tmp):
    written(in_tmp / "mine.yaml", "defaults: [base]\nseed: 9\nstages: {short: {tokens: 2M}}\n")
    recipe = load_recipe("mine.yaml")
    assert (recipe.seed, recipe.name) == (9, "mine")
    assert recipe.stages["short"].tokens == recipe.stages["long"].tokens == 2_000_000


def test_a_file_may_start_from_a_shipped_recipe(in_tmp):
    written(in_tmp / "mine.yaml", "defaults: [minimal]\nseed: 9\n")
    assert list(load_recipe("mine.yaml").pools) == ["a", "b"]


def test_groups_of_an_own_folder_fill_keys(in_tmp):
    written(in_tmp / "conf/pool/zh.yaml", "path: data/zh\nmax_epochs: 2\n")
    written(
        in_tmp / "conf/recipe/own.yaml",
        "defaults: [{pool@pools.chinese: zh}]\n" + BASE.replace("code: rest", "code: 8.4%, chinese: rest"),
    )
    recipe = load_recipe("own", config_dir=Path("conf"))
    assert recipe.pools["chinese"].max_epochs == 2
    assert load_recipe("conf/recipe/own.yaml") == recipe


def test_interpolations_are_resolved(in_tmp, monkeypatch):
    monkeypatch.setenv("POOLS", "/data")
    written(in_tmp / "r.yaml", BASE + "pools_root: ${oc.env:POOLS}/v1\nname: run-${seed}\n")
    recipe = load_recipe("r.yaml", ["seed=4"])
    assert (recipe.pools_root, recipe.name) == ("/data/v1", "run-4")
    assert recipe.pool_path("web") == Path("/data/v1/pools/web")


def test_an_interpolation_that_leads_nowhere_is_told(in_tmp):
    written(in_tmp / "r.yaml", BASE + "pools_root: ${nowhere}\n")
    assert problems("r.yaml")[0].where == "pools_root"


def test_a_missing_value_is_told(in_tmp):
    written(in_tmp / "r.yaml", BASE.replace("tokens: 1M", "tokens: ???"))
    assert [(p.where, "give it a value" in p.fix) for p in problems("r.yaml")] == [
        ("stages.short.tokens", True)
    ]


def test_any_file_name_is_fine(in_tmp):
    written(in_tmp / "my recipe (v1.2) @home.yml", BASE)
    assert load_recipe("my recipe (v1.2) @home.yml").name == "my_recipe_v1.2_home"


# --- finding


@pytest.mark.parametrize(
    ("source", "fix"),
    [
        ("dmo", "did you mean 'demo'?"),
        ("base.yml", "did you mean 'base.yaml'?"),
        ("bse.yaml", "did you mean 'base.yaml'?"),
        (".", "name a file in it"),
        ("", "name one of these"),
        ("nowhere/at/all.yaml", "name one of these"),
    ],
)
def test_a_recipe_that_is_not_there_is_told_with_what_is(base, source, fix):
    problem = problems(source)[0]
    assert fix in problem.fix
    assert "demo" in problem.expected and "minimal" in problem.expected


def test_a_config_dir_that_is_not_there_is_told(in_tmp):
    assert problems("demo", config_dir=Path("nowhere"))[0].where == "--config-dir"


def test_a_default_that_is_not_there_is_told(in_tmp):
    written(in_tmp / "r.yaml", "defaults: [demmo]\n" + BASE)
    problem = problems("r.yaml")[0]
    assert problem.where == "defaults"
    assert "demmo" in str(problem.given)


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("- 1\n", "r.yaml"),
        ("defaults: demo\n", "defaults"),
        ("a: [1\n", "r.yaml:2"),
        ("defaults: [r]\n", "defaults"),
    ],
)
def test_a_file_that_is_no_recipe_is_told(in_tmp, text, where):
    written(in_tmp / "r.yaml", text)
    assert problems("r.yaml")[0].where == where


def test_a_file_that_is_no_text_is_told(in_tmp):
    (in_tmp / "r.yaml").write_bytes(b"seed: \xff\xfe")
    assert "UTF-8" in problems("r.yaml")[0].expected


# --- numbers, names, repeated keys


def test_G01_amounts_in_yaml_and_on_the_command_line_agree(base):
    for text in ("1e6", "1_000_000", "1M", "1000k", "1.0e6", "1000000", "'1M'"):
        (base.parent / "r.yaml").write_text(BASE.replace("1M", text))
        assert load_recipe("r.yaml") == load_recipe("base.yaml", [f"stages.short.tokens={text}", "name=r"])
    assert problems("base.yaml", ["stages.short.tokens=1.5"])[0].where == "stages.short.tokens"


@pytest.mark.parametrize(
    "name", ["no", "yes", "null", "true", "1e5", "2024_01", "695e0514", "12", "中文", "0x1F"]
)
def test_G01_G03_names_keep_their_text_in_yaml_and_overrides(in_tmp, name):
    written(in_tmp / "r.yaml", BASE.replace("code", name))
    recipe = load_recipe(
        "r.yaml", [f"pools.{name}.max_epochs=7", "stages.long.quotas={web: 50%, " + name + ": 50%}"]
    )
    assert list(recipe.pools) == ["web", name]
    assert recipe.epochs_allowed(name) == 7
    assert recipe.shares("long")[name] * 2 == 1


def test_G03_lists_keep_their_text(in_tmp):
    written(in_tmp / "r.yaml", BASE.replace("code", "no") + "groups: {g: [web, no]}\n")
    assert load_recipe("r.yaml").groups["g"].pools == ("web", "no")
    assert load_recipe("r.yaml", ["groups.g=[no]"]).groups["g"].pools == ("no",)


def test_G03_switches_are_true_or_false_only(in_tmp):
    written(in_tmp / "r.yaml", BASE.replace("stride: 256", "overlap_labels: yes"))
    assert problems("r.yaml")[0].expected == "true or false"


def test_G05_C04_a_pool_given_twice_is_an_error_with_both_lines(in_tmp):
    written(in_tmp / "r.yaml", BASE.replace("  code: {path: pools/code}", "  web: {path: pools/code}"))
    problem = problems("r.yaml")[0]
    assert problem.where == "pools.web"
    assert "line 3" in str(problem.given) and "line 4" in str(problem.given)


def test_G05_is_checked_in_every_file_that_enters(in_tmp):
    written(in_tmp / "conf/recipe/base.yaml", BASE + "seed: 2\n")
    written(in_tmp / "conf/recipe/top.yaml", "defaults: [base]\n")
    assert problems("top", config_dir=Path("conf"))[0].where == "seed"


# --- G06, G07: overrides


def test_G06_an_override_changes_only_its_key(base):
    before, after = (
        recipe_to_plain(load_recipe("base.yaml", o)) for o in ([], ["stages.short.slicing.window=300"])
    )
    assert after["stages"]["short"]["slicing"].pop("window") == 300
    after["stages"]["long"]["slicing"].pop("window")
    assert before == after
    assert list(after["stages"]) == ["short", "long"]


def test_G06_a_file_over_a_recipe_merges_mappings_so_a_third_share_is_an_error(base, in_tmp):
    text = "defaults: [base]\npools: {third: {path: x}}\nstages: {short: {quotas: {web: 50%, code: 50%, third: 100%}}}\n"
    written(in_tmp / "over.yaml", text)
    assert "sum 200%" in str(problems("over.yaml")[0].given)


def test_G06_a_stage_as_a_list_is_refused(base, in_tmp):
    written(in_tmp / "over.yaml", "defaults: [base]\nstages: [{window: 9}]\n")
    assert problems("over.yaml")[0].where == "stages"


@pytest.mark.parametrize(
    ("override", "where", "fix"),
    [
        ("+pools.web.qouta=0.5", "pools.web.qouta", "quotas"),
        ("++stage.strde=2", "stage", "did you mean 'stages'?"),
        ("pools.wbe.quota=0.5", "pools.wbe", "did you mean 'web'?"),
        ("+stages.short.slicing.strde=2", "stages.short.slicing.strde", "did you mean 'stride'?"),
        ("++stages.short.strde=2", "stages.short.strde", "did you mean 'slicing.stride'?"),
        ("++every_stage.sequencs=2", "every_stage.sequencs", "did you mean 'batch.sequences'?"),
        ("++stages.short.tokns=2", "stages.short.tokns", "did you mean 'tokens'?"),
        ("++every_stage.contxt=2", "every_stage.contxt", "did you mean 'context'?"),
        ("stages.shrt.tokens=2", "stages.shrt", "did you mean 'short'?"),
        ("stages.0.slicing.window=9", "stages.0", "name one of these"),
        ("sed=2", "sed", "did you mean 'seed'?"),
        ("~stages.shrt", "stages.shrt", "leave the override out"),
        ("~sed", "sed", "did you mean 'seed'?"),
        ("~seed=2", "seed", "~seed"),
        ("+seed=2", "seed", "write seed=2"),
        ("stages.short.quotas.wbe=3%", "stages.short.quotas.wbe", "did you mean 'web'?"),
        ("stages.short.slicing={strde: 2}", "stages.short.slicing.strde", "did you mean 'stride'?"),
        ("seed=1,2", "seed=1,2", "-m"),
        ("seed=[1", "seed=[1", "quote"),
        ("seed.x=1", "seed", "1234"),
        ("recipe=minimal", "recipe=minimal", "recipe run minimal"),
        ("pools={}", "pools", "write ~pools"),
        ("+pools={}", "pools", "write ~pools"),
        ("stages.short={}", "stages.short", "write ~stages.short"),
        ("stages={short: {batch: {}}}", "stages.short.batch", "write ~stages.short.batch"),
        ("hydra.run.dir=x", "hydra", "remove it"),
        ("+hydra={}", "hydra", "remove it"),
        ("hydra/launcher=basic", "hydra/launcher=basic", "no setting of Hydra"),
        ("stages.short.slicing.alin=word", "stages.short.slicing.alin", "did you mean 'align'?"),
        ("stages.long.quota_rmp={over: 1k, steps: 2}", "stages.long.quota_rmp", "did you mean 'quota_ramp'?"),
        ("stages.long.quota_ramp.stps=2", "stages.long.quota_ramp.stps", "did you mean 'steps'?"),
        ("+start.wieghts=hub/base", "start.wieghts", "did you mean 'weights'?"),
        ("+pools.web.rename_from=english", "pools.web.rename_from", "did you mean 'renamed_from'?"),
        ("trainer.lr=1", "trainer.lr", "+trainer.lr=1 adds a new one"),
        ("policy.rate=1", "policy.rate", "+policy.rate=1 adds a new one"),
        ("+pools.web._target_=os.system", "pools.web._target_", "only a policy is made"),
        ("+trainer._target_=os.system", "trainer._target_", "leave it out" ),
    ],
)  # fmt: skip
def test_G07_an_override_without_effect_is_an_error(base, override, where, fix):
    found = {problem.where: problem for problem in problems("base.yaml", [override])}
    assert where in found, found
    assert fix in found[where].fix


def test_G07_a_key_under_a_free_mapping_is_set_when_it_is_there_and_added_with_a_plus(in_tmp):
    written(in_tmp / "r.yaml", BASE + "trainer: {optimizer: {lr: 3e-4, betas: [0.9, 0.95]}}\n")
    changes = ["trainer.optimizer.lr=1e-4", "trainer.optimizer.betas.1=0.99", "+trainer.optimizer.eps=1e-8"]
    assert load_recipe("r.yaml", changes).trainer == {
        "optimizer": {"lr": "1e-4", "betas": ["0.9", "0.99"], "eps": "1e-8"}
    }
    [problem] = problems("r.yaml", ["trainer.optimizer.ls=1"])
    assert (problem.where, "did you mean 'lr'?" in problem.fix) == ("trainer.optimizer.ls", True)
    [problem] = problems(
        "r.yaml", ["trainer.heads=2"]
    )  # of the reference trainer, and this is another's block
    assert (problem.where, problem.expected) == ("trainer.heads", "one of optimizer")
    assert load_recipe("r.yaml", ["policy={_target_: a.B, every: 1k}", "+policy.r=1"]).policy.params == {
        "r": 1
    }


def test_settings_of_hydra_in_a_recipe_are_refused(in_tmp):
    written(in_tmp / "r.yaml", BASE + "hydra: {run: {dir: x}}\n")
    [problem] = problems("r.yaml")
    assert (problem.where, problem.fix[:9]) == ("hydra", "remove it")


@pytest.mark.parametrize("stem", ["-x", ".hidden", "n" * 240, "é" * 120, "..."])
def test_a_recipe_without_a_name_is_called_after_its_file_as_a_folder_may_be(in_tmp, stem):
    written(in_tmp / f"{stem}.yaml", BASE)
    assert is_plain_name(load_recipe(in_tmp / f"{stem}.yaml").name)


def test_G07_faults_of_overrides_and_of_the_recipe_are_told_together(base):
    found = problems("base.yaml", ["+pools.web.qouta=0.5", "seed=-1", "stages.short.context=0"])
    assert [problem.where for problem in found] == ["pools.web.qouta", "seed", "stages.short.context"]


@pytest.mark.parametrize(
    ("overrides", "key", "value"),
    [
        (["seed=0"], "seed", 0),
        (["stages.short.slicing.tail=drop"], "stages.short.slicing.tail", "drop"),
        (["stages.short.packing=concat"], "stages.short.packing.method", "concat"),
        (["stages.short.packing.attention=sequence"], "stages.short.packing.attention", "sequence"),
        (["model.max_positions=4Ki"], "model.max_positions", 4096),
        (["+model.vocab_size=100"], "model.vocab_size", 100),
        (["stages.short.quotas.web=50%"], "stages.short.quotas.code", "50%"),
        (["stages.short.quotas={web: 0%}"], "stages.short.quotas.code", "100%"),
        (["+pools.new.path=x", "every_stage.weights={web: 1, code: 1, new: 2}", "~stages.short.quotas"], "stages.short.weights.new", 2),
        (["~stages.long"], "stages", "short"),
        (["curriculum=[long,short]"], "stages", "long"),
        (["+stages.third={like: long, tokens: 3k}"], "stages.third.tokens", 3000),
        (["tokenizer=bytes"], "tokenizer.builtin", "bytes"),
        (["tokenizer=tokenizers/ours"], "tokenizer.path", "tokenizers/ours"),
        (["sink=parquet"], "sink.format", "parquet"),
        (["sink=parquet", "sink.rows_per_file=10"], "sink.rows_per_file", 10),
        (["pools_root=null"], "pools_root", None),
    ],
)  # fmt: skip
def test_an_override_sets_its_key(base, overrides, key, value):
    plain = recipe_to_plain(load_recipe("base.yaml", overrides))
    for part in key.split("."):
        plain = plain.get(part) if isinstance(plain, dict) else plain
    assert (next(iter(plain)) if isinstance(plain, dict) else plain) == value


@pytest.mark.parametrize(
    ("override", "there", "gone"),
    [
        ("stages.short.steps=10", "steps", "tokens"),
        ("stages.short.weights={web: 1, code: 2}", "weights", "quotas"),
        ("stages.short={steps: 10}", "steps", "tokens"),
        ("+stages.short.quotas_tokens={web: 600k, code: 400k}", "quotas_tokens", "quotas"),
    ],
)
def test_an_override_replaces_alternatives_whole(base, override, there, gone):
    stage = recipe_to_plain(load_recipe("base.yaml", [override]))["stages"]["short"]
    assert there in stage and gone not in stage


def test_a_batch_given_another_way_replaces_it(base):
    assert load_recipe("base.yaml", ["stages.short.batch.tokens=8Ki"]).stages["short"].ramp == ((0, 16),)
    assert load_recipe("base.yaml", ["stages.short.batch={ramp: {0: 2, 100k: 4}}"]).stages["short"].ramp == (
        (0, 2),
        (100_000, 4),
    )


def test_a_short_group_can_be_changed_in_its_parts(base, in_tmp):
    written(in_tmp / "r.yaml", BASE + "groups: {g: [web, code]}\n")
    assert load_recipe("r.yaml", ["groups.g.within=even"]).groups["g"].within.kind == "even"


@pytest.mark.parametrize(
    "key", ["curriculum.2", "curriculum.x", "curriculum.0.x", "groups.g.pools.7", "groups.g.pools.0.x"]
)
def test_a_place_that_a_list_does_not_have_is_refused(base, in_tmp, key):
    written(in_tmp / "r.yaml", BASE + "groups: {g: {pools: [web, code]}}\ncurriculum: [short, long]\n")
    assert "a place inside" in problems("r.yaml", [f"{key}=web"])[0].expected


def test_an_entry_of_a_list_can_be_changed_and_removed(in_tmp):
    written(in_tmp / "r.yaml", BASE + "groups: {g: {pools: [web, code]}}\n")
    assert load_recipe("r.yaml", ["groups.g.pools.1=web", "~groups.g.pools.0"]).groups["g"].pools == ("web",)


def test_hydra_state_of_a_host_program_is_left_alone(base):
    from hydra.core.global_hydra import GlobalHydra

    load_recipe("base.yaml")
    assert not GlobalHydra.instance().is_initialized()
