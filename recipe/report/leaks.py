"""What training reads of held-out pools, for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Group

from recipe.report.tables import table

MOST_ROWS = 20
"""Leaks that are shown with their places; JSON holds more."""


def leak_tables(plain: Mapping[str, Any]) -> Iterator[Group]:
    """Tables of a search's plain form: held-out pools, and the longest leaks."""
    trained = list(plain["trained"])
    yield table(
        "held-out pools",
        ("pool", "documents", "leaked", "tokens", "leaked", *(f"in {name}" for name in trained)),
        (
            (
                name,
                f"{of['documents']:,}",
                f"{of['leaked_documents']:,}",
                f"{of['tokens']:,}",
                f"{of['leaked_tokens']:,}",
                *(f"{of['found_in'][pool]:,}" for pool in trained),
            )
            for name, of in plain["held"].items()
        ),
        caption="in POOL: held-out documents that share text with it",
    )
    yield table(
        "pools that are trained on",
        ("pool", "documents", "with held-out text"),
        (
            (name, f"{of['documents']:,}", f"{of['leaking_documents']:,}")
            for name, of in plain["trained"].items()
        ),
    )
    if plain["leaks"]:
        longest = _longest(plain["leaks"])
        first = longest[:MOST_ROWS]
        yield table(
            "the longest text that two documents share",
            ("held out", "document", "tokens", "trained on", "document", "tokens"),
            (tuple(cell for side in ("held", "trained") for cell in _place(leak[side])) for leak in first),
            caption=_hidden(len(longest) - len(first), plain["num_leaks"] - len(plain["leaks"])),
        )


def _hidden(pairs: int, places: int) -> str:
    """What is not shown: pairs of documents, and leaks that are no longer than those kept."""
    told = [f"{pairs:,} more pairs of documents (--json)"] if pairs else []
    told += [f"{places:,} more places, no longer ones, which are counted alone"] if places else []
    return f"and {' and '.join(told)}" if told else ""


def _longest(leaks: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Of every two documents the longest of their leaks, longest first."""
    found: dict[tuple[Any, ...], Mapping[str, Any]] = {}
    for leak in leaks:
        pair = tuple(leak[side][key] for side in ("held", "trained") for key in ("pool", "document"))
        found.setdefault(pair, leak)  # leaks come longest first
    return list(found.values())


def _place(place: Mapping[str, Any]) -> tuple[str, str, str]:
    return place["pool"], str(place["document"]), f"{place['start']:,}..{place['stop']:,}"


def verdict(plain: Mapping[str, Any]) -> str:
    """One line: what was compared, and what was found; more where that clears nothing, one a pool."""
    compared = f"stretches of {plain['ngram']} tokens"
    shorts = sum(of["short_documents"] for of in plain["held"].values())
    if shorts:
        compared += f", and {shorts:,} shorter documents as a whole"
    unsure = list(plain["unchecked"])
    found = f"no held-out text is trained on ({compared})"
    if plain["num_leaks"]:
        found = f"{plain['num_leaks']:,} places where held-out text is trained on ({compared})"
    elif unsure:
        found = f"nothing was found, which clears no pool that does not say its tokenizer ({compared})"
    return "\n".join([found, *unsure])
