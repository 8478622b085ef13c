"""Drawn pools: groups, sections with needs, leads, tags, marks and parts of any sizes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from recipe.pools import Pool, PoolWriter, Section

VOCAB = 60
Drawn = dict[str, Any]


@st.composite
def documents(draw: st.DrawFn, *, most: int = 9) -> list[Drawn]:
    """Documents as `PoolWriter.add` takes them; sections need others of the same group."""
    found: list[Drawn] = []
    with_sections, with_groups = draw(st.booleans()), draw(st.booleans())
    while len(found) < most and (not found or draw(st.booleans())):
        members = draw(st.integers(1, 3)) if with_groups else 1
        group = f"g{len(found)}" if with_groups and (members > 1 or draw(st.booleans())) else None
        texts = [draw(st.lists(st.integers(3, VOCAB - 1), max_size=12)) for _ in range(members)]
        ids = [f"s{k}" for k in range(members)]
        for k, text in enumerate(texts):
            document: Drawn = {"tokens": text, "id": draw(_id(len(found))), "group": group}
            document["tags"] = draw(st.none() | st.just({"lang": "ché", "n": len(text)}))
            document["source"] = draw(st.none() | st.just(["file.txt", len(found)]))
            document["lead"] = draw(st.just([]) | st.just([3, 4]))
            if with_sections:
                document["sections"] = draw(_sections(len(text), ids[k], [i for i in ids if i != ids[k]]))
            found.append(document)
        _without_unmet_needs(found[-members:])
    return found


@st.composite
def _id(draw: st.DrawFn, number: int) -> int | str | None:
    return draw(st.sampled_from([f"d{number}", 1000 + number]))


@st.composite
def _sections(draw: st.DrawFn, tokens: int, id: str, others: list[str]) -> list[int | Section]:
    starts = sorted(draw(st.sets(st.integers(0, max(0, tokens - 1)), max_size=3))) if tokens else []
    found: list[int | Section] = list(starts)
    if starts and draw(st.booleans()):
        at = draw(st.integers(0, len(starts) - 1))
        needs = tuple(draw(st.lists(st.sampled_from(others), unique=True))) if others else ()
        found[at] = Section(starts[at], id, needs)
    return found


def _without_unmet_needs(members: list[Drawn]) -> None:
    """Needs name sections that are there."""
    known = {
        section.id
        for member in members
        for section in member.get("sections", ())
        if isinstance(section, Section)
    }
    for member in members:
        member["sections"] = [
            section._replace(needs=tuple(need for need in section.needs if need in known))
            if isinstance(section, Section)
            else section
            for section in member.get("sections", ())
        ]
        if not known and not member["sections"]:
            del member["sections"]


def settings() -> st.SearchStrategy[dict[str, Any]]:
    """Marks, part sizes and whether repeats are looked for."""
    return st.fixed_dictionaries(
        {
            "bos": st.sampled_from([None, 1]),
            "eos": st.sampled_from([None, 2]),
            "part_tokens": st.sampled_from([5, 16, 1000]),
            "repeats": st.sampled_from([None, 2]),
        }
    )


def written(path: Path, drawn: list[Drawn], **more: Any) -> Pool:
    """A pool of drawn documents."""
    with PoolWriter(path, vocab_size=VOCAB, **more) as writer:
        for document in drawn:
            writer.add(**document)
        return writer.close()


def drop_needs_of_others(chosen: list[Drawn]) -> int:
    """Leave out needs whose section is in none of these documents; how many there were."""
    lost = 0
    for document in chosen:
        known = {
            section.id
            for other in chosen
            if other["group"] == document["group"]
            for section in other.get("sections", ())
            if isinstance(section, Section)
        }
        kept: list[int | Section] = []
        for section in document.get("sections", ()):
            if isinstance(section, Section):
                needs = tuple(need for need in section.needs if need in known)
                lost += len(section.needs) - len(needs)
                section = section._replace(needs=needs)
            kept.append(section)
        if "sections" in document:
            document["sections"] = kept
    return lost
