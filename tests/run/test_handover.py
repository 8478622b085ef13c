"""G1: the five-part delivery of a run; it holds what it says, no token, and nothing of this machine."""

from __future__ import annotations

import io
import os
import shutil
import subprocess
import sys
import tarfile
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
import yaml
import zstandard

import recipe
from recipe.config import recipe_from_plain, settle
from recipe.errors import RecipeError
from recipe.integrations.acceptance.package import verify_package
from recipe.run.branching.branch import branch_run
from recipe.run.branching.wishes import Wish
from recipe.run.handover import Wanted, hand_over_run
from recipe.run.handover.data import pool_folders
from recipe.run.handover.delivery import PATHS_NOTE
from recipe.run.handover.program import files_in_wheel, package_files, source_hash, wheel
from recipe.run.handover.staging import FIXED_TIME, SUMS_NAME
from recipe.run.handover.trainer import trainer_settings
from recipe.run.handover.vectors import synthetic_vectors
from recipe.run.manifest import read_manifest
from recipe.run.state import State
from tests.run.handed import (
    contents,
    copied,
    eventful_run,
    leaves,
    names,
    plain_recipe,
    plain_run,
    prepared,
)

PLAIN = Wanted(archive="none")


@pytest.fixture(scope="module")
def root(tmp_path_factory) -> Path:
    """Pools, texts, and a run that nobody changes."""
    root = prepared(tmp_path_factory.mktemp("giver"))
    plain_run(root)
    return root


@pytest.fixture(scope="module")
def package(root) -> Path:
    """The run handed over, with an archive."""
    return hand_over_run(root / "runs/plain", root / "out" / "package").path


def said(package: Path, name: str) -> dict:
    return yaml.safe_load((package / name).read_bytes())


def test_G1_the_five_parts_and_the_record_are_there(package):
    held = set(contents(package))
    assert held >= {
        "README.md",
        "README.zh-CN.md",
        "handover.yaml",
        SUMS_NAME,
        "1-tokenizer/tokenizer.yaml",
        "2-data/data.yaml",
        "3-sequences/rules.yaml",
        "3-sequences/trainer.yaml",
        "4-quotas/quotas.yaml",
        "5-program/program.yaml",
        "5-program/reading.yaml",
        "5-program/requirements.txt",
        "5-program/state.bin",
        "5-program/vectors.yaml",
        "run/run.yaml",
        "run/ledger.jsonl",
        "run/recipes/0001.yaml",
        "run/manifests/000002.yaml",
        "run/manifests/latest.yaml",
    }
    assert not [name for name in held if name.startswith(("run/lease", "run/snapshots", "run/sequences"))]


def test_no_token_is_inside_unless_asked_for(package):
    pools = {name for name in contents(package) if "/pools/" in name}
    assert {Path(name).name for name in pools} == {"card.json", "offsets.npy", "prepare.json"}


def test_the_record_is_the_runs_byte_for_byte(root, package):
    run = contents(root / "runs/plain")
    for name, data in contents(package / "run").items():
        assert run[name] == data, name


