"""Where a run comes from: weights from elsewhere, or another run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from recipe.config.identity import in_short
from recipe.report.branches import control_lines
from recipe.report.figures import amount

Plain = Mapping[str, Any]


def start_lines(plain: Plain) -> Iterator[str]:
    """Lines on ``prior`` and ``parent`` of a run, as its status states them."""
    parent = plain.get("parent")
    if parent is not None:
        data = "" if parent["data"] == "continue" else ", its data from the beginning"
        yield f"branch of {parent['run']}, manifest {parent['manifest']} (step {parent['step']:,}){data}"
        for line in in_short(parent["differs"]):
            yield f"  {line}"
        yield from control_lines(parent)
    if plain.get("prior") is not None:
        yield prior_line(plain["prior"])


def prior_line(prior: Plain) -> str:
    """Weights from elsewhere, and the tokens they have seen: said apart, for they are in no sum.

    >>> prior_line({"weights": "org/model", "revision": "a1", "tokenizer": None, "prior_tokens": 18 * 10**12})
    'started from org/model (revision a1): 18T tokens before the start, in no number here'
    """
    marks = [f"{key} {prior[key]}" for key in ("revision", "tokenizer") if prior[key] is not None]
    areas = prior.get("prior")
    apart = ""
    if isinstance(areas, Mapping):
        apart = f" ({', '.join(f'{name} {amount(tokens)}' for name, tokens in areas.items())})"
    told = f" ({', '.join(marks)})" if marks else ""
    tokens = f"{amount(prior['prior_tokens'])} tokens before the start{apart}, in no number here"
    return f"started from {prior['weights']}{told}: {tokens}"


def policy_line(target: str) -> str:
    """What a policy does where nothing is trained."""
    return (
        f"policy {target}: writing files trains nothing, so nobody gives it losses and the shares stay as "
        "stated; it acts through run.consult in a trainer"
    )
