"""Recipes written for a person."""

from fractions import Fraction
from pathlib import Path

import pytest

from recipe import load_recipe, write_pool
from recipe.cli.main import main
from recipe.config import settle


def pool(path: Path, tokens: int) -> None:
    write_pool(path, [[1] * tokens], vocab_size=300, eos=0)


def drafted(capsys, *words: str) -> str:
    assert main(["new", *words]) == 0
    return capsys.readouterr().out


def refused(capsys, *words: str) -> str:
    assert main(["new", *words]) == 2
    return capsys.readouterr().err


def test_a_folder_of_pools_becomes_a_recipe_that_loads(in_tmp, capsys):
    pool(in_tmp / "pools/web", 9000)
    pool(in_tmp / "pools/code", 990)
    pool(in_tmp / "pools/no", 10)
    (in_tmp / "my.yaml").write_text(drafted(capsys))
    recipe = load_recipe("my.yaml")
    assert set(recipe.pools) == {"web", "code", "no"}
    assert recipe.pool_path("web") == Path("pools/web")
    assert recipe.stages["main"].tokens == 10_000
    shares = recipe.shares("main")
    assert shares == {"code": Fraction(99, 1000), "no": Fraction(1, 1000), "web": Fraction(9, 10)}


def test_pools_that_are_the_folders_of_one_may_be_a_set_and_the_draft_says_how(in_tmp, capsys):
    """The line it shows makes the same pools of the same names."""
    pool(in_tmp / "pools/web", 9000)
    pool(in_tmp / "pools/no", 10)
    text = drafted(capsys)
    assert '"*": {path: pools/*}' in text
    (in_tmp / "my.yaml").write_text(text)
    kept = [line for line in text.splitlines() if "{path: pools/" not in line and "quotas:" not in line]
    kept.insert(
        kept.index(next(line for line in kept if line.startswith("pools:"))) + 1, '  "*": {path: pools/*}'
    )
    (in_tmp / "set.yaml").write_text("\n".join([*kept, '    quotas: {"*": 100%}']) + "\n")
    assert load_recipe("set.yaml").pools == load_recipe("my.yaml").pools
    (in_tmp / "pools/other").mkdir()
    assert '"*"' not in drafted(capsys)


def test_every_key_has_a_comment_for_the_reader(in_tmp, capsys):
    pool(in_tmp / "pools/web", 100)
    text = drafted(capsys, "pools")
    assert text.startswith("# Made from the pools in pools")
    assert text.count("#") > 8


def test_pairs_of_megatron_are_pools_too(in_tmp, capsys):
    pool(in_tmp / "own", 100)
    (in_tmp / "pools").mkdir()
    for name in ("a", "b"):
        for ending in (".bin", ".idx"):
            source = next((in_tmp / "own").glob(f"*{ending}"))
            (in_tmp / "pools" / f"{name}_text_document{ending}").write_bytes(source.read_bytes())
    (in_tmp / "my.yaml").write_text(drafted(capsys, "pools"))
    assert set(load_recipe("my.yaml").pools) == {"a", "b"}


@pytest.mark.parametrize("folder", ["nowhere", "empty"])
def test_a_folder_without_pools_is_told(in_tmp, capsys, folder):
    (in_tmp / "empty").mkdir()
    assert "prepare one first" in refused(capsys, folder)


def test_a_file_that_is_there_is_not_replaced_unasked(in_tmp, capsys):
    pool(in_tmp / "pools/web", 100)
    (in_tmp / "out").mkdir()
    assert main(["new", "--out", "out/my.yaml"]) == 0
    assert "--yes" in refused(capsys, "--out", "out/my.yaml")
    assert main(["new", "--out", "out/my.yaml", "--yes"]) == 0
    assert load_recipe("out/my.yaml").name == "my"


@pytest.mark.parametrize("parent", ["nope", "nope/deeper", "a.txt"])
def test_a_folder_that_is_not_there_is_not_made(in_tmp, capsys, parent):
    pool(in_tmp / "pools/web", 100)
    (in_tmp / "a.txt").touch()
    assert f"a folder that is there, not {parent}" in refused(capsys, "--out", f"{parent}/x.yaml")
    assert not (in_tmp / "nope").exists()


def blend(in_tmp: Path, text: str) -> str:
    (in_tmp / "blend.txt").write_text(text)
    return "blend.txt"


def test_a_blend_becomes_exact_token_shares(in_tmp, capsys):
    file = blend(in_tmp, "30 data/web_text_document\n70 data/code_text_document\n")
    options = ("--split", "969,30,1", "--seq-length", "2048", "--train-samples", "1000", "--eod", "0")
    assert main(["new", "--megatron-blend", file, *options]) == 0
    out, notes = capsys.readouterr()
    (in_tmp / "my.yaml").write_text(out)
    recipe = load_recipe("my.yaml")
    assert recipe.shares("main") == {"web": Fraction(3, 10), "code": Fraction(7, 10)}
    assert recipe.stages["main"].tokens == 2_048_000
    assert recipe.pools["web"].path == "data/web_text_document"
    assert recipe.pools["web"].eos == 0
    for word in ("Samples became tokens", "summed to 100", "96.9 %", "Epochs", "EOD"):
        assert word in notes and word in out


def test_thirds_stay_thirds(in_tmp, capsys):
    (in_tmp / "my.yaml").write_text(drafted(capsys, "--megatron-blend", blend(in_tmp, "1 a 1 b 1 c")))
    assert set(load_recipe("my.yaml").shares("main").values()) == {Fraction(1, 3)}


def test_a_blend_without_weights_goes_by_stock(in_tmp, capsys):
    (in_tmp / "my.yaml").write_text(drafted(capsys, "--megatron-blend", blend(in_tmp, "d/web d/everything")))
    shares = settle(load_recipe("my.yaml"), {"web": 300, "everything": 100}, {}).shares("main")
    assert shares == {"web": Fraction(3, 4), "everything": Fraction(1, 4)}


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (("--megatron-blend", "nowhere.txt"), "--megatron-blend"),
        (("--megatron-blend", "blend.txt", "--split", "a,b"), "--split"),
        (("--megatron-blend", "blend.txt", "--split", "0,0"), "--split"),
        (("--megatron-blend", "blend.txt", "--seq-length", "0"), "--seq-length"),
        (("--megatron-blend", "blend.txt", "--train-samples", "many"), "--train-samples"),
        (("pools", "--megatron-blend", "blend.txt"), "POOLS"),
    ],
)
def test_options_that_cannot_be_are_told(in_tmp, capsys, words, where):
    blend(in_tmp, "1 a 1 b")
    assert where in refused(capsys, *words)
