"""The scripted path on a few documents a kind: what goes in is in a pool, left out, or held out."""

from __future__ import annotations

import json

import pytest
import yaml

from recipe.errors import RecipeError
from recipe.integrations.corpora.__main__ import main
from recipe.integrations.corpora.folders import text_groups
from recipe.pools import open_pool

FILES = {
    "en_pages": [f"Page {n} says that {n} and {n + 1} are {2 * n + 1}. " * 9 for n in range(120)],
    "zh_pages": [f"第{n}页说：{n}加{n + 1}等于{2 * n + 1}。" * 9 for n in range(120)],
    "code_lib": [f"def f{n}(x):\n    return x + {n}\n\n\n" * 9 for n in range(120)],
    "verified_tasks": [f"Task {n}: add {n}.\n```python\nprint({n} + x)\n```\n" * 9 for n in range(120)],
    "verified_held": [f"Task {n}: add {n}.\n```python\nprint({n} + x)\n```\n" * 9 for n in range(100, 140)],
}


def write(folder, files):
    folder.mkdir()
    for name, texts in files.items():
        rows = [
            {"id": f"{name}/{n:06d}", "text": text, "source": f"{name}.txt:{n}", "licence": "CC0-1.0"}
            for n, text in enumerate(texts)
        ]
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
        (folder / f"{name}.jsonl").write_text("".join(lines), "utf-8")
    return folder


@pytest.fixture(scope="module")
def trial(tmp_path_factory):
    """The folder of work, with what was printed."""
    work = tmp_path_factory.mktemp("trial")
    twice = {**FILES, "code_more": [*FILES["code_lib"][:7], *FILES["en_pages"][:5], "x = 1\n" * 40]}
    folder = write(work / "texts", twice)
    words = [str(folder), "--work", str(work / "work"), "--held-out", "verified_held", "--steps", "2"]
    words += ["--held-percent", "10"]
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(work)
        assert main(words) == 0
    return work / "work"


def test_every_document_read_is_in_a_pool_or_left_out_for_a_reason(trial):
    figures = json.loads((trial / "figures.json").read_text())
    assert {row["pool"] for row in figures["pools"]} == {
        *("english", "chinese", "code", "verified_code", "verified_held")
    }
    for row in figures["pools"]:
        left_out = row["duplicate"] + row["empty"] + row["quarantined"]
        assert row["documents"] == row["trained"] + row["held out"] + left_out
        assert row["bytes/token"] == pytest.approx(1)  # the tokenizer is bytes
    assert {row["pool"]: row["duplicate"] for row in figures["pools"] if row["duplicate"]} == {"code": 7}


def test_a_text_of_two_pools_stays_in_the_first_and_no_held_out_text_is_trained_on(trial):
    texts = {}
    for path in sorted((trial / "pools").iterdir()):
        with open_pool(path, path.name) as pool:
            for number in range(pool.num_documents):
                texts.setdefault(pool.tokens(number).tobytes(), []).append(path.name)
    assert all(len(names) == 1 for names in texts.values())
    distinct = {text for group in FILES.values() for text in group} | {"x = 1\n" * 40}
    assert len(texts) == len(distinct)


def test_the_run_is_audited_and_keeps_to_its_quotas(trial):
    answers = json.loads((trial / "figures.json").read_text())["answers"]
    assert answers["run"]["complete"] and answers["audit"]["ok"]
    wanted = yaml.safe_load((trial / "recipe.yaml").read_text())["stages"]
    for stage, pools in answers["run"]["stages"].items():
        assert set(pools) == set(wanted[stage]["quotas"])
        context = wanted[stage]["context"]
        assert all(abs(one["owed"] - one["spent"]) <= context for one in pools.values())


def test_the_leak_is_found_before_and_is_gone_after(trial):
    answers = json.loads((trial / "figures.json").read_text())["answers"]
    before, after = (answers[name]["held"]["verified_held"] for name in ("leakage before", "leakage"))
    assert before["leaked_tokens"] > after["leaked_tokens"]
    unique = {pool["name"]: pool for pool in answers["dedup"]["pools"]}
    assert unique["verified_held"]["kept"]["documents"] == 40
    gone = sum(
        unique[name]["duplicates_of"].get("verified_held", 0)
        for name in ("verified_code", "verified_code-held")
    )
    assert gone == 20


def test_files_of_no_group_and_folders_of_nothing_are_refused(tmp_path):
    with pytest.raises(RecipeError, match=r"other\.jsonl"):
        text_groups(write(tmp_path / "a", {"other": ["text"]}))
    with pytest.raises(RecipeError, match="no \\*\\.jsonl"):
        text_groups(tmp_path / "nothing")
    assert [group.name for group in text_groups(tmp_path / "a", {"mine": "oth*"})] == ["mine"]
    assert main([str(tmp_path / "a"), "--group", "mine"]) == 2