@pytest.mark.skipif(shutil.which("sha256sum") is None, reason="no sha256sum here")
def test_the_checksums_are_in_the_format_of_sha256sum(package):
    command = ["sha256sum", "-c", "--strict", "--quiet", SUMS_NAME]
    done = subprocess.run(command, cwd=package, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    listed = [line.split("  ")[1] for line in (package / SUMS_NAME).read_text().splitlines()]
    assert listed == sorted(set(contents(package)) - {SUMS_NAME})


def test_the_same_run_gives_the_same_bytes(root, package, tmp_path):
    again = hand_over_run(root / "runs/plain", tmp_path / "elsewhere" / "package")
    assert contents(again.path) == contents(package)
    first = package.with_name("package.tar.zst").read_bytes()
    assert again.archive is not None and again.archive.read_bytes() == first
    line = again.archive.with_name("package.tar.zst.sha256").read_text()
    assert line == f"{again.archive_sha256}  package.tar.zst\n"


@pytest.mark.parametrize("kind", ["tar.zst", "tar.gz"])
def test_an_archive_holds_the_folder_sorted_and_without_times_or_owners(root, tmp_path, kind):
    done = hand_over_run(root / "runs/plain", tmp_path / "p", Wanted(archive=kind))
    assert done.archive is not None
    data = done.archive.read_bytes()
    if kind == "tar.zst":
        data = zstandard.ZstdDecompressor().decompressobj().decompress(data)
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        members = tar.getmembers()
        held = {member.name: tar.extractfile(member).read() for member in members}
    assert held == {f"p/{name}": content for name, content in contents(done.path).items()}
    assert list(held) == sorted(held, key=lambda name: Path(name))
    assert {(m.mtime, m.uid, m.gid, m.uname, m.mode) for m in members} == {(FIXED_TIME, 0, 0, "", 0o644)}


def test_nothing_that_is_written_names_a_folder_of_this_machine(root, package):
    """The record is handed over as it is: its hashes cover the paths in it."""
    for name, data in contents(package).items():
        if not name.startswith("run/"):
            assert str(root).encode() not in data, name
    state = State.from_bytes((package / "5-program/state.bin").read_bytes())
    assert {held.path for held in state.holdings.values()} == {"pools/en", "pools/zh"}
    assert state.recipe.pools_root is None


def test_the_run_is_only_read(root, tmp_path):
    before = contents(root / "runs/plain")
    hand_over_run(root / "runs/plain", tmp_path / "p", PLAIN)
    assert contents(root / "runs/plain") == before


def test_the_state_goes_on_where_the_run_stands(root, package):
    state = (package / "5-program/state.bin").read_bytes()
    other = recipe.stream_from(state, pools_root=root)
    with recipe.open_run(root / "runs/plain") as run:
        expected = run.stream().batch(14)
    assert other.step == 14
    assert all(np.array_equal(expected[name], array) for name, array in other.batch(14).items())
    other.close()


def test_with_tokens_the_stream_goes_on_from_the_package_alone(root, tmp_path):
    done = hand_over_run(root / "runs/plain", tmp_path / "p", Wanted(archive="none", tokens=True))
    state = (done.path / "5-program/state.bin").read_bytes()
    other = recipe.stream_from(state, pools_root=done.path / "2-data/pools")
    with recipe.open_run(root / "runs/plain") as run:
        assert np.array_equal(run.stream().batch(15)["input_ids"], other.batch(15)["input_ids"])
    other.close()


def test_document_tables_travel_only_when_asked_for(root, tmp_path):
    done = hand_over_run(root / "runs/plain", tmp_path / "p", Wanted(archive="none", documents=True))
    assert (done.path / "2-data/pools/pools/en/documents.parquet").is_file()


# what the parts say


def test_the_data_list_has_what_the_cards_know(root, package):
    pool = said(package, "2-data/data.yaml")["pools"]["en"]
    with recipe.pools.open_pool(root / "pools/en", "en") as opened:
        assert (pool["documents"], pool["body_tokens"]) == (90, opened.stock)
        assert (pool["fingerprint"], pool["tokenizer"]) == (opened.fingerprint, opened.card.tokenizer)
    assert [entry["name"] for entry in pool["inputs"]] == ["en.jsonl"]
    assert pool["source"]["files"] == 1 and pool["split"].startswith("not recorded")


def test_the_rules_are_those_of_the_recipe_by_stage_and_pool(package):
    stages = said(package, "3-sequences/rules.yaml")["stages"]
    short, long = stages["short"], stages["long"]
    assert (short["context"], short["batch"]) == (64, [{"from_step": 0, "sequences": 4}])
    assert (long["context"], long["batch"]) == (96, [{"from_step": 12, "sequences": 3}])
    rule = short["pools"]["en"]
    assert (rule["window"], rule["stride"], rule["eos"], rule["bos"]) == (64, 48, 256, None)
    assert (rule["attention"], rule["positions"], rule["cross_labels"]) == ("piece", "restart", False)


def test_quotas_add_up_planned_against_spent(root, package):
    table = said(package, "4-quotas/quotas.yaml")
    manifest = read_manifest(root / "runs/plain/manifests/000002.yaml")
    for name, stage in table["stages"].items():
        pools = stage["pools"]
        assert sum(pool["planned"] for pool in pools.values()) == stage["length"]
        assert sum(pool["owed"] for pool in pools.values()) == sum(pool["spent"] for pool in pools.values())
        for pool, kinds in manifest["stages"][name].items():
            assert {kind: pools[pool][kind] for kind in kinds} == kinds
    short = table["stages"]["short"]["pools"]
    assert [short[pool]["share"] for pool in ("en", "zh")] == ["77/125", "48/125"]
    used = sum(pool[kind] for pool in short.values() for kind in ("body", "special", "padding"))
    assert used == table["stages"]["short"]["positions"] == 12 * 4 * 64


def quotas_of(run: Path, out: Path) -> dict:
    """Part 4 of a run, after the checks that hold for every run."""
    package = hand_over_run(run, out, PLAIN).path
    stages = said(package, "4-quotas/quotas.yaml")["stages"]
    for stage in stages.values():
        pools, legs = stage["pools"], stage["legs"]
        assert [leg["steps"][1] for leg in legs[:-1]] == [leg["steps"][0] for leg in legs[1:]]
        for name, pool in pools.items():
            assert pool["planned"] == sum(leg["planned"].get(name, 0) for leg in legs)
            assert 0 <= pool["planned_so_far"] <= pool["planned"]
            assert abs(pool["spent"] - pool["owed"]) < 2 * 96
        assert sum(pool["owed"] for pool in pools.values()) == sum(pool["spent"] for pool in pools.values())
        for leg in legs:
            total = sum(leg["planned"].values())
            for name, share in leg["shares"].items():
                assert abs(leg["planned"][name] - Fraction(share) * total) <= 1
    assert verify_package(package).ok is True
    return stages


def test_quotas_of_an_amended_stage_have_a_leg_by_version_as_the_chunk_rows_planned(tmp_path):
    path = eventful_run(prepared(tmp_path))
    stages = quotas_of(path, tmp_path / "out")
    short = stages["short"]
    assert [(leg["steps"], leg["recipe"]) for leg in short["legs"]] == [([0, 6], 1), ([6, 12], 2)]
    assert [leg["shares"]["zh"] for leg in short["legs"]] == ["48/125", "1/2"]
    assert sum(pool["planned"] for pool in short["pools"].values()) == short["length"]
    for pool in short["pools"].values():
        assert pool["planned"] == pool["planned_so_far"]
    totals = recipe.ledger_table(path).groupby(["stage", "pool"])[["planned", "owed", "spent"]].sum()
    for name, pool in short["pools"].items():
        found = [pool["planned_so_far"], pool["owed"], pool["spent"]]
        assert found == totals.loc[("short", name)].to_list()
    spent = read_manifest(sorted((path / "manifests").glob("0*.yaml"))[-1])["stages"]
    assert {name: pool["spent"] for name, pool in stages["long"]["pools"].items()} == {
        name: kinds["spent"] for name, kinds in spent["long"].items()
    }


def test_quotas_of_a_branch_tell_what_the_parent_gave_apart(tmp_path):
    path = eventful_run(prepared(tmp_path))
    branch_run(path, Wish(name="B", overrides=("stages.long.weights.zh=5",)))
    with recipe.open_run(path.parent / "B") as run:
        run.checkpoint(18)
    stages = quotas_of(path.parent / "B", tmp_path / "out")
    assert stages["short"]["legs"] == [] and stages["short"]["in_parent"]["steps"] == [0, 12]
    assert stages["long"]["in_parent"]["steps"] == [12, 16]
    assert [leg["steps"] for leg in stages["long"]["legs"]] == [[16, 20]]


def test_quotas_of_a_ramp_have_its_legs(tmp_path):
    root = prepared(tmp_path)
    plain = plain_recipe(root)
    plain["stages"]["long"]["quota_ramp"] = {"over": 1152, "steps": 2}
    with recipe.start_run(recipe_from_plain(plain, source="test"), root / "runs" / "ramp") as run:
        run.checkpoint(15)
    stages = quotas_of(root / "runs" / "ramp", tmp_path / "out")
    assert [leg["steps"] for leg in stages["long"]["legs"]] == [[12, 14], [14, 16], [16, 20]]


def test_the_tokenizer_is_named_by_content(package):
    part = said(package, "1-tokenizer/tokenizer.yaml")
    fingerprint = recipe.text.tokenizers.load_tokenizer("bytes").fingerprint()
    assert part["kind"] == "bytes" and part["pools"] == {"en": fingerprint, "zh": fingerprint}


def made_for(plain: dict) -> dict:
    """Settings of a recipe that is settled without opening a pool."""
    loaded = recipe_from_plain(plain, source="test")
    sizes = dict.fromkeys(loaded.pools, 1000)
    return trainer_settings(settle(loaded, sizes, sizes))


def settings(plain: dict) -> dict[str, object]:
    return {setting["option"]: setting["value"] for setting in plain}


FLAGS = {
    "as it is": ({}, {"--reset-position-ids": True, "--reset-attention-mask": True, "--eod-mask-loss": True}),
    "whole rows": (
        {"packing": {"attention": "sequence", "positions": "continue", "cross_labels": True}},
        dict.fromkeys(("--reset-position-ids", "--reset-attention-mask", "--eod-mask-loss"), "leave out"),
    ),
}


@pytest.mark.parametrize("case", FLAGS)
def test_megatron_flags_follow_from_the_rules(root, case):
    change, expected = FLAGS[case]
    plain = plain_recipe(root)
    plain["stages"] = {name: {**stage, **change} for name, stage in plain["stages"].items()}
    made = settings(made_for(plain)["megatron"]["all_stages"])
    assert {flag: made[flag] for flag in expected} == expected
    assert (made["--dataloader-type"], made["--max-position-embeddings"]) == ("single", 96)


def test_every_setting_says_why_and_stages_have_their_sizes(root):
    plain = made_for(plain_recipe(root))
    stages = plain["megatron"]["stages"]
    assert settings(stages["short"]) == {
        "--seq-length": 64,
        "--global-batch-size": 4,
        "--train-samples": 48,
    }
    assert settings(stages["long"]) == {
        "--seq-length": 96,
        "--global-batch-size": 3,
        "--train-iters": 20,
    }
    assert all(value for path, value in leaves(plain) if path[-1] == "why")


def test_labels_that_the_trainer_shifts_are_not_given_twice_shifted(root):
    shifted = settings(made_for(plain_recipe(root))["transformers"])
    assert shifted["shift_labels"] == "batch['labels']"
    plain = plain_recipe(root, labels="inputs")
    as_inputs = settings(made_for(plain)["transformers"])
    assert "shift_labels" not in as_inputs


def test_a_row_of_several_rules_leaves_flags_out(root):
    plain = plain_recipe(root)
    plain["stages"]["long"]["packing"] = {"attention": "sequence"}
    made = made_for(plain)["megatron"]["all_stages"]
    [flag] = [one for one in made if one["option"] == "--reset-attention-mask"]
    assert flag["value"] == "leave out" and "differ" in flag["why"]


# the program


def test_the_wheel_is_made_of_the_files_that_ran(package):
    [path] = package.glob("5-program/*.whl")
    files = package_files()
    assert (
        files_in_wheel(path)
        == files
        == {**files, "recipe/conf/recipe/demo.yaml": files["recipe/conf/recipe/demo.yaml"]}
    )
    assert wheel(files) == path.read_bytes()
    assert said(package, "5-program/program.yaml")["source_hash"] == source_hash(files)


def test_pip_takes_the_wheel(package, tmp_path):
    [path] = package.glob("5-program/*.whl")
    command = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "-q",
        "--no-index",
        "--no-deps",
        "--target",
        tmp_path,
        path,
    ]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "recipe/run/handover/texts/README.md").is_file()
    code = "import recipe, recipe.config.sources as s; print(recipe.__file__, s.shipped_conf())"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    seen = subprocess.run(
        [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
    )
    assert seen.stdout.split() == [str(tmp_path / "recipe/__init__.py"), str(tmp_path / "recipe/conf")]


def test_the_built_in_vectors_are_what_they_always_were():
    """Golden: another number here is another stream for the same recipe."""
    made = synthetic_vectors()
    assert made["stream"] == "6cadf5bdd952e559ea2e9ab8e5044b6249d152acdc51aaebdc7a88c21f9ae52d"
    assert len(set(made["steps"])) == len(made["steps"]) == 48


# what happened to a run


def test_a_run_to_which_everything_happened_is_handed_over(root, tmp_path):
    path = eventful_run(root)
    done = hand_over_run(path, tmp_path / "p", PLAIN)
    assert done.step == 16 and done.notes == (PATHS_NOTE,)
    held = contents(done.path / "run")
    assert "withdrawn/0001.json" in held and "recipes/0002.yaml" in held
    assert said(done.path, "handover.yaml")["recipe"]["version"] == 2
    assert recipe.audit_run(done.path / "run", metadata_only=True, pools_root=done.path / "2-data/pools").ok


def test_a_run_without_a_checkpoint_is_handed_over_at_its_start(root, tmp_path):
    plain = recipe_from_plain(plain_recipe(root), source="test")
    recipe.start_run(plain, tmp_path / "run").close()
    done = hand_over_run(tmp_path / "run", tmp_path / "p", PLAIN)
    assert done.step == 0 and said(done.path, "handover.yaml")["manifest"] is None
    assert said(done.path, "5-program/vectors.yaml")["run"].keys() == {"0"}


def test_what_a_killed_writer_left_is_not_handed_over(root, tmp_path):
    path = copied(root / "runs/plain", tmp_path / "run")
    lines = (path / "ledger.jsonl").read_bytes().splitlines(keepends=True)
    (path / "ledger.jsonl").write_bytes(b"".join(lines[:-1]) + b'{"format":1,"row":')
    done = hand_over_run(path, tmp_path / "p", PLAIN)
    assert done.step == 5 and "left out" in done.notes[0]
    audit = recipe.audit_run(done.path / "run", pools_root=root)
    assert audit.findings == ()


def test_a_checkpoint_that_was_committed_late_is_handed_over_and_is_not_the_tip(root, tmp_path):
    made = recipe_from_plain(plain_recipe(root), source="test")
    with recipe.start_run(made, tmp_path / "run") as run:
        early, later = run.begin_checkpoint(4), run.begin_checkpoint(8)
        later.commit("weights/8")
        early.commit("weights/4")
    done = hand_over_run(tmp_path / "run", tmp_path / "p", PLAIN)
    assert (done.step, said(done.path, "handover.yaml")["manifest"]) == (8, 1)
    held = contents(done.path / "run")
    assert held["manifests/latest.yaml"] == held["manifests/000001.yaml"] != held["manifests/000002.yaml"]
    assert recipe.audit_run(done.path / "run", pools_root=root).findings == ()


# trust


@pytest.mark.parametrize(
    "name", ["evidence/x.json", "recipes/0001.yaml", "manifests/000001.yaml", "run.yaml"]
)
def test_a_link_in_the_record_is_refused_and_not_followed(root, tmp_path, name):
    path = copied(root / "runs/plain", tmp_path / "run")
    (tmp_path / "secret").write_text("not the run's")
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).unlink(missing_ok=True)
    (path / name).symlink_to(tmp_path / "secret")
    with pytest.raises(RecipeError, match="link") as caught:
        hand_over_run(path, tmp_path / "p")
    assert name in str(caught.value) and names(tmp_path) == ["run", "secret"]


