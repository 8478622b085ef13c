"""``recipe pools list``, ``show`` and ``describe``."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import recipe
from recipe.cli.main import main
from recipe.pools import PoolWriter

TAGS = [{"lang": "en", "ch": "\x1b[31m"}, {"lang": "zh"}, None, {"lang": "en"}]


def answer(capsys, *words):
    code = main([*map(str, words), "--json"])
    return code, json.loads(capsys.readouterr().out)


@pytest.fixture
def pools(in_tmp):
    recipe.write_pool("pools/a", [[1, 2, 3], [4, 5], [6], [7] * 9], vocab_size=50, eos=49, tags=TAGS).close()
    recipe.write_pool("pools/deep/b", [[1] * 30], vocab_size=50, eos=49).close()
    return Path("pools")


def test_every_pool_below_a_folder_is_listed(pools, capsys):
    code, told = answer(capsys, "pools", "list", "pools")
    assert code == 0
    assert [(one["name"], one["documents"], one["tokens"], one["parts"]) for one in told] == [
        ("a", 4, 15, 1),
        ("deep/b", 1, 30, 1),
    ]
    assert told[0]["bytes"] == sum(path.stat().st_size for path in Path("pools/a").iterdir())
    assert main(["pools", "list", "pools"]) == 0
    assert "deep/b" in capsys.readouterr().out


def test_what_is_unfinished_or_damaged_is_listed_as_such(pools, capsys):
    Path("pools/c.partial").mkdir()
    Path("pools/.d.prepare").mkdir()
    Path("pools/deep/b/card.json").unlink()
    code, told = answer(capsys, "pools", "list", "pools")
    wrong = {one["name"]: one["problem"] for one in told if one["problem"]}
    assert code == 1
    assert set(wrong) == {".d.prepare", "c.partial", "deep/b"}
    assert "without its card" in wrong["deep/b"]
    assert "never finished" in wrong["c.partial"]
    assert "rm -r pools/c.partial" in wrong["c.partial"]
    assert "rm -r pools/.d.prepare" in wrong[".d.prepare"]
    assert main(["pools", "list", "pools"]) == 1
    assert "without its card" in capsys.readouterr().out


def test_a_truncated_part_is_named(pools, capsys):
    path = Path("pools/a/part-00000.bin")
    path.write_bytes(path.read_bytes()[:-1])
    code, told = answer(capsys, "pools", "list", "pools")
    assert (code, told[0]["problem"].split(":")[0]) == (1, "part-00000.bin")


def test_links_are_followed_once(pools, capsys):
    Path("elsewhere").mkdir()
    Path("pools/a").rename("elsewhere/a")
    Path("pools/linked").symlink_to(Path("elsewhere/a").absolute())
    Path("pools/deep/up").symlink_to(Path("pools").absolute())
    code, told = answer(capsys, "pools", "list", "pools")
    assert (code, sorted(one["name"] for one in told)) == (0, ["deep/b", "linked"])


def test_d6_a_stock_beside_a_folder_is_a_target_with_its_gap(pools, capsys):
    """D6: target, measured and gap are shown."""
    Path("r.yaml").write_text(
        "seed: 1\npools: {a: {path: pools/a, stock: 100}, b: {path: pools/deep/b}, later: {stock: 1k}}\n"
        "every_stage: {context: 16, batch: {sequences: 1}}\n"
        "stages: {s: {tokens: 64, quotas: {a: 40%, b: 50%, later: 10%}}}\n"
    )
    code, told = answer(capsys, "pools", "list", "r.yaml")
    assert code == 0
    assert [(one["name"], one["target"], one["tokens"], one["gap"]) for one in told] == [
        ("a", 100, 15, -85),
        ("b", None, 30, None),
        ("later", 1000, None, None),
    ]
    assert main(["pools", "list", "r.yaml", "pools.b.path=nowhere"]) == 1
    out = capsys.readouterr().out
    assert "targets" in out
    assert "-85" in out
    assert "nowhere" in out


def test_folders_and_a_recipe_are_not_mixed(pools, capsys):
    assert main(["pools", "list", "pools", "nothing"]) == 2
    assert "beside" in capsys.readouterr().err


def test_an_empty_folder_holds_no_pools(in_tmp, capsys):
    Path("empty").mkdir()
    assert main(["pools", "list", "empty"]) == 0
    assert "no pools below empty" in capsys.readouterr().out


def test_show_counts_lengths_tags_and_the_largest(pools, capsys):
    code, told = answer(capsys, "pools", "show", "pools/a", "--samples", "2")
    assert code == 0
    assert [
        (row["from"], row["documents"], row["tokens"]) for row in told["histogram"] if row["documents"]
    ] == [
        (1, 1, 1),
        (2, 2, 5),
        (8, 1, 9),
    ]
    assert (told["largest"][0]["tokens"], told["left_out"]["adds_up"]) == (9, None)
    assert told["tags"]["lang"]["top"][0] == {"value": "en", "documents": 2, "tokens": 12}
    assert [len(one["ids"]) for one in told["samples"]] == [one["tokens"] for one in told["samples"]]


def test_records_read_are_documents_or_left_out(in_tmp, capsys):
    lines = [json.dumps({"text": f"{n}"}) for n in range(7)]
    Path("in.jsonl").write_text("\n".join([*lines, '{"text": ""}', '{"t": 1}', ""]))
    main(["prepare", "p", "in.jsonl", "--on-bad", "skip", "--json"])
    capsys.readouterr()
    left = answer(capsys, "pools", "show", "p")[1]["left_out"]
    assert (left["read"], left["documents"], sum(left["reasons"].values()), left["adds_up"]) == (
        9,
        7,
        2,
        True,
    )


def test_samples_are_text_that_moves_no_cursor_and_is_no_markup(in_tmp, capsys):
    texts = ["\x1b[2J[bold]red[/bold] \u202e\x07 :smile: 中文\n", "x"]
    Path("in.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    main(["prepare", "p", "in.jsonl", "--json"])
    capsys.readouterr()
    assert main(["pools", "show", "p"]) == 0
    out = capsys.readouterr().out
    assert "⟨U+001B⟩[2J[bold]red[/bold] ⟨U+202E⟩⟨U+0007⟩ :smile: 中文" in out
    assert "\x1b" not in out.replace("\x1b[0m", "")


def test_a_sample_ends_with_a_whole_character(in_tmp, capsys):
    Path("in.jsonl").write_text(json.dumps({"text": "中文中文"}) + "\n")
    main(["prepare", "p", "in.jsonl", "--json"])
    capsys.readouterr()
    for most, text in ((3, "中"), (4, "中文"), (5, "中文"), (6, "中文"), (99, "中文中文")):
        assert answer(capsys, "pools", "show", "p", "--tokens", most)[1]["samples"][0]["text"] == text


def test_a_seed_draws_the_same_documents_and_another_seed_others(in_tmp, capsys):
    recipe.write_pool("p", [[n] for n in range(200)], vocab_size=300).close()
    drawn = [
        [
            one["document"]
            for one in answer(capsys, "pools", "show", "p", "--samples", 5, "--seed", seed)[1]["samples"]
        ]
        for seed in (1, 1, 2)
    ]
    assert drawn[0] == drawn[1] != drawn[2]
    assert len(set(drawn[0])) == 5


def test_tags_that_hold_escapes_are_named_not_obeyed(pools, capsys):
    assert main(["pools", "show", "pools/a"]) == 0
    out = capsys.readouterr().out
    assert "⟨U+001B⟩[31m" in out


def test_another_tokenizer_than_the_pools_is_refused(in_tmp, capsys):
    with PoolWriter("p", vocab_size=300, tokenizer="0" * 64, tokenizer_name="ours") as writer:
        writer.add([1])
        writer.close().close()
    assert main(["pools", "show", "p", "--tokenizer", "bytes"]) == 2
    assert "ours that made it" in capsys.readouterr().err
    assert main(["pools", "show", "p"]) == 0
    assert "name the pool's tokenizer" in capsys.readouterr().err


def test_what_was_said_is_changed_only_when_somebody_agrees(pools, capsys):
    assert answer(capsys, "pools", "describe", "pools/a", "kind=public", "licence=MIT")[0] == 0
    code, told = answer(capsys, "pools", "describe", "pools/a")
    assert (code, told["about"]) == (0, {"kind": "public", "licence": "MIT"})
    assert main(["pools", "describe", "pools/a", "licence=null"]) == 1
    assert "taken out" in capsys.readouterr().out
    assert answer(capsys, "pools", "describe", "pools/a", "languages=en")[0] == 0
    assert main(["pools", "describe", "pools/a", "licence=null", "--yes"]) == 0
    capsys.readouterr()
    assert answer(capsys, "pools", "describe", "pools/a")[1]["about"] == {
        "kind": "public",
        "languages": ["en"],
    }
    assert answer(capsys, "pools", "list", "pools")[1][0]["kind"] == "public"


def test_prepare_says_it_at_once_and_of_a_pool_that_is_there(in_tmp, capsys):
    Path("in.jsonl").write_text('{"text": "a"}\n')
    assert main(["prepare", "p", "in.jsonl", "--about", "kind=publik"]) == 2
    assert not Path("p").exists()
    main(["prepare", "p", "in.jsonl", "--about", "kind=synthetic", "--about", "generator=m", "--json"])
    main(["prepare", "p", "in.jsonl", "--about", "kind=public", "--json"])
    capsys.readouterr()
    assert answer(capsys, "pools", "describe", "p")[1]["about"] == {"kind": "public"}


def test_a_pool_that_extends_a_described_one_is_said_to_say_nothing(in_tmp, capsys):
    for name in ("a", "b"):
        Path(f"{name}.jsonl").write_text(f'{{"id": "{name}", "text": "a"}}\n')
    main(["prepare", "p", "a.jsonl", "--about", "kind=public", "--json"])
    assert main(["prepare", "q", "b.jsonl", "--extends", "p", "--json"]) == 0
    assert "of q nothing is said" in capsys.readouterr().err
    assert main(["prepare", "q", "b.jsonl", "--extends", "p", "--about", "kind=public", "--json"]) == 0
    assert "nothing is said" not in capsys.readouterr().err


@pytest.mark.parametrize("verb", ["pools list", "export --format npy --out out"])
@pytest.mark.parametrize("word", ["nope", "pools/nope", "elsewhere/nope"])
def test_a_word_that_is_no_folder_and_no_recipe_is_told_as_that(pools, capsys, verb, word):
    assert main([*verb.split(), word]) == 2
    told = capsys.readouterr().err
    assert "no such folder, and no such recipe" in told and "a folder" in told and "YAML" in told


def test_the_nearest_folder_is_suggested(pools, capsys):
    assert main(["pools", "list", "pools/dep"]) == 2
    assert "did you mean 'pools/deep'?" in capsys.readouterr().err


def test_token_files_of_others_are_no_pools_and_it_is_said_what_shows_them(in_tmp, capsys):
    Path("tokens").mkdir()
    np.save("tokens/a.npy", np.arange(9, dtype=np.uint16))
    assert main(["pools", "list", "tokens"]) == 0
    out, err = capsys.readouterr()
    assert "no pools" not in out
    assert "files of tokens made elsewhere" in err and "recipe pools show tokens --eos" in err
    Path("empty").mkdir()
    assert main(["pools", "list", "empty"]) == 0
    assert "no pools below empty" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "fix"),
    [
        (["licence", "MIT"], "write licence=MIT"),
        (["licence"], "write licence=…"),
        (["license", "MIT"], "did you mean 'licence'?"),
        (["kind=public", "nope.yaml"], "keys are kind, licence"),
    ],
)
def test_a_statement_without_a_sign_is_told_and_nothing_is_said(pools, capsys, words, fix):
    assert main(["pools", "describe", "pools/a", *words]) == 2
    told = capsys.readouterr().err
    assert "KEY=VALUE" in told and fix in told
    assert answer(capsys, "pools", "describe", "pools/a")[1]["about"] == {}


def test_a_first_statement_is_written_and_a_change_waits_for_an_answer_as_help_says(pools, capsys):
    assert main(["pools", "describe", "pools/a", "kind=public"]) == 0
    assert main(["pools", "describe", "pools/a", "kind=user"]) == 1
    capsys.readouterr()
    assert answer(capsys, "pools", "describe", "pools/a")[1]["about"] == {"kind": "public"}
    with pytest.raises(SystemExit):
        main(["pools", "describe", "--help"])
    told = " ".join(capsys.readouterr().out.split())
    assert "what was said stays" in told and "what nobody said yet is written without a question" in told
    assert "nothing is written" not in told
