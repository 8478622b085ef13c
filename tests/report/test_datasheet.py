"""Datasheets: every token of the ledger once, by what cards say; nothing guessed."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.errors import RecipeError
from recipe.pools.about import describe_pool
from recipe.pools.writer import PoolWriter
from recipe.report.datasheet import datasheet_of
from recipe.report.datasheet_pages import datasheet_tables, markdown, page
from recipe.report.pools import NOT_STATED
from recipe.run.ledger import read_rows

SMALL = """\
seed: 5
pools: {web: {path: pools/web}, code: {path: pools/code}, made: {path: pools/made}}
every_stage: {context: 32, batch: {sequences: 4}, chunk: 384}
stages:
  first: {tokens: 1536, quotas: {web: 60%, code: 30%, made: 10%}}
  second: {tokens: 1536, context: 64, batch: {sequences: 2}, chunk: 512, slicing: {stride: 48},
           quotas: {web: 20%, code: 50%, made: 30%}}
"""
ABOUT = {
    "web": {
        "kind": "crawled",
        "licence": "mixed|<b>",
        "languages": ["en", "zh"],
        "collected": {"from": "2023", "to": "2024"},
    },
    "made": {"kind": "synthetic", "generator": "teacher", "licence": "Apache-2.0"},
}


@pytest.fixture
def run(in_tmp):
    """A run over three pools, of which one says nothing, cut at several checkpoints."""
    dice = np.random.default_rng(0)
    tags = [{"lang": "en" if n % 3 else "zh", "domain": f"d{n % 5}"} if n % 7 else None for n in range(60)]
    for name in ("web", "code", "made"):
        documents = [dice.integers(0, 99, size=n) for n in dice.integers(1, 80, size=60)]
        told = tags if name == "web" else None
        recipe.write_pool(f"pools/{name}", documents, vocab_size=100, eos=99, tags=told).close()
    for name, about in ABOUT.items():
        describe_pool(Path("pools") / name, about)
    Path("r.yaml").write_text(SMALL)
    with recipe.start_run(recipe.load_recipe("r.yaml"), "runs/a") as run:
        for step in (4, 9, 14, 20):
            run.checkpoint(step, uri=f"w{step}")
    return Path("runs/a")


def ledger_sums(path):
    """Tokens of the chunk rows, by pool, added up here."""
    found = {}
    for row in read_rows(path / "ledger.jsonl"):
        for name, counts in row.data["pools"].items() if row.kind == "chunk" else ():
            here = found.setdefault(name, dict.fromkeys(("spent", "body", "overlap", "labels"), 0))
            for kind in here:
                here[kind] += counts[kind]
    return found


def test_the_sums_are_the_ledgers_to_the_token(run):
    facts, sums = datasheet_of(run), ledger_sums(run)
    for name, one in facts["pools"].items():
        assert {kind: one[kind] for kind in sums[name]} == sums[name]
        assert one["fresh"] == one["body"] - one["overlap"]
    assert facts["total"]["spent"] == sum(one["spent"] for one in sums.values())
    for rows in facts["by"].values():
        assert sum(row["spent"] for row in rows) == facts["total"]["spent"]
        assert sum(row["fresh"] for row in rows) == facts["total"]["fresh"]
        assert all(row["spent"] == row["stated"] + row["shared"] for row in rows)


def test_what_nobody_stated_is_listed_and_not_guessed(run):
    facts = datasheet_of(run)
    kinds = {row["value"]: (row["pools"], row["spent"]) for row in facts["by"]["kind"]}
    assert kinds == {
        "crawled": (["web"], facts["pools"]["web"]["spent"]),
        "synthetic": (["made"], facts["pools"]["made"]["spent"]),
        NOT_STATED: (["code"], facts["pools"]["code"]["spent"]),
    }
    assert facts["not_stated"]["code"] == ["kind", "licence", "languages", "collected"]
    assert facts["not_stated"]["made"] == ["languages", "collected"]
    assert "web" not in facts["not_stated"]


def test_only_synthetic_text_has_a_generator(run):
    by = {row["value"]: row["pools"] for row in datasheet_of(run)["by"]["generator"]}
    assert by == {"teacher": ["made"], "not synthetic": ["web"], NOT_STATED: ["code"]}


def test_tags_of_documents_share_out_what_their_pool_gave(run):
    facts = datasheet_of(run)
    web = facts["pools"]["web"]
    assert set(web["tags"]) == {"lang", "domain"}
    for rows in web["tags"].values():
        assert sum(row["spent"] for row in rows) == web["spent"]
        assert sum(row["fresh"] for row in rows) == web["fresh"]
        assert sum(row["documents"] for row in rows) == 60
        for row in rows:  # in proportion to the stock, to less than one token
            assert abs(row["spent"] * web["stock"] - row["tokens"] * web["spent"]) < web["stock"]
    languages = {row["value"]: row["shared"] for row in facts["by"]["languages"]}
    assert set(languages) == {"en", "zh", "en, zh", NOT_STATED}  # documents without the tag: as the card says
    assert languages[NOT_STATED] == 0
    assert sum(languages.values()) == web["spent"]


def test_what_was_read_is_the_audits_account(run):
    facts = datasheet_of(run, share="read")
    web = facts["pools"]["web"]
    rows = web["tags"]["lang"]
    assert sum(row["spent"] for row in rows) == web["spent"]
    audited = recipe.audit_run(run).to_plain()["reading"]["web"]
    assert {row["value"]: row["tokens"] for row in rows if row["value"] != "(without this tag)"} == {
        value: one["covered"] for value, one in audited["tags"]["lang"].items()
    }
    assert sum(row["tokens"] for row in rows) == audited["covered"]


def test_no_tags_are_shared_out_where_nobody_wants_it(run):
    facts = datasheet_of(run, share="none")
    assert all(one["tags"] == {} for one in facts["pools"].values())
    assert [row["value"] for row in facts["by"]["languages"]] == ["en, zh", NOT_STATED]


def test_a_branch_has_read_its_trunks_part_too(run):
    words = ["branch", "runs/a@2", "b", "stages.second.quotas.made=40%", "--from", "code", "--yes"]
    assert main(words) == 0
    with recipe.open_run("runs/b") as branch:
        branch.checkpoint(16, uri="w")
    facts, trunk = datasheet_of(Path("runs/b")), datasheet_of(run)
    own, before = facts["lineage"]
    assert (own["run"], own["steps"], before["run"], before["steps"]) == ("b", [9, 16], "a", [0, 9])
    assert own["spent"] == sum(one["spent"] for one in ledger_sums(Path("runs/b")).values())
    assert own["spent"] + before["spent"] == facts["total"]["spent"]
    assert before["spent"] < trunk["total"]["spent"]


def test_tokens_before_another_tokenizer_are_told_and_not_added(in_tmp):
    dice = np.random.default_rng(3)
    for folder, tokenizer in (("old", "a" * 64), ("new", "b" * 64)):
        with PoolWriter(f"{folder}/web", vocab_size=500, eos=0, tokenizer=tokenizer) as writer:
            for _ in range(60):
                writer.add(dice.integers(1, 500, dice.integers(5, 40)))
            writer.close().close()
    Path("r.yaml").write_text(
        "seed: 5\npools_root: old\npools: {web: {path: web}}\n"
        "stages: {s: {tokens: 1024, context: 32, batch: {sequences: 4}, quotas: {web: 100%}}}\n"
    )
    with recipe.start_run(recipe.load_recipe("r.yaml"), "runs/t") as run:
        run.checkpoint(4, uri="w")
    assert main(["branch", "runs/t", "n", "pools_root=new", "--data", "fresh", "--yes"]) == 0
    with recipe.open_run("runs/n") as run:
        run.checkpoint(8)
    own, before = (facts := datasheet_of(Path("runs/n")))["lineage"]
    assert (own["counted"], before["counted"], before["run"]) == (True, False, "t")
    assert facts["total"]["spent"] == own["spent"] == ledger_sums(Path("runs/n"))["web"]["spent"]
    assert before["spent"] == ledger_sums(Path("runs/t"))["web"]["spent"]
    assert "no: other tokens" in markdown(facts)


def test_a_run_whose_parent_is_not_here_still_tells_its_part(run):
    assert main(["branch", "runs/a@2", "b", "stages.second.quotas.made=40%", "--from", "code", "--yes"]) == 0
    whole = datasheet_of(Path("runs/b"))
    run.rename("elsewhere")
    alone = datasheet_of(Path("runs/b"))
    assert alone["lineage"] == whole["lineage"]
    assert alone["total"] == whole["total"]


def test_a_rewound_stretch_is_not_in_the_sums(run):
    before = datasheet_of(run)["total"]
    with recipe.open_run(run, step=9) as again:
        again.checkpoint(20, uri="again")
    assert datasheet_of(run)["total"] == before
    with recipe.open_run(run, step=9) as again:
        again.checkpoint(14, uri="shorter")
    assert datasheet_of(run)["total"]["spent"] < before["spent"]


def test_withdrawn_documents_and_what_was_left_out_are_told(run):
    Path("ids.txt").write_text("3\n4\n5\n")
    assert (
        main(["withdraw", "runs/a@2", "--documents", "ids.txt", "--pool", "web", "--reason", "x", "--yes"])
        == 0
    )
    assert datasheet_of(run)["pools"]["web"]["withdrawn"] == 3


def test_a_pool_that_is_gone_or_another_says_nothing(run):
    Path("pools/web").rename("pools/elsewhere")
    facts = datasheet_of(run)
    assert facts["pools"]["web"]["spent"] == ledger_sums(run)["web"]["spent"]
    assert (facts["pools"]["web"]["about"], facts["pools"]["web"]["note"][:16]) == ({}, "the pool is not ")
    recipe.write_pool("pools/web", [[1, 2]], vocab_size=100, eos=99).close()
    describe_pool(Path("pools/web"), {"kind": "public"})
    assert "another pool" in datasheet_of(run)["pools"]["web"]["note"]


def test_what_is_said_beside_pools_is_marked_and_never_goes_over_a_card(run, capsys):
    Path("more.yaml").write_text("code: {kind: licensed, licence: LicenseRef-1}\n")
    assert main(["report", "runs/a", "--datasheet", "--about", "more.yaml", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert [facts["pools"][name]["stated_in"] for name in ("web", "code", "made")] == [
        "card",
        "beside",
        "card",
    ]
    assert [row["value"] for row in facts["by"]["kind"]] == ["crawled", "licensed", "synthetic"]
    assert "carry no such card: code" in markdown(facts)
    Path("more.yaml").write_text("web: {kind: public}\ncod: {kind: public}\n")
    assert main(["report", "runs/a", "--datasheet", "--about", "more.yaml"]) == 2
    told = capsys.readouterr().err
    assert "correct the card" in told
    assert "did you mean 'code'?" in told
    Path("more.yaml").write_text("code: {kind: publik}\n")
    assert main(["report", "runs/a", "--datasheet", "--about", "more.yaml"]) == 2


def test_the_form_of_what_is_said_beside_pools_is_shown(run, capsys):
    Path("flat.yaml").write_text("kind: public\nlicence: MIT\n")
    assert main(["report", "runs/a", "--datasheet", "--about", "flat.yaml"]) == 2
    told = " ".join(capsys.readouterr().err.split())
    assert "flat.yaml: kind: public" in told and "web: {kind: crawled, licence: MIT}" in told
    assert "write POOL: {kind: …}" in told
    Path("flat.yaml").write_text("web: crawled\n")
    assert main(["report", "runs/a", "--datasheet", "--about", "flat.yaml"]) == 2
    assert "write web: {kind: …, licence: …}" in capsys.readouterr().err


@pytest.fixture
def token_files(in_tmp):
    """A run over token files made elsewhere and a pool prepared from text."""
    Path("files").mkdir()
    np.save("files/a.npy", np.tile(np.array([1, 2, 3, 0], np.uint16), 200))
    Path("text").mkdir()
    Path("text/a.txt").write_text("some text " * 80)
    Path("text/b.txt").write_text("")
    assert main(["prepare", "pools/own", "text"]) == 0
    stage = "{steps: 4, context: 32, batch: {sequences: 2}, quotas: {files: 50%, own: 50%}}"
    Path("r.yaml").write_text(
        f"seed: 1\nmax_epochs: 9\npools: {{files: {{path: files, eos: 0}}, own: {{path: pools/own}}}}\n"
        f"stages: {{one: {stage}}}\n"
    )
    with recipe.start_run(recipe.load_recipe("r.yaml"), "runs/a") as run:
        run.checkpoint(4, uri="w")
    return Path("runs/a")


def test_what_was_left_out_of_token_files_is_not_on_record_and_not_nothing(token_files):
    text = markdown(datasheet_of(token_files))
    assert "Nothing was left out" not in text
    assert "is not on record: files\n" in text
    assert "in preparing own | empty | 1 record " in text


def test_pools_without_a_card_are_described_beside_it(token_files, capsys):
    text = markdown(datasheet_of(token_files))
    assert "recipe pools describe POOL" in text and "--about FILE" in text
    describe_pool(Path("pools/own"), {**ABOUT["web"], "licence": "MIT"})
    text = markdown(datasheet_of(token_files))
    assert "recipe pools describe POOL" not in text and "--about FILE" in text


def test_chinese_pages_say_kinds_reasons_and_counts_in_chinese(token_files):
    describe_pool(Path("pools/own"), ABOUT["web"])
    text = markdown(datasheet_of(token_files), "zh")
    for word in ("爬取", "| 空 |", "（计数方式：正文 token）", "没有记录在案"):
        assert word in text
    for word in ("| crawled |", "| empty |", ": body"):
        assert word not in text


def test_a_damaged_record_gives_no_datasheet(run):
    ledger = run / "ledger.jsonl"
    ledger.write_text(ledger.read_text().replace('"spent":', '"spant":', 1))
    with pytest.raises(RecipeError):
        datasheet_of(run)


class Cells(HTMLParser):
    """The texts of a page's cells."""

    def __init__(self):
        super().__init__()
        self.texts, self.tags = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)

    def handle_data(self, data):
        self.texts.append(data)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_pages_hold_the_numbers_and_no_markup_of_others(run, lang):
    facts = datasheet_of(run)
    text, html = markdown(facts, lang), page(facts, lang)
    spent = f"{facts['total']['spent']:,}"
    assert spent in text
    assert "mixed\\|&lt;b&gt;" in text
    cells = Cells()
    cells.feed(html)
    assert spent in cells.texts
    assert "mixed|<b>" in cells.texts
    assert "b" not in cells.tags
    assert len(list(datasheet_tables(facts, lang))) > 8
    assert ("数据池" in text) == (lang == "zh")


def test_the_verb_writes_what_is_asked_for(run, capsys):
    for name in ("d.md", "d.html", "d.json"):
        assert main(["report", "runs/a", "--datasheet", "--out", name]) == 0
    facts = datasheet_of(run)
    assert json.loads(Path("d.json").read_text()) == json.loads(json.dumps(facts))
    assert Path("d.md").read_text() == markdown(facts)
    capsys.readouterr()
    assert main(["report", "runs/a", "--datasheet", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["total"] == facts["total"]
    assert main(["report", "runs/a", "--datasheet", "--out", "d.txt"]) == 2
    assert main(["report", "runs/a", "--out", "d.md"]) == 2
    assert "--datasheet" in capsys.readouterr().err


def test_without_a_datasheet_it_is_the_account_of_the_run(run, capsys):
    assert main(["report", "runs/a"]) == 0
    out = capsys.readouterr().out
    assert "stage first" in out
    assert "the whole run" in out
    assert main(["report", "runs/a", "--json"]) == 0
    assert set(json.loads(capsys.readouterr().out)["stages"]) == {"first", "second"}
    assert main(["report", "nothing"]) == 2