def test_a_linked_folder_of_the_record_is_refused(root, tmp_path):
    path = copied(root / "runs/plain", tmp_path / "run")
    (path / "recipes").rename(tmp_path / "recipes")
    (path / "recipes").symlink_to(tmp_path / "recipes")
    with pytest.raises(RecipeError):
        hand_over_run(path, tmp_path / "p")
    assert names(tmp_path) == ["recipes", "run"]


@pytest.mark.parametrize("path", ["../../etc", "/", "a/../../b", "..", "~"])
def test_a_pool_whose_path_leads_away_gets_a_folder_inside(path):
    plain = {
        "seed": 1,
        "pools": {"a": {"path": path}, "b": {"path": "/x/same"}, "c": {"path": "/y/same"}},
        "stages": {
            "s": {"steps": 1, "context": 8, "batch": {"sequences": 1}, "weights": {"a": 1, "b": 1, "c": 1}}
        },
    }
    folders = pool_folders(recipe_from_plain(plain, source="test"))
    assert folders == {"a": "~" if path == "~" else "a", "b": "b", "c": "c"}


def test_the_name_of_a_run_is_never_a_path(root, tmp_path):
    """The folder may be called anything; nothing is written outside the package."""
    done = hand_over_run(root / "runs/../runs/plain", tmp_path / "p", PLAIN)
    assert names(tmp_path) == ["p"] and done.path == tmp_path / "p"


