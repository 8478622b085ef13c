"""Files of consumed steps: what is missing or damaged is found by every ``recipe run`` and written again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import recipe
from recipe.cli.main import main
from recipe.integrations import holding
from recipe.integrations.parquet import files_in
from recipe.run.files import read_lines, stated_link
from recipe.run.manifest import latest_path, read_manifest

RUN = Path("runs/small")
FILES = RUN / "sequences"
LINES = FILES / "_files.jsonl"


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a finished run, to be copied."""
    from tests.cli.conftest import write_small

    folder = tmp_path_factory.mktemp("finished")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        write_small(folder)
        assert main(["run", "small.yaml"]) == 0
    return folder


@pytest.fixture
def whole(finished: Path, in_tmp: Path) -> dict[str, bytes]:
    """A finished run in the working directory; its files and their record."""
    shutil.copytree(finished, in_tmp, dirs_exist_ok=True)
    return contents()


def contents() -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in [LINES, *(item[2] for item in files_in(FILES))]}


def flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-100])


def replace_by_next(path: Path) -> None:
    paths = [item[2] for item in files_in(FILES)]
    shutil.copy(paths[(paths.index(path) + 1) % len(paths)], path)


DAMAGES: dict[str, Callable[[Path], None]] = {
    "missing": Path.unlink,
    "empty": lambda path: path.write_bytes(b""),
    "cut": cut,
    "flipped": flip,
    "replaced": replace_by_next,
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("which", [0, 3, -1])
def test_a_damaged_file_of_a_complete_run_is_named_and_written_again(whole, capsys, damage, which):
    path = files_in(FILES)[which][2]
    DAMAGES[damage](path)
    ledger = (RUN / "ledger.jsonl").read_bytes()
    assert main(["run", "small.yaml"]) == 0
    said = capsys.readouterr().err
    assert path.name in said and "written again" in said
    assert contents() == whole
    assert (RUN / "ledger.jsonl").read_bytes() == ledger
    assert main(["run", "small.yaml"]) == 0
    assert path.name not in capsys.readouterr().err


def test_all_files_gone_are_all_written_again(whole):
    shutil.rmtree(FILES)
    assert main(["run", "small.yaml"]) == 0
    assert contents() == whole


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_resumed_run_mends_the_files_before_it(whole, capsys, damage):
    """The run stands at step 8 of 16."""
    shutil.rmtree(RUN)
    curriculum_half = ["small.yaml", "--name", "small"]
    with pytest.MonkeyPatch.context() as patch:
        from recipe.integrations import job

        written = job.ParquetSink.write

        def stop_at_9(self, step, stage, batch):
            if step == 9:
                raise KeyboardInterrupt
            return written(self, step, stage, batch)

        patch.setattr(job.ParquetSink, "write", stop_at_9)
        assert main(["run", *curriculum_half]) == 130
    assert stated_link(RUN)[0] == 8
    DAMAGES[damage](files_in(FILES)[1][2])
    assert main(["run", *curriculum_half]) == 0
    assert contents() == whole


@pytest.mark.parametrize("damage", [Path.unlink, cut, flip, lambda path: path.write_bytes(b"[]\n")])
def test_a_lost_record_is_made_again_from_files_that_the_manifest_answers_for(whole, damage):
    damage(LINES)
    assert main(["run", "small.yaml"]) == 0
    assert read_lines(FILES) and contents()[LINES.name] == whole[LINES.name]


def test_a_lost_record_and_a_damaged_file_are_both_mended(whole):
    LINES.unlink()
    flip(files_in(FILES)[2][2])
    assert main(["run", "small.yaml"]) == 0
    assert contents() == whole


def test_a_record_that_was_forged_with_its_file_is_found(whole, capsys):
    """The manifest answers for the bytes: a line that fits a changed file does not."""
    path = files_in(FILES)[0][2]
    flip(path)
    first, stop, _ = files_in(FILES)[0]
    from recipe.run.files import content_of, linked

    rest = [line.content for line in read_lines(FILES)][1:]
    forged = linked([content_of(first, stop, path), *rest])
    LINES.write_bytes(b"".join(line.to_bytes() for line in forged))
    assert main(["run", "small.yaml"]) == 0
    assert "not what the manifest answers for" in capsys.readouterr().err
    assert contents() == whole


def test_a_file_under_a_name_of_the_run_that_it_did_not_write_is_removed(whole, capsys):
    shutil.copy(files_in(FILES)[0][2], FILES / "steps-000000000-000000007.parquet")
    assert main(["run", "small.yaml"]) == 0
    assert "steps-000000000-000000007.parquet: no file of this run" in capsys.readouterr().err
    assert contents() == whole


def test_every_checkpoint_answers_for_the_files_up_to_it(whole):
    lines = read_lines(FILES)
    links = {line.content.stop: (line.link, f"sequences/{line.content.file}") for line in lines}
    rows = [json.loads(text) for text in (RUN / "ledger.jsonl").read_text().splitlines()]
    checked = 0
    for row in rows:
        if row["kind"] == "checkpoint":
            manifest = read_manifest(RUN / "manifests" / f"{row['manifest']:06d}.yaml")
            said = manifest["checkpoint"]
            assert (said["digest"], said["uri"]) == links[said["step"]]
            checked += 1
    assert checked == 5


def test_contents_beyond_a_limit_are_compared_on_request(whole, capsys, monkeypatch):
    newest = files_in(FILES)[-1][2].stat().st_size
    monkeypatch.setattr(holding, "HASHED_BYTES", newest)
    flip(files_in(FILES)[0][2])
    assert main(["run", "small.yaml"]) == 0
    assert "only the size was compared; --check compares every byte" in capsys.readouterr().err
    assert contents() != whole
    assert main(["run", "small.yaml", "--check"]) == 0
    assert contents() == whole


def test_a_rewind_into_a_file_is_gone_on_from(whole):
    """A program went back to step 4, inside no file's end; the files are cut there and go on."""
    with recipe.open_run(RUN) as run:
        state = run.state(4)
    with recipe.open_run(RUN, state=state) as run:
        run.checkpoint(step=4)
    assert main(["run", "small.yaml"]) == 0
    assert [first for first, _, _ in files_in(FILES)] == [line.content.first for line in read_lines(FILES)]
    table = pq.read_table(FILES)
    assert table["step"].unique().to_pylist() == list(range(16))
    assert main(["audit", str(RUN)]) == 0


def test_other_bytes_of_the_same_sequences_get_a_manifest_of_their_own(whole, monkeypatch):
    """As with another version of pyarrow: the file is written again, and a new manifest answers for it."""
    from recipe.integrations import parquet

    files_in(FILES)[0][2].unlink()
    monkeypatch.setattr(parquet, "ZSTD_LEVEL", 9)
    before = read_manifest(latest_path(RUN))
    assert main(["run", "small.yaml"]) == 0
    after = read_manifest(latest_path(RUN))
    assert after["number"] == before["number"] + 1
    assert after["snapshot"] == before["snapshot"]
    assert stated_link(RUN) == (16, read_lines(FILES)[-1].link)
    assert main(["run", "small.yaml"]) == 0
    assert read_manifest(latest_path(RUN))["number"] == after["number"]
    assert main(["audit", str(RUN)]) == 0


def test_C07_a_file_whose_data_was_replaced_is_named_and_the_run_does_not_end_well(small, capsys):
    with pytest.MonkeyPatch.context() as patch:
        from recipe.integrations import job

        written = job.ParquetSink.write

        def stop_at_9(self, step, stage, batch):
            if step == 9:
                raise KeyboardInterrupt
            return written(self, step, stage, batch)

        patch.setattr(job.ParquetSink, "write", stop_at_9)
        assert main(["run", "small.yaml"]) == 130
    lost = files_in(FILES)[1][2]
    kept = lost.read_bytes()
    lost.unlink()
    shutil.rmtree("pools/b")
    recipe.write_pool("pools/b", [[1, 2, 3, 4, 5, 6, 7]] * 90, vocab_size=100, eos=99)
    assert main(["run", "small.yaml", "--accept-data-change"]) == 2
    said = capsys.readouterr().err
    assert lost.name in said and "take the file from a copy" in said
    lost.write_bytes(kept)
    assert main(["run", "small.yaml", "--accept-data-change"]) == 0
    assert main(["run", "small.yaml"]) == 0


@pytest.mark.parametrize("damage", DAMAGES)
def test_the_audit_names_the_file(whole, capsys, damage):
    path = files_in(FILES)[2][2]
    DAMAGES[damage](path)
    assert main(["audit", str(RUN), "--json"]) == 1
    [finding] = json.loads(capsys.readouterr().out)["findings"]
    assert finding["check"] == "files"
    assert path.name in finding["where"]


@pytest.mark.parametrize("damage", [Path.unlink, cut, flip])
def test_the_audit_names_a_record_that_the_manifest_does_not_answer_for(whole, capsys, damage):
    damage(LINES)
    assert main(["audit", str(RUN)]) == 1
    assert "sequences/_files.jsonl" in capsys.readouterr().out


def test_the_audit_says_how_far_files_were_compared(whole, capsys):
    assert main(["audit", str(RUN)]) == 0
    assert "7 files of sequences: sizes of all, bytes of 7" in capsys.readouterr().out
    shutil.rmtree(FILES)
    assert main(["audit", str(RUN)]) == 0
    assert "files of sequences: not here, and not compared" in capsys.readouterr().out
