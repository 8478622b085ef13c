"""The stretches of a run and of those it branched from, with what each of them spent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recipe.run.comparing.history import History
from recipe.run.comparing.lineage_tree import ancestry, named_totals
from recipe.run.folder import read_version
from recipe.run.head import snapshot_of
from recipe.run.manifest import read_manifest


def lineage_of(history: History, spent: int, body: int) -> Iterator[dict[str, Any]]:
    """The stretches of the run, its own first, then those of the runs it branched from.

    Tokens counted before a run went on with another tokenizer are other tokens: they are not added.
    """
    step = max((point.step for point in history.points), default=history.base)
    counted, end = True, {"spent": spent, "body": body}
    pairs = [*ancestry(history)]
    for child, parent in [*pairs, (None, None)] if not pairs or pairs[-1][1] is not None else pairs:
        one = child if child is not None else (pairs[-1][1] if pairs else history)
        assert one is not None
        begun = _begun(one)
        yield _stretch(one.name, one.id, (one.base, step), {k: end[k] - begun[k] for k in end}, counted)
        step, end = one.base, begun
        if child is not None and child.parent is not None and child.parent.get("retokenised"):
            counted, end = False, _stated(child)
        if child is not None and parent is None:
            told = child.parent or {}
            yield _stretch(str(told["run"]), str(told["id"]), (0, step), end, counted)


def _stretch(
    name: str, id: str, steps: tuple[int, int], tokens: Mapping[str, int], counted: bool
) -> dict[str, Any]:
    return {"run": name, "id": id, "steps": list(steps), **tokens, "counted": counted}


def _begun(history: History) -> dict[str, int]:
    """What a run had spent where it began."""
    recipe = read_version(history.folder, int(history.created.data["recipe"])).recipe
    totals = named_totals(snapshot_of(history.created), recipe).values()
    return {kind: sum(pool[kind] for pool in totals) for kind in ("spent", "body")}


def _stated(child: History) -> dict[str, int]:
    """What the manifest says that a run branched from."""
    assert child.parent is not None
    manifest = read_manifest(child.folder.path / "parent.yaml", str(child.parent["hash"]))
    return {k: sum(pool["tokens"][k] for pool in manifest["pools"].values()) for k in ("spent", "body")}
