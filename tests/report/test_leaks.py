"""Leaks as they are shown: the longest first, and how many are not."""

from __future__ import annotations

from typing import Any

from rich.console import Console

from recipe.report import leaks
from recipe.report.leaks import leak_tables


def plain(sizes: list[int], num_leaks: int) -> dict[str, Any]:
    def place(pool: str, document: int, size: int) -> dict[str, Any]:
        return {"pool": pool, "document": document, "start": 0, "stop": size}

    found = [
        {"held": place("exam", n, size), "trained": place("web", n, size)} for n, size in enumerate(sizes)
    ]
    return {"trained": {}, "held": {}, "leaks": found, "num_leaks": num_leaks}


def shown(of: dict[str, Any]) -> str:
    console = Console(width=200)
    with console.capture() as capture:
        console.print(*leak_tables(of))
    return capture.get()


def test_what_is_hidden_is_counted(monkeypatch):
    monkeypatch.setattr(leaks, "MOST_ROWS", 2)
    assert "more" not in shown(plain([90, 80], 2))
    assert "and 1 more pairs of documents (--json)" in shown(plain([90, 80, 70], 3))
    assert "and 4 more places" in shown(plain([90, 80], 6))
    both = shown(plain([90, 80, 70], 7))
    assert "and 1 more pairs of documents (--json) and 4 more places" in both
    assert "0..90" in both and "0..70" not in both
