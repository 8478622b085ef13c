"""``recipe inspect``: a row as text, on a terminal, as a page and as JSON."""

from __future__ import annotations

import json
from html.parser import HTMLParser

import pytest

import recipe
from recipe.cli.main import main
from recipe.run.tracing.looking import look_at_rows

STEPS = 14
TEXTS = ["Ein kurzer Text.", "保留重复元素。再来一次！" * 3, "<b>& code</b> 😀 = 'x'\n" * 4, "one " * 40]


@pytest.fixture
def run(in_tmp):
    """A run with overlap, packed rows, padding and characters that windows cut."""
    (in_tmp / "t.jsonl").write_text(
        "".join(json.dumps({"id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(TEXTS)), "utf-8"
    )
    assert main(["prepare", "pools/t", "t.jsonl"]) == 0
    stage = {
        "steps": STEPS,
        "context": 48,
        "batch": {"sequences": 2},
        "quotas": {"t": "100%"},
        "slicing": {"window": 32, "stride": 25},
    }
    plain = {
        "seed": 1,
        "tokenizer": "bytes",
        "max_epochs": 9,
        "pools": {"t": {"path": "pools/t"}},
        "stages": {"one": stage},
    }
    (in_tmp / "r.yaml").write_text(json.dumps(plain))
    assert main(["run", "r.yaml", "--name", "r"]) == 0
    return in_tmp / "runs" / "r"


def test_every_position_has_its_kind_and_text(run, capsys):
    places = [(step, row) for step in range(STEPS) for row in range(2)]
    stream = recipe.open_run(run).stream()
    for look, (step, row) in zip(look_at_rows(run, places), places, strict=True):
        batch = stream.rows(step, [row])
        edges = [column for one in look.stretches for column in one.columns]
        assert edges[0] == 0 and edges[-1] == 48 and edges[1:-1:2] == edges[2::2]
        assert look.labels == int((batch["labels"] != -100).sum())
        assert look.positions["padding"] == int((batch["attention_mask"] == 0).sum())
        for number, piece in enumerate(look.pieces):
            stored = TEXTS[int(str(piece.document)[1:])].encode()[piece.start : piece.stop]
            text = "".join(one.text for one in look.stretches if one.piece == number)
            assert bytes_of(text) == stored
            overlap = sum(
                one.columns[1] - one.columns[0]
                for one in look.stretches
                if one.piece == number and one.kind == "overlap"
            )
            assert overlap == piece.fresh - piece.start


def bytes_of(text: str) -> bytes:
    """What a stretch spells, its broken characters included."""
    out, rest = b"", text
    while rest:
        if rest[0] == "⟨" and rest[3:4] == "⟩":
            out, rest = out + bytes.fromhex(rest[1:3]), rest[4:]
        else:
            out, rest = out + rest[0].encode(), rest[1:]
    return out


class Page(HTMLParser):
    """What a reader sees of a page, and whether every tag is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []
        self.open: list[str] = []
        self.classes: set[str] = set()

    def handle_starttag(self, tag, attrs):
        if tag != "meta":
            self.open.append(tag)
        self.classes |= set(str(dict(attrs).get("class", "")).split())

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.seen.append(data)


def test_a_page_shows_the_same_and_escapes_what_is_no_markup_of_ours(run, capsys):
    assert main(["inspect", str(run), "--document", "d2", "--html", "row.html", "--all"]) == 0
    page = Page()
    page.feed((run.parent.parent / "row.html").read_text("utf-8"))
    assert not page.open
    assert "<b>& code</b> 😀" in "".join(page.seen)
    assert {"fresh", "overlap", "padding", "unlabelled", "edge"} <= page.classes
    capsys.readouterr()


def test_a_terminal_names_document_tokens_lines_and_characters(run, capsys):
    assert main(["inspect", str(run), "--document", "d0", "--table", "--tokenizer", "bytes"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "── t: d0, tokens 0..16; t.jsonl:1 line 1, characters 0..16 ──" in told
    assert "⟨eos⟩" in told or "padding" in told


def test_json_is_the_row_in_plain_values(run, capsys):
    assert main(["inspect", str(run), "--step", "0", "--row", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(told[0]["positions"].values()) == told[0]["context"] == 48


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--step", "1"], "--step and --row, or --document"),
        (["--step", "1", "--row", "0", "--document", "d0"], "both"),
        (["--step", "1", "--row", "9"], "rows 0..1 of step 1"),
        (["--document", "nobody"], "nobody"),
        (["--step", "1", "--row", "0", "--sources", "nowhere"], "a folder that holds the sources"),
        (["--step", "1", "--row", "0", "--html", "none/row.html"], "make that folder first"),
    ],
)
def test_bad_input_is_one_message(run, capsys, words, told):
    capsys.readouterr()
    assert main(["inspect", str(run), *words]) == 2
    assert told in capsys.readouterr().err
