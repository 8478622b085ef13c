"""What was measured at a step: the trainer's metrics at its checkpoints and those attached later.

Metrics are ``{set: {name: number}}``. A set is what was measured on: an area (``code``, ``chinese``,
``english``, ``maths``), a pool (``pool:NAME``), a fixed short fine-tuning (``sft/short``), or a final
test (``final/NAME``), which stays sealed until a decision is recorded. One metric is ``SET.NAME``.
Numbers named ``labels`` or ``tokens`` say how much of the set was scored: no metric, nothing to be better in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal

from recipe.run.canonical import Plain
from recipe.run.comparing.history import History, Point

SEALED = "final/"
"""How the names of sealed sets begin."""
POOL = "pool:"
"""How the name of a set begins that was measured on text of one pool."""
LOWER_WORDS = ("loss", "perplexity", "ppl", "nll", "bpb", "bpc", "error", "wer", "cer")
"""A metric with one of these words in its name is better when lower; any other when higher."""

AMOUNTS = ("labels", "tokens")
"""What a set states beside its metrics: how much of it was scored."""

Direction = Literal["lower", "higher"]
"""Which way a metric is better."""


def is_sealed(name: str) -> bool:
    """Whether a set stays closed until a decision.

    >>> [is_sealed(name) for name in ("final/code", "Final/x", "finals", "code")]
    [True, True, False, False]
    """
    return name.strip().casefold().startswith(SEALED)


def metrics_at(history: History, step: int) -> Plain:
    """All metrics of a run at a step, sealed ones too; of two values the later one counts.

    Several manifests of one step are about the same weights.
    """
    points = {point.manifest: point for point in history.at(step)}
    told = [
        (point.row, _news(history, before, point))
        for before, point in zip((None, *points.values()), points.values(), strict=False)
    ]
    told += [
        (row.number, row.data["metrics"]) for row in history.said("metrics") if row.data["manifest"] in points
    ]
    merged: dict[str, Plain] = {}
    for _, metrics in sorted(told, key=lambda item: item[0]):
        for name, values in metrics.items():
            merged.setdefault(name, {}).update(values)
    return merged


def _news(history: History, before: Point | None, point: Point) -> dict[str, Plain]:
    """What a manifest says that the one before it, of the same step, did not: a turn's repeats its words."""
    told = history.manifest(point)["metrics"]
    known = history.manifest(before)["metrics"] if before is not None else {}
    news = {
        name: {key: value for key, value in values.items() if known.get(name, {}).get(key) != value}
        for name, values in told.items()
    }
    return {name: values for name, values in news.items() if values}


def better(name: str) -> Direction:
    """Which way a metric is better, by the words of its name.

    >>> [better(name) for name in ("loss", "val_loss", "bpb", "accuracy", "lossless")]
    ['lower', 'lower', 'lower', 'higher', 'higher']
    """
    words = re.split(r"[^a-z]+", name.casefold())
    return "lower" if any(word in LOWER_WORDS for word in words) else "higher"


def exact(value: int | float | str) -> Fraction | None:
    """A recorded number as the decimal it was written as; None where it is not finite.

    >>> exact(2.11) - exact(2.1) == Fraction(1, 100), exact("nan")
    (True, None)
    """
    return None if isinstance(value, str) else Fraction(repr(value))


def without_amounts(metrics: Mapping[str, Plain]) -> dict[str, Plain]:
    """What can be better or worse.

    >>> without_amounts({"code": {"loss": 2.1, "labels": 640}})
    {'code': {'loss': 2.1}}
    """
    return {
        name: {key: value for key, value in values.items() if key not in AMOUNTS}
        for name, values in metrics.items()
    }


def amounts_differ(labels: Sequence[str], metrics: Sequence[Mapping[str, Plain]]) -> Iterator[str]:
    """A sentence for every set of which the runs did not score as much: their numbers are of other text."""
    for name in dict.fromkeys(name for told in metrics for name in told):
        for key in AMOUNTS:
            found = {
                run: told[name][key]
                for run, told in zip(labels, metrics, strict=True)
                if key in told.get(name, {})
            }
            if len(set(found.values())) > 1:
                each = ", ".join(f"{amount} in {run}" for run, amount in found.items())
                yield f"{name}: {key} scored: {each}"


def without_sealed(metrics: Mapping[str, Plain]) -> dict[str, Plain]:
    """The sets that anyone may see."""
    return {name: values for name, values in metrics.items() if not is_sealed(name)}
