"""Pools that name no tokenizer beside pools that do: nothing passes for compared that was not (F6)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.audit.leakage import Search, find_leakage
from recipe.cli.main import main
from recipe.config import recipe_from_plain
from recipe.errors import RecipeError
from recipe.pools import Pool, PoolWriter, open_pool
from recipe.pools.foreign.form import Form
from recipe.pools.overlap import find_overlap
from recipe.pools.same_tokenizer import doubts, ids_outside, tokenizer_warnings, unstated
from recipe.run.tracing.tokenizers import said_for
from recipe.text.tokenizers.builtin import ByteTokenizer

OURS = "a" * 64


def own(name: str, texts: list[list[int]], tokenizer: str | None = OURS) -> Pool:
    with PoolWriter(f"pools/{name}", vocab_size=257, eos=256, tokenizer=tokenizer) as writer:
        for text in texts:
            writer.add(np.array(text))
        return writer.close()


def made_elsewhere(name: str, texts: list[list[int]], eos: int = 256) -> Pool:
    """Token files of uint16 in which documents end with a mark."""
    Path("files").mkdir(exist_ok=True)
    np.array([id for text in texts for id in (*text, eos)], "<u2").tofile(f"files/{name}.u16")
    return open_pool(f"files/{name}.u16", name, eos=eos)


def plain(**pools: str) -> dict:
    stage = {"steps": 2, "context": 8, "batch": {"sequences": 1}, "quotas": dict.fromkeys(pools, "50%")}
    said = {
        name: {"path": path} | ({"eos": 256} if path.startswith("files") else {})
        for name, path in pools.items()
    }
    return {"seed": 1, "pools": said, "stages": {"one": stage}}


@pytest.fixture
def texts(in_tmp: Path) -> list[list[int]]:
    return np.random.default_rng(1).integers(0, 256, (9, 20)).tolist()


def test_f6_nothing_found_in_a_pool_without_a_tokenizer_is_no_all_clear(texts, capsys):
    made_elsewhere("foreign", texts[:4]).close()
    own("ours", texts[4:8]).close()
    own("exam", texts[8:]).close()
    Path("r.yaml").write_text(json.dumps(plain(foreign="files/foreign.u16", ours="pools/ours")))
    sentence = "cannot tell: pool foreign does not say its tokenizer; compared as if it were the same"
    assert main(["audit", "leakage", "r.yaml", "--against", "pools/exam"]) == 1
    told = capsys.readouterr().out
    assert sentence in told and "--allow-unchecked accepts that" in told
    assert "no held-out text is trained on" not in told
    assert main(["audit", "leakage", "r.yaml", "--against", "pools/exam", "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["unchecked"], found["num_leaks"]) == (False, [sentence], 0)
    assert main(["audit", "leakage", "r.yaml", "--against", "pools/exam", "--allow-unchecked"]) == 0
    assert sentence in capsys.readouterr().out, "it is named all the same"
    assert main(["pools", "overlap", "files/foreign.u16", "pools/exam", "--eos", "256"]) == 0
    assert "cannot tell: pool foreign.u16 does not say its tokenizer" in capsys.readouterr().out


def test_f6_where_all_say_one_tokenizer_nothing_found_clears_all(texts, capsys):
    own("ours", texts[:8]).close()
    own("exam", texts[8:]).close()
    Path("r.yaml").write_text(json.dumps(plain(ours="pools/ours") | {"stages": {"one": {
        "steps": 2, "context": 8, "batch": {"sequences": 1}, "quotas": {"ours": "100%"}}}}))  # fmt: skip
    assert main(["audit", "leakage", "r.yaml", "--against", "pools/exam"]) == 0
    told = capsys.readouterr().out
    assert "no held-out text is trained on" in told
    assert "cannot tell" not in told


def test_what_leaks_into_a_pool_without_a_tokenizer_is_found_and_both_are_told(texts):
    found = find_leakage({"foreign": made_elsewhere("foreign", texts)}, {"exam": own("exam", texts[:1])})
    assert (found.ok, found.num_leaks, len(found.unchecked)) == (False, 1, 1)


def test_f6_ids_that_the_known_tokenizer_does_not_have_are_another_ones(texts):
    """Half of the ids are 300 and more, where the known one ends at 256."""
    wide = made_elsewhere("wide", [[*text, *(id + 300 for id in text)] for text in texts], eos=999)
    exam = own("exam", texts)
    for compared in (
        lambda: find_leakage({"wide": wide}, {"exam": exam}),
        lambda: find_overlap([wide, exam]),
    ):
        with pytest.raises(RecipeError, match=r"files/wide\.u16\n.*ids up to \d+.*\n.*ids below 257"):
            compared()


def test_two_stated_tokenizers_are_refused_by_the_search_itself(texts):
    with pytest.raises(RecipeError, match="two tokenizers"):
        find_leakage({"a": own("a", texts)}, {"b": own("b", texts, "b" * 64)})


def test_plan_refuses_ids_of_another_tokenizer_and_warns_of_what_it_cannot_know(texts):
    own("ours", texts)
    made_elsewhere("fits", texts)
    made_elsewhere("wide", [[id + 300 for id in text] for text in texts])
    warned = recipe.make_plan(recipe_from_plain(plain(ours="pools/ours", fits="files/fits.u16"), source="r"))
    assert [one for one in warned.warnings if "tokenizer" in one] == [
        "pool 'fits' does not say its tokenizer: ids are taken to be of the tokenizer of the other pools"
    ]
    assert not warned.problems
    refused = recipe.make_plan(recipe_from_plain(plain(ours="pools/ours", wide="files/wide.u16"), source="r"))
    assert not [one for one in refused.warnings if "tokenizer" in one], (
        "what is refused is not taken for the same"
    )
    (problem,) = refused.problems
    assert (problem.where, problem.expected) == (
        "pools.wide",
        "ids below 257, as the tokenizer of pool ours has them",
    )


def test_few_ids_above_may_be_tokens_that_were_added(texts):
    """One of 1,000 is 300: told, not refused; an end mark of 999 is no such token."""
    many = [[5] * 999, [6] * 500 + [300] + [6] * 498]
    pools = {"ours": own("ours", texts), "added": made_elsewhere("added", many, eos=999)}
    assert doubts(pools)[0] == []
    assert (
        "'added' holds ids up to 300, and the tokenizer of pool 'ours' ends at 256"
        in tokenizer_warnings(pools)[1]
    )


def test_a_sample_reads_the_ends_of_a_large_file_and_all_of_a_small_one(in_tmp):
    large = np.zeros(200_000, "<u2")
    large[[0, -1]] = 700, 800
    large.tofile("large.u16")
    np.arange(900, dtype="<u2").tofile("small.u16")
    said = Form(documents="file")
    found = ids_outside(open_pool("large.u16", "l", form=said), 257)
    assert (found.most, found.outside, found.looked_at, found.kinds) == (800, 2, 65_536, 2)
    found = ids_outside(open_pool("small.u16", "s", form=said), 257)
    assert (found.most, found.outside, found.looked_at) == (899, 643, 900)


def test_a_pool_alone_and_pools_of_one_hand_without_a_tokenizer_warn_of_nothing(texts):
    foreign = made_elsewhere("foreign", texts)
    assert unstated({"foreign": foreign}) == ()
    assert tokenizer_warnings({"a": own("a", texts, None), "b": own("b", texts, None)}) == []
    assert len(tokenizer_warnings({"a": own("c", texts, None), "foreign": foreign})) == 1


def test_f6_files_that_were_exported_here_say_their_tokenizer(texts, capsys):
    """The manifest beside them counts while they are as long as it says; cards say nothing new of them."""
    own("web", texts).close()
    own("other", texts, "b" * 64).close()
    for name in ("web", "other"):
        words = ("--format", "megatron", "--out", f"pairs/{name}", "--json")
        assert main(["export", f"pools/{name}", *words]) == 0
    exam, pairs, others = (
        own("exam", texts[:1]),
        open_pool("pairs/web", "web"),
        open_pool("pairs/other", "other"),
    )
    found = find_leakage({"web": pairs}, {"exam": exam})
    assert (found.ok, found.unchecked) == (False, ())
    assert tokenizer_warnings({"web": pairs, "exam": exam}) == []
    assert pairs.card.tokenizer is None
    with pytest.raises(RecipeError, match=rf"tokenizer {'b' * 64}, as the _manifest.json beside its files"):
        find_leakage({"other": others}, {"exam": exam})
    with pytest.raises(RecipeError, match=r"_manifest\.json"):
        find_overlap([pairs, others])
    (pairs_file,) = Path("pairs/web").glob("*.bin")
    with pairs_file.open("ab") as file:
        file.write(b"\0\0")
    assert unstated({"web": pairs, "exam": exam}) == ("web",)


def test_who_says_what_made_the_files_gets_an_all_clear(texts, capsys):
    """The recipe's tokenizer, or the option; without either the answer names both."""
    bytes_ = ByteTokenizer().fingerprint()
    own("ours", texts[:8], bytes_).close()
    made_elsewhere("exam", texts[8:]).close()
    said = plain(ours="pools/ours") | {"stages": {"one": {
        "steps": 2, "context": 8, "batch": {"sequences": 1}, "quotas": {"ours": "100%"}}}}  # fmt: skip
    Path("r.yaml").write_text(json.dumps(said))
    words = ["audit", "leakage", "r.yaml", "--against", "files/exam.u16", "--eos", "256"]
    assert main(words) == 1
    assert "say it: tokenizer: in the recipe, or --tokenizer" in capsys.readouterr().out
    assert main([*words, "--tokenizer", "bytes"]) == 0
    assert "no held-out text is trained on" in capsys.readouterr().out
    Path("r.yaml").write_text(json.dumps(said | {"tokenizer": "bytes"}))
    assert main(words) == 0
    Path("r.yaml").write_text(json.dumps(said | {"tokenizer": "not/here"}))
    assert main(words) == 1, "a tokenizer that is not on this machine says nothing"
    assert main([*words, "--tokenizer", "not/here"]) == 2


