"""``recipe plan --diagnose`` and ``--figures``: the same numbers as tables, JSON and a page."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import numpy as np
import pytest

import recipe
from recipe.cli.main import main


@pytest.fixture
def recipe_file(in_tmp):
    recipe.write_pool("p", [np.full(24, 65), np.full(9, 66)], vocab_size=257, eos=256)
    stage = {
        "tokens": 64,
        "context": 16,
        "batch": {"sequences": 1},
        "quotas": {"p": "100%"},
        "slicing": {"stride": 8},
    }
    plain = {"seed": 1, "tokenizer": "bytes", "pools": {"p": {"path": "p"}}, "stages": {"one": stage}}
    (in_tmp / "r.yaml").write_text(json.dumps(plain))
    return in_tmp / "r.yaml"


def test_tables_and_json_say_the_same(recipe_file, capsys):
    assert main(["plan", "r.yaml", "--diagnose", "--json"]) == 0
    of = json.loads(capsys.readouterr().out)["diagnosis"]["one"]["p"]
    assert of["readings"] == {"1": 25, "2": 8} and of["cuts"] == 1
    assert main(["plan", "r.yaml", "--diagnose"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "stage one: how often tokens are read in one epoch" in told and " 25 8 0 0 " in told


def test_without_it_nothing_is_diagnosed(recipe_file, capsys):
    assert main(["plan", "r.yaml", "--json"]) == 0
    assert "diagnosis" not in json.loads(capsys.readouterr().out)


def test_figures_are_whole_svg_with_the_same_shares(recipe_file, capsys):
    assert main(["plan", "r.yaml", "--figures", "plan.html"]) == 0
    page = (recipe_file.parent / "plan.html").read_text("utf-8")
    figures = [ElementTree.fromstring(one) for one in re.findall(r"<svg.*?</svg>", page)]
    titles = [figure[0].text for figure in figures]
    assert titles[0] == "times a token is read" and "where documents are cut" in titles
    texts = [element.text for element in figures[0].iter() if element.tag.endswith("text")]
    assert texts == ["times a token is read", "1 ×", "75.76 %", "2 ×", "24.24 %"]


def test_a_page_in_no_folder_is_refused_before_anything_is_read(in_tmp, capsys):
    assert main(["plan", "none.yaml", "--figures", "nowhere/plan.html"]) == 2
    assert "make that folder first" in capsys.readouterr().err
