"""Exporting: the stream into files of a format, each with a manifest; going on where it stopped."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from recipe.config import fingerprint
from recipe.integrations.exporting.formats import BYTES_PER_POSITION, WRITERS, WouldLoseError
from recipe.integrations.exporting.layout import Shard, Wanted, shards
from recipe.integrations.exporting.rows import counts_of
from recipe.integrations.exporting.subject import Subject
from recipe.integrations.exporting.target import MANIFESTS, Plain, Target

FORMAT_VERSION = 1
LABELS = {
    "shifted": "labels[i] belongs to the logits at i; -100 has none",
    "inputs": "labels[i] is the id at i, for models that shift themselves; -100 has none",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Done:
    """What an export left."""

    path: Path
    format: str
    steps: tuple[int, int]
    files: int
    written: int
    """Stretches of steps that were written now; the others were there as they should be."""
    kept: int
    sequences: int
    bytes: int
    lost: dict[str, int]
    """What the format could not hold, by reason."""
    sha256: str
    """Of the index, which answers for every byte."""

    def to_plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {"path": str(self.path), "steps": list(self.steps)}


def expected_bytes(target: Target, wanted: Wanted, found: Sequence[Shard]) -> int:
    """About how many bytes are still to be written."""
    left = [shard for shard in found if not (target.path / MANIFESTS / f"{shard.stem}.json").is_file()]
    return sum(shard.rows * shard.context for shard in left) * BYTES_PER_POSITION[wanted.format]


def export(
    subject: Subject,
    folder: str | Path,
    wanted: Wanted,
    watch: Callable[[int, int], None] = lambda at, of: None,
) -> Done:
    """Write what is wanted; files that are there with the right digest stay as they are.

    Args:
        subject: from :func:`of_run` or :func:`of_recipe`.
        folder: where; what an export of something else left is refused, other files are left alone.
        wanted: format, steps and dealing.
        watch: called with stretches done, and how many there are.

    Raises:
        RecipeError: no such steps, no room, another export in the folder, or a format that would lose
            something without ``lossy``. Refused, it leaves nothing of its own; where the disk is full, the
            files that are whole stay to be gone on from.
    """
    target, found = Target(Path(folder)), shards(subject, wanted)
    with target.held():
        need, free = expected_bytes(target, wanted, found), shutil.disk_usage(target.path).free
        if need > free:
            raise target.refused(
                f"{free:,} bytes free", f"about {need:,} bytes for what is left", "choose a larger disk"
            )
        statement = _statement(subject, wanted, found)
        target.begin(statement)
        manifests, written = list[Plain](), list[Plain]()
        for number, shard in enumerate(found, 1):
            manifest = target.manifest(shard.stem, _identity(subject, shard, wanted))
            if manifest is None:
                try:
                    manifest = _write(target, subject, shard, wanted)
                except WouldLoseError:
                    target.take_back(written)
                    raise
                written.append(manifest)
            manifests.append(manifest)
            watch(number, len(found))
        return _done(target, statement, manifests, len(written))


def _write(target: Target, subject: Subject, shard: Shard, wanted: Wanted) -> Plain:
    with target.workplace() as folder:
        facts = WRITERS[wanted.format](folder, shard, wanted)
        about = _identity(subject, shard, wanted) | facts | {"tokens": counts_of(shard, wanted)}
        return target.publish(folder, shard.stem, about)


def _identity(subject: Subject, shard: Shard, wanted: Wanted) -> Plain:
    """What makes a file what it is."""
    recipe = shard.stream.recipe
    return {
        "version": FORMAT_VERSION,
        "run": subject.name,
        "fingerprint": fingerprint(recipe),
        "pool_fingerprints": {pool.name: pool.fingerprint for pool in shard.stream.ground.pools},
        "format": wanted.format,
        "steps": [shard.first, shard.stop],
        "stage": shard.stage,
        "context": shard.context,
        "rows": shard.rows,
        "dealing": {"rank": wanted.dp_rank, "size": wanted.dp_size, "micro_batch": wanted.micro_batch},
        "labels": LABELS[recipe.labels],
    }


def _statement(subject: Subject, wanted: Wanted, found: Sequence[Shard]) -> Plain:
    steps = [found[0].first, found[-1].stop] if found else [0, 0]
    recipes = list(dict.fromkeys(fingerprint(shard.stream.recipe) for shard in found))
    return (
        {"version": FORMAT_VERSION, "run": subject.name, "recipes": recipes}
        | wanted.to_plain()
        | {"steps": steps}
    )


def _done(target: Target, statement: Plain, manifests: Sequence[Plain], written: int) -> Done:
    lost: dict[str, int] = {}
    for manifest in manifests:
        for reason, count in manifest.get("lost", {}).items():
            lost[reason] = lost.get(reason, 0) + count
    files = [file for manifest in manifests for file in manifest["files"].values()]
    first, stop = statement["steps"]
    return Done(
        path=target.path, format=statement["format"], steps=(first, stop), files=len(files), written=written,
        kept=len(manifests) - written, sequences=sum(manifest["rows"] for manifest in manifests),
        bytes=sum(file["bytes"] for file in files), lost=lost, sha256=target.close(statement, manifests),
    )  # fmt: skip
