"""`recipe flags`: what a launch script takes over."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

import recipe
from recipe.cli.main import main

STAGE = {"context": 16, "weights": {"a": 1}}


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    """The settings of a recipe with such a batch, as JSON."""
    recipe.write_pool(tmp_path / "a", [range(1, 30)] * 40, vocab_size=50, eos=0)
    monkeypatch.chdir(tmp_path)

    def told(batch: dict, *words: str) -> dict:
        plain = {
            "seed": 1,
            "pools": {"a": {"path": "a"}},
            "stages": {"one": STAGE | {"steps": 12, "batch": batch}},
            "max_epochs": 99,
        }
        Path("my.yaml").write_text(yaml.safe_dump(plain, sort_keys=False))
        assert main(["flags", "my.yaml", "--json", *words]) == 0
        return json.loads(capsys.readouterr().out)["settings"]

    return told


def options(settings: list[dict]) -> dict[str, object]:
    return {each["option"]: each["value"] for each in settings}


def test_a_ramp_that_megatron_can_say_is_its_own_flag(told):
    """Batches of 2, 4 and 6: eight samples of each smaller size."""
    flags = options(told({"ramp": {0: 2, 128: 4, 256: 6}})["stages"]["one"])
    assert flags["--rampup-batch-size"] == "2 2 16"
    assert flags["--train-samples"] == 4 * 2 + 2 * 4 + 6 * 6


def test_a_ramp_that_it_cannot_say_is_a_launch_for_every_size(told):
    """Batches of 2, 4 and 6 at uneven distances: each launch ends where the next begins."""
    launches = told({"ramp": {0: 2, 128: 4, 384: 6}})["stages"]
    assert list(launches) == ["one, from step 0", "one, from step 4", "one, from step 8"]
    sizes = [
        (found["--global-batch-size"], found.get("--train-samples"), found.get("--train-iters"))
        for found in map(options, launches.values())
    ]
    assert sizes == [(2, 8, None), (4, None, 8), (6, None, 12)]
    assert {options(each)["--rampup-batch-size"] for each in launches.values()} == {"leave out"}


def test_a_run_says_its_own(told, capsys):
    told({"sequences": 2})
    with recipe.start_run(recipe.load_recipe("my.yaml"), "run"):
        pass
    assert main(["flags", "run"]) == 0
    text = capsys.readouterr().out
    assert "# stage one\n--seq-length 16  #" in text and "--train-samples 24" in text
    assert main(["flags", "run", "seed=2"]) == 2
    assert "alone" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("trainer", "option", "value"),
    [
        ("transformers", "shift_labels", "batch['labels']"),
        ("flash_attention", "flash_attn_varlen_func(max_seqlen_q=, max_seqlen_k=)", "batch['max_seqlen']"),
        ("pytorch", "cross_entropy(ignore_index=)", -100),
    ],
)
def test_other_trainers_have_theirs(told, capsys, trainer, option, value):
    assert options(told({"sequences": 2}, "--trainer", trainer))[option] == value
    for other in {"megatron", "transformers", "flash_attention", "pytorch"} - {trainer}:
        assert f'"{option}"' not in json.dumps(told({"sequences": 2}, "--trainer", other))
    assert main(["flags", "my.yaml", "--trainer", trainer]) == 0
    assert f"{option} = {value}  # " in capsys.readouterr().out


@pytest.mark.parametrize("trainer", ["megatron", "transformers", "pytorch"])
def test_rows_that_are_dealt_evenly_are_said(told, capsys, trainer):
    told({"sequences": 2})
    assert main(["flags", "my.yaml", "--trainer", trainer]) == 0
    assert "deal = " not in capsys.readouterr().out
    assert main(["flags", "my.yaml", "deal=balanced", "--trainer", trainer]) == 0
    assert "deal = balanced  # " in capsys.readouterr().out


def test_what_the_flags_say_of_the_mask_is_what_a_stream_does(told, capsys):
    from recipe.integrations.megatron import MegatronStream

    told({"sequences": 2})
    for words, mask in (
        ((), True),
        (("every_stage.packing={attention: sequence, positions: continue}",), False),
    ):
        assert main(["flags", "my.yaml", *words]) == 0
        said = "MegatronStream gives the mask by itself" in capsys.readouterr().out
        with recipe.start_run(recipe.load_recipe("my.yaml", list(words)), f"run{mask}") as run:
            item = MegatronStream(run.state(), 16)[0]
        assert said == ("attention_mask" in item) == mask