# bad input: one message, nothing left behind

REFUSED = {
    "a folder with something in it": ("taken", lambda out: (out / "x").mkdir(parents=True)),
    "a file": ("taken", lambda out: out.write_text("x")),
    "an archive of that name": ("taken", lambda out: out.with_name("p.tar.zst").write_text("x")),
    "a link": ("taken", lambda out: out.symlink_to("nowhere")),
}


@pytest.mark.parametrize("case", REFUSED)
def test_nothing_is_written_over(root, tmp_path, case):
    word, make = REFUSED[case]
    make(tmp_path / "p")
    before = names(tmp_path)
    with pytest.raises(RecipeError, match=word):
        hand_over_run(root / "runs/plain", tmp_path / "p")
    assert names(tmp_path) == before


def test_the_runs_own_folder_is_no_place_for_it(root):
    before = contents(root / "runs/plain")
    for out in ("p", "sequences/p", "../plain/p"):
        with pytest.raises(RecipeError, match="in the run's folder"):
            hand_over_run(root / "runs/plain", root / "runs/plain" / out)
    assert contents(root / "runs/plain") == before


def test_an_empty_folder_is_filled(root, tmp_path):
    (tmp_path / "p").mkdir()
    assert (hand_over_run(root / "runs/plain", tmp_path / "p", PLAIN).path / "README.md").is_file()


