"""What a card says for a public summary of training data: strict, late, and no part of the fingerprint."""

from __future__ import annotations

import json
import os
import resource
import signal

import pytest

import recipe
from recipe.errors import RecipeError
from recipe.pools import open_pool
from recipe.pools.about import about_of, describe_pool, read_about
from recipe.pools.card import card_text, read_card

WHOLE = {
    "kind": "crawled",
    "licence": "CC-BY-4.0",
    "languages": ["en", "zh-Hans", "pt-BR"],
    "collected": {"from": "2023-01", "to": "2024-05-31"},
    "crawler": "exampleBot",
    "provider": "somebody",
    "description": "pages",
    "url": "https://example.org",
    "contact": "a@example.org",
}


@pytest.fixture
def pool(tmp_path):
    recipe.write_pool(tmp_path / "web", [[1, 2, 3], [4, 5]], vocab_size=10, eos=9).close()
    return tmp_path / "web"


def test_everything_that_can_be_said_is_kept_as_it_was_said():
    assert about_of(WHOLE, "web") == WHOLE


@pytest.mark.parametrize(
    ("data", "where", "told"),
    [
        ({"kind": "publc"}, "kind", "did you mean 'public'?"),
        ({"license": "MIT"}, "license", "did you mean 'licence'?"),
        ({"languages": ["english"]}, "languages.0", "its tag"),
        ({"languages": ["zh-hans"]}, "languages.0", "write zh-Hans"),
        ({"languages": ["EN"]}, "languages.0", "write en"),
        ({"languages": ["en", "en"]}, "languages", "drop one"),
        ({"collected": {"from": "2023-13"}}, "collected.from", "write it like 2024-05"),
        ({"collected": {"to": "2023-02-30"}}, "collected.to", "write it like 2024-05"),
        ({"collected": {"from": "2024-05", "to": "2024-04"}}, "collected.to", "swap the two"),
        ({"collected": "2024..2023"}, "collected.to", "swap the two"),
        ({"collected": {"until": "2023"}}, "collected.until", ""),
        ({"kind": "synthetic"}, "generator", "name the model or program"),
        ({"kind": "public", "generator": "m"}, "generator", "leave generator out"),
        ({"kind": "public", "crawler": "m"}, "crawler", "leave crawler out"),
        ({"licence": "  "}, "licence", "leave the key out"),
        ({"licence": "a\x1b[31m"}, "licence", "leave the character out"),
        ({"description": "a\u202eb"}, "description", "leave the character out"),
    ],
)
def test_what_is_not_sound_is_refused_with_its_place_and_a_way_out(data, where, told):
    with pytest.raises(RecipeError) as caught:
        about_of(data, "web")
    problems = {problem.where: problem.fix for problem in caught.value.problems}
    assert told in problems[where]


def test_a_period_ends_with_its_whole_last_year_or_month():
    assert about_of({"collected": "2024-05-10..2024"}, "web")["collected"] == {
        "from": "2024-05-10",
        "to": "2024",
    }
    assert about_of({"collected": 2024}, "web")["collected"] == {"from": "2024", "to": "2024"}


def test_words_go_over_files_and_over_what_was_said(tmp_path):
    (tmp_path / "a.yaml").write_text("kind: public\nlanguages: [no, en]\ncollected: 2024-05-01\n")
    words = [str(tmp_path / "a.yaml"), "collected.to=2024-06", "licence=a=b"]
    assert read_about(words, "web", {"licence": "MIT", "url": "u"}) == {
        "kind": "public",
        "licence": "a=b",
        "languages": ["no", "en"],
        "collected": {"from": "2024-05-01", "to": "2024-06"},
        "url": "u",
    }
    assert read_about(["collected=null"], "web", {"collected": {"to": "2024"}}) == {}


def test_a_card_that_says_nothing_has_the_bytes_it_had(pool):
    assert "about" not in json.loads((pool / "card.json").read_bytes())


def test_the_fingerprint_stays_and_the_hash_covers_what_is_said(pool):
    before = read_card(pool)
    describe_pool(pool, WHOLE)
    after = read_card(pool)
    assert (after.about, after.fingerprint) == (WHOLE, before.fingerprint)
    data = (pool / "card.json").read_text()
    (pool / "card.json").write_text(data.replace("CC-BY-4.0", "CC-BY-5.0"))
    with pytest.raises(RecipeError, match="the hash it states"):
        read_card(pool)


def test_taking_everything_out_gives_the_first_bytes_back(pool):
    first = (pool / "card.json").read_bytes()
    describe_pool(pool, {"kind": "public"})
    describe_pool(pool, {})
    assert (pool / "card.json").read_bytes() == first == card_text(read_card(pool))


def test_a_run_goes_on_over_a_pool_that_was_described(pool, tmp_path):
    with open_pool(pool, "web") as opened:
        describe_pool(pool, WHOLE)
        with open_pool(pool, "web") as again:
            assert again.fingerprint == opened.fingerprint


def test_files_of_others_carry_no_card(tmp_path):
    with pytest.raises(RecipeError, match=r"no card\.json"):
        describe_pool(tmp_path, {"kind": "public"})


def test_a_folder_of_pools_is_told_by_the_names_of_its_pools(pool, tmp_path):
    (tmp_path / "split").mkdir()
    pool.rename(tmp_path / "split" / "train")
    with pytest.raises(RecipeError, match="holds the pools train"):
        describe_pool(tmp_path / "split", {"kind": "public"})


def test_a_full_disk_leaves_the_card_as_it_was_and_nothing_beside_it(pool):
    """The system refuses files above a size: to the writer it is as a full disk. F06."""
    before = {path.name: path.read_bytes() for path in pool.iterdir()}
    pid = os.fork()
    if pid == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))
        try:
            describe_pool(pool, {"kind": "public"})
        except OSError:
            os._exit(7)
        os._exit(9)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7
    assert {path.name: path.read_bytes() for path in pool.iterdir()} == before


def test_of_files_without_a_card_the_datasheet_takes_what_is_said(tmp_path):
    (tmp_path / "tokens.u16").write_bytes(b"1234")
    with pytest.raises(RecipeError, match="recipe report RUN --datasheet --about FILE"):
        describe_pool(tmp_path, {"kind": "public"})
