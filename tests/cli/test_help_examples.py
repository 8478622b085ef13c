"""What ``--help`` shows works as it is typed, right after ``recipe run``: on a run like the demo's."""

from __future__ import annotations

import io
import shlex
import shutil
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.cli.verbs import VERBS

RUN_VERBS = ("amend", "branch", "skip", "withdraw", "status", "seal", "trace")
EXAMPLES = [example for verb in RUN_VERBS for example in VERBS[verb].examples]
ASKS = 1
"""Exit code of a verb that shows what it would do and finds nobody to ask."""


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's recipe over pools of random text, complete, with the demo's checkpoints."""
    root = tmp_path_factory.mktemp("demo")
    dice = np.random.default_rng(0)
    plain = recipe.load_recipe("demo", ["max_epochs=1000", f"pools_root='{root}'"])
    for name, pool in plain.pools.items():
        texts = [dice.integers(0, 256, size=n) for n in dice.integers(200, 9000, size=40)]
        ids = [f"{name}/{number}" for number in range(40)]
        if name == "code":
            ids[7] = "asyncio/locks.py"
        recipe.write_pool(root / str(pool.path), texts, vocab_size=257, eos=256, ids=ids)
    with recipe.start_run(plain, root / "runs" / "demo") as run:
        for step in range(16, run.num_steps + 1, 16):
            run.checkpoint(step, uri=f"step-{step}")
    return root / "runs" / "demo"


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_on_a_run_works(
    example: str,
    finished: Path,
    in_tmp: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    shutil.copytree(finished, in_tmp / "runs" / "demo")
    (in_tmp / "ids.txt").write_text("asyncio/locks.py\n")
    monkeypatch.setattr("sys.stdin", io.StringIO())
    code = main(shlex.split(example)[1:])
    out, err = capsys.readouterr()
    assert code in (0, ASKS), err
    assert (code == ASKS) == ("nothing was written; --yes agrees" in err)
    assert out


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ["amend", "runs/demo", "stages.long.quotas.english=20%", "--from", "tutorials"],
            "(--at 240; inside it",
        ),
        (["amend", "runs/demo", "stages.short.tokens=1Mi"], "(--at 112; inside it are 16, 32"),
        (["branch", "runs/demo", "more", "stages.long.tokens=4Mi"], "(runs/demo@step:240; inside it"),
        (["branch", "runs/demo", "more", "stages.short.tokens=1Mi"], "the run is complete at step 256"),
        (
            ["skip", "runs/demo", "--steps", "90..100"],
            "the nearest ones are 32, 48, 64, 80, 96, 112, 128, 144",
        ),
    ],
)
def test_a_change_of_what_is_finished_says_from_where_it_can_be_made(
    words: list[str], told: str, finished: Path, in_tmp: Path, capsys: pytest.CaptureFixture[str]
):
    shutil.copytree(finished, in_tmp / "runs" / "demo")
    assert main([*words, "--reason", "x", "--yes"]) == 2
    err = capsys.readouterr().err
    assert told in err