def test_another_tokenizer_than_the_pools_state_is_refused_when_it_is_said(texts):
    ours, exam = own("ours", texts[:8]), made_elsewhere("exam", texts[8:])
    said = said_for({"ours": ours, "exam": exam}, "bytes")
    with pytest.raises(RecipeError, match="as --tokenizer, or tokenizer: in the recipe, says"):
        find_leakage({"ours": ours}, {"exam": exam}, Search(said=said))


def test_ids_of_files_are_looked_at_whatever_is_said_of_them(texts):
    ours = own("ours", texts, ByteTokenizer().fingerprint())
    wide = made_elsewhere("wide", [[id + 300 for id in text] for text in texts], eos=999)
    said = said_for({"ours": ours, "wide": wide}, "bytes")
    with pytest.raises(RecipeError, match="ids below 257"):
        find_leakage({"ours": ours}, {"wide": wide}, Search(said=said))


def test_what_is_wrong_with_a_held_out_pool_of_the_recipe_is_mended_in_the_recipe(texts, capsys):
    """Options are for pools that --against names."""
    own("ours", texts).close()
    Path("exam.bin").write_bytes(b"1234")
    said = plain(ours="pools/ours") | {"stages": {"one": {
        "steps": 2, "context": 8, "batch": {"sequences": 1}, "quotas": {"ours": "100%"}}}}  # fmt: skip
    held = {"evaluation": {"pools": {"x": "exam.bin"}}, "trainer": {"final": {"y": "exam.bin"}}}
    Path("r.yaml").write_text(json.dumps(said | held))
    assert main(["audit", "leakage", "r.yaml"]) == 2
    told = capsys.readouterr().err
    assert "evaluation.pools.x: exam.bin" in told and "trainer.final.y: exam.bin" in told
    assert "write dtype: uint16" in told and "--dtype" not in told
    assert main(["audit", "leakage", "r.yaml", "--against", "exam.bin"]) == 2
    assert "write --dtype uint16" in capsys.readouterr().err