def spoil(kind: str, root: Path, tmp: Path) -> tuple[Path, Wanted]:
    run = copied(root / "runs/plain", tmp / "run")
    if kind == "no run":
        return tmp, PLAIN
    if kind == "a folder cut short":
        (run / "ledger.jsonl").unlink()
    if kind == "a damaged ledger":
        data = bytearray((run / "ledger.jsonl").read_bytes())
        data[200] ^= 1
        (run / "ledger.jsonl").write_bytes(data)
    if kind == "no pools":
        return run, Wanted(archive="none", pools_root=tmp / "nowhere")
    if kind == "other pools":
        return run, Wanted(archive="none", pools_root=prepared_otherwise(tmp / "other"))
    if kind == "another tokenizer":
        return run, Wanted(archive="none", tokenizer=other_tokenizer(tmp))
    if kind == "a tokenizer that is not there":
        return run, Wanted(archive="none", tokenizer=tmp / "none.json")
    return run, PLAIN


def prepared_otherwise(root: Path) -> Path:
    for name in ("en", "zh"):
        recipe.write_pool(root / "pools" / name, [[1, 2, 3]] * 20, vocab_size=257, eos=256).close()
    return root


def other_tokenizer(folder: Path) -> Path:
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel

    path = folder / "tokenizer.json"
    Tokenizer(WordLevel({"a": 0, "</s>": 1, "[UNK]": 2}, unk_token="[UNK]")).save(str(path))
    return path


