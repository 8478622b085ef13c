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
from typing import Any

import pytest

from recipe.errors import RecipeError
from recipe.run import lease
from recipe.run.lease import held, newest_owner
from tests.run.faulty import FaultyOs, full_once

HOLD = """
import sys
from pathlib import Path
from typing import Any
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
        waiting = pool.submit(lambda: held(tmp_path, wait=600).__enter__().owner.fence)
        end(process)
        assert waiting.result() == 2


@pytest.mark.parametrize("ahead", [-1, 1])
def test_an_owner_of_another_host_is_dead_once_its_heartbeat_is_old(tmp_path: Path, ahead: int):
    """Hours, so that no pause of this process makes an old one of a young one."""
    process, hours = holder(tmp_path), 3600.0
    rewrite(tmp_path, host="elsewhere", heartbeat=time.time() + ahead * 25 * hours)
    with pytest.raises(RecipeError, match="elsewhere"), held(tmp_path, wait=0, stale=30 * hours):
        pass
    rewrite(tmp_path, host="elsewhere", heartbeat=time.time() + ahead * 35 * hours)
    with held(tmp_path, wait=0, stale=30 * hours) as mine:
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
    with pytest.raises(RecipeError, match=str(2**22 + 1)), held(tmp_path, wait=0, stale=3600):
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
        with held(tmp_path, wait=600) as mine:
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


def owner_file(folder: Path, name: str = "0000000004.json", **changes: object) -> Path:
    """A lease of another host that was heard of just now, with some values of another kind."""
    owner = {"fence": 4, "owner": "x", "host": "elsewhere", "pid": 7, "space": "", "began": ""}
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(json.dumps({**owner, "heartbeat": time.time(), **changes}))
    return folder / name


JUNK = [
    "9x.free",
    "12.json",
    "9999999999999.free",
    "-000000009.free",
    "0000000099.txt",
    ".tmp-0000000099.json",
]


@pytest.mark.parametrize("name", JUNK)
@pytest.mark.parametrize("make", [Path.mkdir, Path.touch, lambda path: path.symlink_to("nowhere")])
def test_what_is_not_named_as_a_lease_is_not_looked_at(tmp_path: Path, name: str, make: Any):
    make(tmp_path / name)
    for fence in (1, 2):
        with held(tmp_path, wait=0) as mine:
            assert mine.owner.fence == fence
    assert {path.name for path in tmp_path.iterdir()} == {name, "0000000002.free"}


@pytest.mark.parametrize("ending", ["json", "free"])
@pytest.mark.parametrize("make", [Path.mkdir, lambda path: path.symlink_to("nowhere")])
def test_a_folder_or_a_link_in_the_place_of_a_lease_is_named(tmp_path: Path, ending: str, make: Any):
    make(tmp_path / f"0000000099.{ending}")
    with pytest.raises(RecipeError, match=rf"0000000099\.{ending}: no lease"), held(tmp_path, wait=0):
        pass
    with pytest.raises(RecipeError, match="no lease"):
        newest_owner(tmp_path)


def test_a_folder_with_a_lower_number_does_no_harm(tmp_path: Path):
    (tmp_path / "0000000003.json").mkdir()
    (tmp_path / "0000000007.free").touch()
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 8


def test_the_last_number_is_told_and_not_counted_past(tmp_path: Path):
    (tmp_path / "9999999998.free").touch()
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 9999999999
    with pytest.raises(RecipeError, match="the last number there is"), held(tmp_path, wait=0):
        pass


@pytest.mark.parametrize(
    "changes",
    [
        {"pid": "x"},
        {"pid": 10**30},
        {"pid": 0},
        {"pid": -1},
        {"pid": True},
        {"pid": 1.0},
        {"fence": 5},
        {"fence": "4"},
        {"host": None},
        {"host": "\ud800"},
        {"owner": ["x"]},
        {"began": "x" * 10_000},
        {"more": 1},
    ],
)
def test_an_owner_of_wrong_values_is_no_lease(tmp_path: Path, changes: dict[str, Any]):
    owner_file(tmp_path, **changes)
    with pytest.raises(RecipeError, match=r"0000000004\.json: no lease"), held(tmp_path, wait=0):
        pass


@pytest.mark.parametrize("text", ["[]", "null", "3", "[" * 5000, "\xff", ""])
def test_a_text_that_is_no_owner_is_no_lease(tmp_path: Path, text: str):
    (tmp_path / "0000000004.json").write_bytes(text.encode("latin-1"))
    with pytest.raises(RecipeError, match="no lease"), held(tmp_path, wait=0):
        pass


NO_NUMBERS = ["x", None, float("nan"), float("inf"), True, 10**400]


@pytest.mark.parametrize("heartbeat", NO_NUMBERS)
def test_a_heartbeat_that_is_no_number_says_nothing_of_another_host(tmp_path: Path, heartbeat: Any):
    path = owner_file(tmp_path, heartbeat=heartbeat)
    with pytest.raises(RecipeError, match="a heartbeat that is no number"), held(tmp_path, wait=0):
        pass
    assert path.exists()


@pytest.mark.parametrize("heartbeat", NO_NUMBERS)
def test_a_heartbeat_that_is_no_number_does_not_keep_a_dead_process_alive(tmp_path: Path, heartbeat: Any):
    process = holder(tmp_path)
    process.send_signal(signal.SIGKILL)
    end(process)
    path = tmp_path / "0000000001.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "heartbeat": heartbeat}))
    with held(tmp_path, wait=0) as mine:
        assert mine.owner.fence == 2
