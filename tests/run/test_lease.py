"""The lease: one writer at a time; the dead are taken over, the living are named."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from recipe.errors import RecipeError
from recipe.run import lease
from recipe.run.lease import held, newest_owner
from tests.run.faulty import FaultyOs, full_once

HOLD = """
import sys
from pathlib import Path
from recipe.run.lease import held
with held(Path(sys.argv[1])) as lease:
    print(lease.owner.fence, flush=True)
    sys.stdin.read()
"""


def holder(folder: Path) -> subprocess.Popen[str]:
    """Another process that holds the lease until its input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline().strip().isdigit()
    return process


def end(process: subprocess.Popen[str]) -> None:
    process.communicate()


def rewrite(folder: Path, **changes: object) -> None:
    """Change what the newest lease says, as another host would have written it."""
    owner = newest_owner(folder)
    assert owner is not None
    (folder / f"{owner.fence:010d}.json").write_text(json.dumps(asdict(replace(owner, **changes))))  # type: ignore[arg-type]


def test_fences_rise_and_old_ones_are_tidied(tmp_path: Path):
    fences = []
    for _ in range(3):
        with held(tmp_path / "lease") as mine:
            fences.append(mine.owner.fence)
    assert fences == [1, 2, 3]
    assert [path.name for path in (tmp_path / "lease").iterdir()] == ["0000000003.free"]
    assert newest_owner(tmp_path / "lease") is None


def test_X04_a_killed_owner_is_taken_over_at_once(tmp_path: Path):
    process = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    end(process)
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 2
        mine.check()


def test_X04_a_live_owner_is_respected_and_named(tmp_path: Path):
    process = holder(tmp_path)
    with pytest.raises(RecipeError) as caught, held(tmp_path, wait=0):
        pass
    problem = caught.value.problems[0]
    assert problem.where == str(tmp_path / "0000000001.json")
    assert f"process {process.pid} on " in str(problem.given)
    assert "last heard of" in str(problem.given)
    end(process)
    with held(tmp_path, wait=0):
        pass


def test_a_live_owner_is_waited_for(tmp_path: Path):
    process = holder(tmp_path)
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(lambda: held(tmp_path, wait=60).__enter__().owner.fence)
        end(process)
        assert waiting.result() == 2


@pytest.mark.parametrize("ahead", [-1, 1])
def test_an_owner_of_another_host_is_dead_once_its_heartbeat_is_old(tmp_path: Path, ahead: int):
    process = holder(tmp_path)
    rewrite(tmp_path, host="elsewhere", heartbeat=time.time() + ahead * 25)
    with pytest.raises(RecipeError, match="elsewhere"), held(tmp_path, wait=0):
        pass
    rewrite(tmp_path, host="elsewhere", heartbeat=time.time() + ahead * 35)
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 2
    end(process)


def test_a_process_id_that_was_given_again_is_another_owner(tmp_path: Path):
    process = holder(tmp_path)
    rewrite(tmp_path, began="12345")
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 2
    end(process)


def test_a_process_id_of_another_container_says_nothing(tmp_path: Path):
    process = holder(tmp_path)
    rewrite(tmp_path, space="another container", pid=2**22 + 1)
    with pytest.raises(RecipeError, match=str(2**22 + 1)), held(tmp_path, wait=0):
        pass
    end(process)


def test_who_was_taken_over_is_told_before_it_writes(tmp_path: Path):
    with held(tmp_path) as paused:
        rewrite(tmp_path, host="elsewhere", heartbeat=0.0)
        with held(tmp_path, wait=0) as other:
            with pytest.raises(RecipeError, match="taken over by process"):
                paused.check()
            other.check()
        paused.release()
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 3


def test_an_exception_inside_frees_the_lease(tmp_path: Path):
    with pytest.raises(ZeroDivisionError), held(tmp_path):
        raise ZeroDivisionError
    with held(tmp_path, wait=0):
        pass


def test_threads_take_turns(tmp_path: Path):
    inside: list[int] = []

    def write(number: int) -> int:
        with held(tmp_path, wait=60) as mine:
            inside.append(number)
            assert len(inside) == 1
            mine.check()
            inside.pop()
            return mine.owner.fence

    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(write, range(24)))) == 24


def test_a_damaged_lease_is_reported(tmp_path: Path):
    (tmp_path / "0000000004.json").write_text("{")
    with pytest.raises(RecipeError, match=r"0000000004\.json: no lease"), held(tmp_path, wait=0):
        pass


def test_a_lease_of_this_process_that_could_not_be_freed_is_dead(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    with held(tmp_path) as mine:
        assert not mine.owner.is_dead(mine.owner.heartbeat + 1000, 30)
        with monkeypatch.context() as patch:
            patch.setattr(lease.writes, "os", FaultyOs(full_once, 0))
            mine.release()
        assert newest_owner(tmp_path) == mine.owner
        with held(tmp_path, wait=0) as other:
            assert other.owner.fence == 2