SPOILT = (
    "no run",
    "a folder cut short",
    "a damaged ledger",
    "no pools",
    "other pools",
    "another tokenizer",
    "a tokenizer that is not there",
)


@pytest.mark.parametrize("kind", SPOILT)
def test_bad_input_is_one_message_and_leaves_nothing(root, tmp_path, kind):
    run, wanted = spoil(kind, root, tmp_path)
    (tmp_path / "place").mkdir()
    with pytest.raises(RecipeError) as caught:
        hand_over_run(run, tmp_path / "place" / "p", wanted)
    assert caught.value.problems and names(tmp_path / "place") == []


def test_F06_a_full_disk_is_one_message_and_leaves_nothing(root, tmp_path):
    """Files above 64 KiB cannot be written in this process: the wheel is larger."""
    code = (
        "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16));"
        "from recipe.cli.main import main; sys.exit(main(sys.argv[1:]))"
    )
    words = ["handover", str(root / "runs/plain"), str(tmp_path / "p")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and names(tmp_path) == []
    assert "not handed over" in done.stderr and "bytes free" in done.stderr and "Traceback" not in done.stderr


def test_too_little_space_is_said_before_anything_is_written(root, tmp_path):
    from recipe.run.handover.staging import check_space

    with pytest.raises(RecipeError, match="no space"):
        check_space(tmp_path / "p", 1 << 62)


def test_an_interrupted_handover_leaves_nothing(root, tmp_path):
    from recipe.run.handover.staging import staged

    with pytest.raises(KeyboardInterrupt), staged(tmp_path / "p", "tar.gz") as staging:
        staging.put("a", b"1")
        raise KeyboardInterrupt
    assert names(tmp_path) == []
