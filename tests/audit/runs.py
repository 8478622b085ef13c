"""Small real runs to audit, and ways to change what they have on record."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

import recipe
from recipe.audit import audit_run
from recipe.config import recipe_from_plain
from recipe.run.canonical import canonical, hash_of
from recipe.run.manifest import manifest_path, seal_of, sealed, unseal
from recipe.run.run import Run

Plain = dict[str, Any]


def write_pools(
    root: Path, sizes: Mapping[str, int], *, mean: int = 60, seed: int = 0, **options: Any
) -> None:
    """Pools of so many documents of various lengths."""
    chance = np.random.default_rng(seed)
    for name, documents in sizes.items():
        lengths = chance.lognormal(np.log(mean), 1.0, documents).astype(int) + 1
        texts = [chance.integers(0, 200, length) for length in lengths]
        recipe.write_pool(root / "pools" / name, texts, vocab_size=256, eos=255, **options)


def plain_recipe(root: Path, stages: Plain, *, pools: Mapping[str, Plain], **top: Any) -> Plain:
    """A recipe over the pools of a folder."""
    declared = {name: {"path": f"pools/{name}", "block_units": 32, **more} for name, more in pools.items()}
    return {"seed": 7, "pools_root": str(root), "pools": declared, "stages": stages, **top}


TWO_STAGES: Plain = {
    "short": {
        "tokens": 12_000,
        "context": 64,
        "batch": {"ramp": {0: 4, 5000: 6}},
        "chunk": 2_000,
        "slicing": {"stride": 48, "tail": "backfill"},
        "quotas": {"web": "50%", "code": "30%", "maths": "20%"},
    },
    "long": {
        "until": 20_000,
        "context": 128,
        "batch": {"sequences": 4},
        "chunk": 2_500,
        "weights": {"prose": 2, "code": 1},
    },
}


def start(root: Path, stages: Plain = TWO_STAGES, **top: Any) -> Run:
    """A run of three pools, one of them small."""
    top = {"groups": {"prose": ["web", "maths"]}, **top}
    plain = plain_recipe(root, stages, pools={"web": {}, "code": {}, "maths": {}}, **top)
    return recipe.start_run(recipe_from_plain(plain, source="test"), root / "run")


def consume(run: Run, *steps: int) -> None:
    """Checkpoints at some steps."""
    for step in steps:
        run.checkpoint(step)


def whole_audit(path: Path) -> None:
    """A run without a fault, every row worked out again."""
    report = audit_run(path, full=True)
    assert report.ok, report.findings


def read_rows(run: Path) -> list[Plain]:
    """The rows of a ledger."""
    return [json.loads(line) for line in (run / "ledger.jsonl").read_bytes().splitlines()]


def write_rows(run: Path, rows: list[Plain]) -> None:
    """A ledger of rows as they are."""
    (run / "ledger.jsonl").write_bytes(b"".join(canonical(row) + b"\n" for row in rows))


def forge(run: Path, change: Callable[[list[Plain]], None]) -> None:
    """Change rows and do what a careful forger does: every hash, number and manifest is made to fit again."""
    rows = read_rows(run)
    change(rows)
    previous, last = None, None
    for number, row in enumerate(rows):
        if row["kind"] == "checkpoint":
            last = _forged_manifest(run, row, last, {"row": number - 1, "head": previous})
            row["manifest_hash"] = last
        row.pop("hash", None)
        row |= {"row": number, "previous": previous}
        row["hash"] = previous = hash_of(row)
    write_rows(run, rows)
    shutil.copy(manifest_path(run, rows[-1]["manifest"]), run / "manifests" / "latest.yaml")


def _forged_manifest(run: Path, row: Plain, previous: str | None, head: Plain) -> str:
    path = manifest_path(run, row["manifest"])
    value = unseal(path, path.read_bytes())
    del value["hash"]
    value |= {"previous": previous, "ledger": head, "snapshot": row["snapshot"]}
    if value["parent"] is not None and (run / "hashes").is_dir():
        value["parent"]["hash"] = (run / "hashes" / str(value["parent"]["number"])).read_text()
    data = sealed(value)
    path.write_bytes(data)
    (run / "hashes").mkdir(exist_ok=True)
    hashed = seal_of(data)
    (run / "hashes" / str(row["manifest"])).write_text(hashed)
    return hashed


def leaves(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[tuple[str | int, ...], Any]]:
    """Innermost values and where they are."""
    if isinstance(value, dict):
        return [leaf for key in value for leaf in leaves(value[key], (*path, key))]
    if isinstance(value, list):
        return [leaf for index, item in enumerate(value) for leaf in leaves(item, (*path, index))]
    return [(path, value)]
