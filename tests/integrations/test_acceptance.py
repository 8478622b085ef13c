"""Acceptance of the program, of a run's own data, and of a package on a machine without the pools."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import yaml

import recipe
from recipe.audit.verify import Acceptance
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.integrations.acceptance import Sample, verify_package, verify_program, verify_run
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.handover import Wanted, hand_over_run
from recipe.run.handover.staging import SUMS_NAME
from tests.run.handed import (
    contents,
    copied,
    eventful_run,
    plain_recipe,
    plain_run,
    prepared,
    resummed,
)

SAMPLE = Sample(documents=60, seed=1)


@pytest.fixture(scope="module")
def giver(tmp_path_factory) -> Path:
    """A machine with pools, texts, and a run."""
    root = prepared(tmp_path_factory.mktemp("giver"))
    plain_run(root)
    return root


@pytest.fixture(scope="module")
def package(giver, tmp_path_factory) -> Path:
    """The run handed over."""
    out = tmp_path_factory.mktemp("package") / "p"
    return hand_over_run(giver / "runs/plain", out, Wanted(archive="none")).path


def verdicts(acceptance: Acceptance) -> dict[str, bool | None]:
    return {check.name: check.ok for check in acceptance.checks}


def failed(acceptance: Acceptance) -> set[str]:
    return {check.name for check in acceptance.checks if check.ok is False}


# the program


def test_G2_the_program_is_accepted_on_two_tiny_documents():
    acceptance = verify_program()
    assert acceptance.ok and None not in verdicts(acceptance).values()
    assert {"text", "ids", "attention", "positions", "loss", "padding", "restart"} <= set(
        verdicts(acceptance)
    )


def test_B7_it_is_said_whose_text_comes_back():
    said = {check.name: check.said for check in verify_program().checks}
    assert "are their texts (bytes)" in said["texts"]
    assert "are the text they were made from" in said["text"]


def test_a_tokenizer_that_is_not_there_is_the_users_fault(tmp_path):
    with pytest.raises(RecipeError):
        verify_program(tmp_path / "tokenizer.json")


# a run's own data


def test_a_runs_own_data_is_accepted_and_its_documents_are_whole(giver):
    acceptance = verify_run(giver / "runs/plain", sample=SAMPLE, sources=[giver / "texts"])
    assert acceptance.ok and None not in verdicts(acceptance).values()
    said = {check.name: check.said for check in acceptance.checks}
    assert "are the text they were made from" in said["text"]
    assert "in several pieces" in said["seams"] and " 0 of them in several" not in said["seams"]


def test_verifying_writes_nothing(giver):
    before = contents(giver / "runs/plain")
    verify_run(giver / "runs/plain", sample=SAMPLE)
    assert contents(giver / "runs/plain") == before


def test_a_choice_can_be_repeated_by_its_seed(giver):
    first, second = (verify_run(giver / "runs/plain", sample=SAMPLE) for _ in range(2))
    assert first == second and first.seed == 1
    assert verify_run(giver / "runs/plain").seed not in (None, 1)


def test_a_run_to_which_everything_happened_is_accepted_turn_by_turn(giver):
    acceptance = verify_run(eventful_run(giver), sample=SAMPLE)
    assert acceptance.ok, acceptance
    assert verdicts(acceptance)["seams"] is True


def test_a_run_that_served_nothing_yet_is_verified_ahead(giver, tmp_path):
    made = recipe.open_run(giver / "runs/plain", step=0).recipe
    recipe.start_run(made, tmp_path / "run").close()
    acceptance = verify_run(tmp_path / "run", sample=SAMPLE)
    assert acceptance.ok and verdicts(acceptance)["rows"] is True


def test_tokens_that_were_changed_are_no_longer_the_text(giver, tmp_path):
    """The rows still are what the pool holds; the source tells."""
    shutil.copytree(giver / "pools", tmp_path / "pools")
    for path in (tmp_path / "pools").rglob("*.bin"):
        tokens = np.fromfile(path, np.uint16)
        tokens[tokens == ord("q")] = ord("Q")
        tokens.tofile(path)
    acceptance = verify_run(
        giver / "runs/plain", sample=SAMPLE, pools_root=tmp_path, sources=[giver / "texts"]
    )
    assert failed(acceptance) == {"text"}
    [finding, *_] = next(check for check in acceptance.checks if check.ok is False).findings
    assert "'q" in finding.expected and "'Q" in finding.observed


def test_what_is_no_run_and_no_package_is_the_users_fault(tmp_path):
    for refused in (verify_run, verify_package):
        with pytest.raises(RecipeError):
            refused(tmp_path)
    with pytest.raises(ValueError, match="documents"):
        verify_run(tmp_path, sample=Sample(documents=0))


# a package


def test_G1_a_package_is_accepted_where_the_pools_are_not(package, tmp_path):
    acceptance = verify_package(copied(package, tmp_path / "p"))
    assert acceptance.ok and None not in verdicts(acceptance).values(), acceptance
    said = {check.name: check.said for check in acceptance.checks}
    assert "from lengths alone" in said["audit"] and "the tokens are not here" in said["stream"]


def test_with_the_pools_its_batches_are_compared_as_well(giver, package):
    acceptance = verify_package(package, pools_root=giver)
    assert acceptance.ok
    said = {check.name: check.said for check in acceptance.checks}
    assert "rows and tokens" in said["stream"] and "from lengths alone" not in said["audit"]


def test_a_package_with_tokens_is_compared_to_the_last_of_them(giver, tmp_path):
    done = hand_over_run(giver / "runs/plain", tmp_path / "p", Wanted(archive="none", tokens=True))
    acceptance = verify_package(done.path)
    said = {check.name: check.said for check in acceptance.checks}
    assert acceptance.ok and "rows and tokens" in said["stream"]


def test_a_branch_is_accepted_without_its_parent(giver, tmp_path):
    wish = Wish(name="B", overrides=("stages.short.quotas={en: 50%, zh: 50%}",))
    (path,) = branch_run(f"{giver / 'runs/plain'}@1", wish, root=tmp_path)
    with recipe.open_run(path) as run:
        run.checkpoint(9)
    done = hand_over_run(path, tmp_path / "p", Wanted(archive="none"))
    assert (done.path / "run/parent.yaml").is_file()
    acceptance = verify_package(done.path)
    assert acceptance.ok, acceptance


def test_pairs_travel_with_their_tokens_or_not_at_all(giver, tmp_path):
    """Which marks they store is known from their tokens alone; what is lacking is said, and no fault."""
    (tmp_path / "pairs").mkdir()
    for ending in ("bin", "idx"):
        shutil.copy(giver / f"pools/zh/part-00000.{ending}", tmp_path / f"pairs/x.{ending}")
    shutil.copytree(giver / "pools/en", tmp_path / "pools/en")
    plain = plain_recipe(tmp_path)
    plain["pools"]["zh"] = {"path": "pairs/x", "eos": 256}
    with recipe.start_run(recipe_from_plain(plain, source="test"), tmp_path / "run") as run:
        run.checkpoint(13)
    bare = hand_over_run(tmp_path / "run", tmp_path / "bare", Wanted(archive="none"))
    assert "pool zh: imported files" in bare.notes[0]
    found = verdicts(verify_package(bare.path))
    assert found["state, statements, stream"] is None and found["audit"] is True
    assert verify_package(bare.path, pools_root=tmp_path).ok
    full = hand_over_run(tmp_path / "run", tmp_path / "full", Wanted(archive="none", tokens=True))
    acceptance = verify_package(full.path)
    assert acceptance.ok and verdicts(acceptance)["stream"] is True


def test_other_pools_are_not_taken_for_the_runs(package, tmp_path):
    for name in ("en", "zh"):
        recipe.write_pool(tmp_path / "pools" / name, [[1, 2, 3]] * 20, vocab_size=257, eos=256).close()
    assert {"audit", "stream"} <= failed(verify_package(package, pools_root=tmp_path))


@pytest.mark.slow
def test_in_another_process_and_folder_with_the_wheel_alone(package, tmp_path):
    """The package and the program that came with it: no checkout, no pools, a folder of its own."""
    place = copied(package, tmp_path / "there" / "p")
    [wheel] = place.glob("5-program/*.whl")
    program = tmp_path / "program"
    words = ["install", "-q", "--no-index", "--no-deps", "--target", str(program), str(wheel)]
    subprocess.run([sys.executable, "-m", "pip", *words], check=True, capture_output=True)
    code = (
        "from recipe.cli.main import main; import recipe; print(recipe.__file__);"
        "verified = main(['audit', 'verify', '.']);"
        "audited = main(['audit', 'run', '--metadata-only', '--pools-root', '2-data/pools']);"
        "raise SystemExit(verified or audited)"
    )
    environment = {"PYTHONPATH": str(program), "PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=place, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.startswith(str(program)) and "every claim holds" in done.stdout
    assert contents(place).keys() == contents(package).keys()


def test_every_changed_file_is_named_by_its_checksum(package, tmp_path):
    place = copied(package, tmp_path / "p")
    for name, data in contents(package).items():
        if name == SUMS_NAME:
            continue
        (place / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        from recipe.run.handover.receiving import check_sums

        findings, _ = check_sums(place)
        assert [finding.where for finding in findings] == [name]
        (place / name).write_bytes(data)


STRANGE: dict[str, Callable[[Path], object]] = {
    "a file more": lambda p: (p / "run/x").write_text("x"),
    "a file less": lambda p: (p / "README.md").unlink(),
    "a link for a file": lambda p: ((p / "README.md").unlink(), (p / "README.md").symlink_to("/etc/passwd")),
    "a line that leads away": lambda p: add_line(p, f"{'0' * 64}  ../../etc/passwd"),
    "a line that is none": lambda p: add_line(p, "hello"),
    "no list": lambda p: (p / SUMS_NAME).unlink(),
}


def add_line(package: Path, line: str) -> None:
    path = package / SUMS_NAME
    path.write_text(path.read_text() + line + "\n")


@pytest.mark.parametrize("case", STRANGE)
def test_whatever_is_strange_in_the_folder_is_named(package, tmp_path, case):
    place = copied(package, tmp_path / "p")
    STRANGE[case](place)
    acceptance = verify_package(place)
    assert "checksums" in failed(acceptance)


def set_key(name: str, *keys: str, value: object) -> Callable[[Path], None]:
    def change(package: Path) -> None:
        plain = yaml.safe_load((package / name).read_bytes())
        inner = plain
        for key in keys[:-1]:
            inner = inner[key]
        assert inner[keys[-1]] != value
        inner[keys[-1]] = value
        (package / name).write_text(yaml.safe_dump(plain, sort_keys=False, allow_unicode=True))

    return change


def replaced(name: str, old: bytes, new: bytes) -> Callable[[Path], None]:
    def change(package: Path) -> None:
        data = (package / name).read_bytes()
        assert old in data
        (package / name).write_bytes(data.replace(old, new, 1))

    return change


def flipped(pattern: str, at: int) -> Callable[[Path], None]:
    def change(package: Path) -> None:
        [path] = package.glob(pattern)
        data = bytearray(path.read_bytes())
        data[at] ^= 1
        path.write_bytes(data)

    return change


def another_wheel(package: Path) -> None:
    from recipe.run.handover.program import package_files, wheel

    [path] = package.glob("5-program/*.whl")
    path.write_bytes(wheel({**package_files(), "recipe/errors.py": b"raise SystemExit\n"}))


FORGED: dict[str, tuple[Callable[[Path], None], str]] = {
    "the step": (set_key("handover.yaml", "step", value=99), "statements"),
    "the README": (replaced("README.md", b"33.3333%", b"99.0000%"), "statements"),
    "the data list": (set_key("2-data/data.yaml", "pools", "en", "documents", value=7), "statements"),
    "a rule": (set_key("3-sequences/rules.yaml", "labels", value="inputs"), "statements"),
    "a setting": (replaced("3-sequences/trainer.yaml", b"single", b"cyclic"), "statements"),
    "a quota": (set_key("4-quotas/quotas.yaml", "count", value="labels"), "statements"),
    "the reading": (set_key("5-program/reading.yaml", "seed", value=12), "statements"),
    "a built-in vector": (set_key("5-program/vectors.yaml", "synthetic", "stream", value="0"), "vectors"),
    "a vector of the run": (set_key("5-program/vectors.yaml", "run", "0", "pieces", value="0"), "stream"),
    "the source's hash": (set_key("5-program/program.yaml", "source_hash", value="0"), "wheel"),
    "the wheel": (another_wheel, "wheel"),
    "no wheel": (flipped("5-program/*.whl", 0), "wheel"),
    "the state": (flipped("5-program/state.bin", -1), "state"),
    "the tokenizer": (set_key("1-tokenizer/tokenizer.yaml", "pools", "en", value="0"), "tokenizer"),
    "a length": (flipped("2-data/pools/pools/en/offsets.npy", 200), "audit"),
    "a card": (
        replaced("2-data/pools/pools/en/card.json", b'"shuffled": true', b'"shuffled": false'),
        "audit",
    ),
    "the ledger": (replaced("run/ledger.jsonl", b'"counted":', b'"counted":1'), "audit"),
    "a manifest": (replaced("run/manifests/000001.yaml", b"weights/5", b"weights/6"), "audit"),
    "the recipe": (replaced("run/recipes/0001.yaml", b"seed: 11", b"seed: 12"), "audit"),
    "the run": (replaced("run/run.yaml", b"name: plain", b"name: other"), "audit"),
    "no YAML": (replaced("5-program/vectors.yaml", b"format: 1", b"{"), "vectors"),
    "another form": (replaced("5-program/program.yaml", b"source_hash:", b"sourcehash:"), "program"),
}


@pytest.mark.parametrize("case", FORGED)
def test_a_forgery_whose_checksums_fit_is_found_by_what_follows_from_the_record(package, tmp_path, case):
    change, name = FORGED[case]
    place = copied(package, tmp_path / "p")
    change(place)
    resummed(place)
    acceptance = verify_package(place)
    assert verdicts(acceptance)["checksums"] is True
    assert name in failed(acceptance), acceptance
    assert all(check.findings for check in acceptance.checks if check.ok is False)


def test_another_program_is_no_fault_of_the_package(package, tmp_path):
    """Another version may write the parts another way: it says so, and compares the rest."""
    place = copied(package, tmp_path / "p")
    another_wheel(place)
    from recipe.run.handover.program import files_in_wheel, source_hash

    [wheel] = place.glob("5-program/*.whl")
    set_key("5-program/program.yaml", "source_hash", value=source_hash(files_in_wheel(wheel)))(place)
    resummed(place)
    found = verdicts(verify_package(place))
    assert found["program"] is None and found["wheel"] is True and found["statements"] is None
    assert found["audit"] is True and found["vectors"] is True
