"""Metrics that come later than their checkpoint: evaluations, and the result of a short fine-tuning."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.run.canonical import Plain
from recipe.run.comparing.history import History, read_history
from recipe.run.comparing.measured import POOL, SEALED, is_sealed, metrics_at
from recipe.run.folder import RunFolder
from recipe.run.ledger import Tail
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.row import Row
from recipe.run.sayings import counted_checkpoint, say
from recipe.run.statement import Metrics, Statement

_KINDS = (SEALED, "sft/")
"""How names of sets begin that need a name behind it."""


def attach_metrics(
    path: str | Path, metrics: Metrics, manifest: int | None = None, *, step: int | None = None
) -> int:
    """Put metrics on record that belong to a checkpoint written before.

    The run may be open and training meanwhile. Of two values of one metric the later one counts. A set
    is an area (``code``), a pool (``pool:NAME``), a fixed short fine-tuning (``sft/short``), or a final
    test (``final/NAME``): that one is not shown until a decision is recorded.

    Args:
        path: the run's folder.
        metrics: ``{set: {name: number}}``; what is not finite is recorded as the text ``nan`` or ``inf``.
        manifest: which checkpoint; default: the run's last.
        step: the checkpoint of a step, in place of a manifest's number.

    Returns:
        The number of the manifest that the metrics belong to.

    Raises:
        RecipeError: no run, no such checkpoint, a pool that the run does not have, somebody else is
            writing, or the system refuses. Nothing was written then.
        ValueError: metrics that are none, a set or a metric without a name, or both ``manifest`` and
            ``step``.
    """
    if manifest is not None and step is not None:
        raise ValueError(f"manifest {manifest} and step {step}: give one of them")
    plain = Statement.of(uri=None, digest=None, gpu_hours=None, metrics=metrics).metrics
    if not plain or not all(plain.values()):
        raise ValueError(f"metrics is {metrics!r:.80}; metrics are {{set: {{name: number}}}}, at least one")
    _check_names(plain)
    return _attached(RunFolder(Path(path)), plain, manifest, step)


@dataclass(frozen=True, kw_only=True)
class Attached:
    """Metrics that were put on record, and what somebody who mistyped one would want to know."""

    manifest: int
    replaced: dict[str, int | float | str | None]
    """Earlier values of that checkpoint which no longer count, by ``SET.NAME``; None for a sealed one."""
    new_sets: tuple[str, ...]
    """Sets that nothing of the run had before, where it had others."""
    known_sets: tuple[str, ...]
    """Those it had."""
    not_finite: dict[str, str]
    """Values that are no finite numbers, by ``SET.NAME``; those of sealed sets are left out."""


def attach_and_tell(
    path: str | Path, metrics: Metrics, manifest: int | None = None, *, step: int | None = None
) -> Attached:
    """Attach metrics as :func:`attach_metrics` does, and say what that changed.

    Raises:
        RecipeError, ValueError: as there.
    """
    RunFolder(Path(path)).check()
    before = read_history(path)
    number = attach_metrics(path, metrics, manifest, step=step)
    known = tuple(_sets(before))
    points = [point for point in before.points if point.manifest == number]
    old = metrics_at(before, points[0].step) if points else {}
    given = {(name, key): value for name, values in metrics.items() for key, value in values.items()}
    return Attached(
        manifest=number,
        replaced={
            f"{name}.{key}": None if is_sealed(name) else old[name][key]
            for name, key in given
            if key in old.get(name, {})
        },
        new_sets=tuple(name for name in metrics if known and name not in known),
        known_sets=known,
        not_finite={
            f"{name}.{key}": str(float(value))
            for (name, key), value in given.items()
            if not is_sealed(name) and not math.isfinite(float(value))
        },
    )


def _sets(history: History) -> Iterator[str]:
    """The sets that a run has metrics of, each once, in order."""
    told = [name for point in history.points for name in history.manifest(point)["metrics"]]
    told += [name for row in history.said("metrics") for name in row.data["metrics"]]
    yield from dict.fromkeys(told)


def _attached(folder: RunFolder, plain: Plain, manifest: int | None, step: int | None) -> int:
    folder.check()

    def compose(tail: Tail) -> Plain:
        row = counted_checkpoint(folder, tail, manifest, step)
        _check_pools(folder, row, plain)
        return {
            "kind": "metrics",
            "manifest": row.data["manifest"],
            "manifest_hash": row.data["manifest_hash"],
            "metrics": plain,
        }

    return int(say(folder, compose).data["manifest"])


def _check_names(metrics: Plain) -> None:
    """Raise ValueError for sets and metrics without a name of their own."""
    for name, values in metrics.items():
        kind = next((kind for kind in _KINDS if name.strip().casefold() == kind), None)
        if kind is not None or not name.strip():
            raise ValueError(f"a set is called {name!r:.80}; it needs a name, such as {kind or ''}code")
        if not all(key.strip() for key in values):
            raise ValueError(f"a metric of set {name!r:.80} has no name; write it like loss")


def _check_pools(folder: RunFolder, checkpoint: Row, metrics: Plain) -> None:
    """Raise RecipeError for sets of pools that the run does not have."""
    named = [name for name in metrics if name.startswith(POOL)]
    if not named:
        return
    path = manifest_path(folder.path, int(checkpoint.data["manifest"]))
    pools = list(read_manifest(path, checkpoint.data["manifest_hash"])["pools"])
    problems = []
    for name in named:
        pool = name.removeprefix(POOL)
        if pool not in pools:
            near = get_close_matches(pool, pools, n=1)
            fix = f"did you mean '{POOL}{near[0]}'?" if near else "name a pool, or call the set otherwise"
            problems.append(Problem(name, pool, f"a pool of the run: {', '.join(pools)}", fix))
    if problems:
        raise RecipeError(f"{folder.path}: metrics of pools it does not have", problems)
