"""Runs to hand over: pools prepared from text, and one run to which everything happened."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import recipe
from recipe.config import recipe_from_plain
from recipe.run.changing.amend import amend_run
from recipe.run.changing.approval import Approval
from recipe.run.changing.skip import skip_run
from recipe.run.changing.withdraw import Ticket, withdraw_run
from recipe.text.preparation import PrepareOptions
from recipe.text.prepare import prepare_pool
from recipe.text.tokenizers import load_tokenizer

WORDS = (
    "the",
    "quick",
    "brown",
    "fox",
    "jumps",
    "over",
    "保留重复元素。",
    "lazy",
    "dogs",
    "3.14",
    "café",
    "😀",
    "",
)


def write_texts(folder: Path, name: str, count: int) -> Path:
    """JSON lines of texts of various lengths, each with an id."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.jsonl"
    lines = [
        json.dumps({"id": f"{name}-{n}", "text": " ".join(WORDS[(n * k) % 13] for k in range(1, 3 + n % 23))})
        for n in range(count)
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def prepared(root: Path) -> Path:
    """Two pools below ``root``, made from texts there."""
    for name, count in (("en", 90), ("zh", 60)):
        source = write_texts(root / "texts", name, count)
        options = PrepareOptions(workers=1)
        prepare_pool([source], root / "pools" / name, load_tokenizer("bytes"), options).close()
    return root


def plain_recipe(root: Path, **changes: Any) -> dict[str, Any]:
    """Two stages, the second with other rules, so that a block is cut anew."""
    return {
        "seed": 11,
        "max_epochs": 99,
        "tokenizer": "bytes",
        "pools_root": str(root),
        "pools": {"en": {"path": "pools/en", "block_units": 32}, "zh": {"path": "pools/zh"}},
        "stages": {
            "short": {
                "steps": 12,
                "context": 64,
                "batch": {"sequences": 4},
                "slicing": {"stride": 48},
                "quotas": {"en": "61.6%", "zh": "38.4%"},
            },
            "long": {"steps": 8, "context": 96, "batch": {"sequences": 3}, "weights": {"en": 1, "zh": 2}},
        },
        **changes,
    }


def plain_run(root: Path, **changes: Any) -> Path:
    """A run with a few checkpoints, not at its end."""
    made = recipe_from_plain(plain_recipe(root, **changes), source="test")
    with recipe.start_run(made, root / "runs" / "plain") as run:
        run.checkpoint(5, uri="weights/5", gpu_hours=1.5, metrics={"validation": {"loss": 2.5}})
        run.checkpoint(14)
    return root / "runs" / "plain"


def eventful_run(root: Path) -> Path:
    """A run that was amended, rewound, skipped, and lost documents."""
    path = root / "runs" / "eventful"
    with recipe.start_run(recipe_from_plain(plain_recipe(root), source="test"), path) as run:
        run.checkpoint(3)
        run.checkpoint(6)
    amend_run(
        path,
        ["stages.short.quotas.zh=50%"],
        from_pool="en",
        approval=Approval(reason="more of it", approved_by="A"),
    )
    with recipe.open_run(path) as run:
        run.checkpoint(8)
        run.checkpoint(10)
    skip_run(path, (8, 10), reason="a loss spike")
    withdraw_run(path, ["en-3", "zh-7"], ticket=Ticket(reason="take-down"))
    with recipe.open_run(path) as run:
        run.checkpoint(13)
        run.checkpoint(15)
    with recipe.open_run(path, step=13) as run:
        run.checkpoint(16)
    return path


def contents(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def names(folder: Path) -> list[str]:
    """What lies in a folder, hidden names too."""
    return sorted(path.name for path in folder.iterdir())


def copied(folder: Path, to: Path) -> Path:
    """A copy that may be spoilt."""
    return Path(shutil.copytree(folder, to, symlinks=True))


def resummed(folder: Path) -> None:
    """Make the checksums fit again, as a careful forger does."""
    from recipe.run.handover.staging import SUMS_NAME, sha256_of

    lines = [
        f"{sha256_of(folder / name)}  {name}\n" for name in sorted(contents(folder)) if name != SUMS_NAME
    ]
    (folder / SUMS_NAME).write_text("".join(lines), encoding="utf-8")


def leaves(plain: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], Any]]:
    """Innermost values and where they are."""
    if isinstance(plain, dict):
        for key, value in plain.items():
            yield from leaves(value, (*path, key))
    elif isinstance(plain, list):
        for index, value in enumerate(plain):
            yield from leaves(value, (*path, index))
    else:
        yield path, plain
