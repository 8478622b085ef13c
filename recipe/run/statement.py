"""What a manifest says: the run, the trainer's own words, and the account at the checkpoint."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import Any
from unicodedata import category

import numpy as np

from recipe.config import Recipe, fingerprint, recipe_to_plain
from recipe.maths.order import ORDER_VERSION
from recipe.mixing.simulated import part_of
from recipe.mixing.snapshot import PoolState, Snapshot
from recipe.mixing.withdrawals import Withdrawals
from recipe.run.accounts import Accounts
from recipe.run.canonical import Plain, plain_number
from recipe.run.holdings import Holding, Holdings
from recipe.run.manifest import FORMAT
from recipe.run.turns import TurnAt

Metrics = Mapping[str, Mapping[str, Any]]
LONGEST_TEXT = 4096
"""Characters of a URI, a digest or a metric's name."""
_UNTOLD = ("Cc", "Cs", "Zl", "Zp")
"""Unicode categories refused: control characters, half characters, line and paragraph ends."""


@dataclass(frozen=True, kw_only=True)
class Statement:
    """What the trainer says at a checkpoint."""

    uri: str | None = None
    digest: str | None = None
    gpu_hours: int | float | str | None = None
    metrics: Plain = field(default_factory=dict)

    @classmethod
    def of(cls, *, uri: str | None, digest: str | None, gpu_hours: Any, metrics: Metrics | None) -> Statement:
        """From a trainer's values: numbers may be NumPy's or torch's, what is not finite becomes text.

        Raises:
            ValueError: GPU-hours below zero, metrics that are not ``{set: {name: number}}``, or a text
                that is none or cannot be put on record: too long, with line ends or other control
                characters, or no Unicode.
        """
        hours = None if gpu_hours is None else plain_number(gpu_hours)
        if isinstance(hours, str) or (hours is not None and hours < 0):
            raise ValueError(f"gpu_hours is {gpu_hours!r}; it is the run's total so far, a number >= 0")
        return cls(
            uri=None if uri is None else text_on_record("uri", uri),
            digest=None if digest is None else text_on_record("digest", digest),
            gpu_hours=hours,
            metrics=_plain_metrics({} if metrics is None else metrics),
        )


def _plain_metrics(metrics: object) -> Plain:
    if not isinstance(metrics, Mapping):
        raise ValueError(f"metrics is {metrics!r:.80}; metrics are {{set: {{name: number}}}}")
    plain: Plain = {}
    for name, values in metrics.items():
        if not isinstance(values, Mapping):
            raise ValueError(
                f"metrics[{name!r:.80}] is {values!r:.80}; metrics are {{set: {{name: number}}}}"
            )
        where = f"a name in metrics[{name!r:.80}]"
        numbers = {text_on_record(where, key): plain_number(value) for key, value in values.items()}
        plain[text_on_record("a set of metrics", name)] = numbers
    return plain


def text_on_record(where: str, value: object) -> str:
    """A text that ledger and manifest can hold on one line and give back as it is."""
    if not isinstance(value, str):
        raise ValueError(f"{where} is {value!r:.80}, a {type(value).__name__}; it is a text")
    if len(value) > LONGEST_TEXT:
        raise ValueError(f"{where} has {len(value):,} characters; at most {LONGEST_TEXT:,} are put on record")
    odd = next((sign for sign in value if category(sign) in _UNTOLD), None)
    if odd is not None:
        raise ValueError(f"{where} is {value!r:.80}; {odd!r} in it cannot be put on record")
    return str(value)


@dataclass(frozen=True, kw_only=True)
class Subject:
    """The run that manifests are about."""

    name: str
    recipe: Recipe
    version: int
    """Of the recipe."""
    version_hash: str
    """Of the stored recipe version, as its file states it."""
    holdings: Holdings
    turn: TurnAt
    """The turn from which recipe and pools hold."""
    withdrawn: Withdrawals = field(default_factory=Withdrawals.none)


def software() -> Plain:
    """Versions that matter for reproducing a stream."""
    return {
        "recipe": version("token-recipe"),
        "python": platform.python_version(),
        "numpy": np.__version__,
        "order_version": ORDER_VERSION,
    }


def prior_of(recipe: Recipe) -> Plain | None:
    """Weights from elsewhere that a run starts from, and the tokens they have seen; None without any."""
    start = recipe.start
    if start is None:
        return None
    return {
        "weights": start.weights,
        "revision": start.revision,
        "tokenizer": start.tokenizer,
        "prior": dict(start.prior) if isinstance(start.prior, dict) else start.prior,
        "prior_tokens": start.prior_tokens,
    }


def manifest_plain(subject: Subject, accounts: Accounts, statement: Statement, rest: Plain) -> Plain:
    """The values of a manifest, in the order a person reads them.

    ``rest`` holds number, time, previous, parent, snapshot, stages, warnings, data_changes and ledger.
    """
    snapshot: Snapshot = rest["snapshot"]
    recipe = subject.recipe
    states = dict(zip(accounts.names, snapshot.pools, strict=True))
    replaced = replaced_pools(recipe, rest["data_changes"])
    return {
        "format": FORMAT,
        "run": subject.name,
        "number": rest["number"],
        "time": rest["time"],
        "previous": rest["previous"],
        "parent": rest["parent"],
        "checkpoint": {"step": snapshot.step, "uri": statement.uri, "digest": statement.digest},
        "num_steps": accounts.curriculum.num_steps,
        "positions": snapshot.positions,
        "sequences": snapshot.sequences,
        "gpu_hours": statement.gpu_hours,
        "metrics": statement.metrics,
        "prior": prior_of(recipe),
        "pools": {
            name: _pool(subject.holdings[name], state, recipe, is_replaced=name in replaced)
            for name, state in states.items()
        },
        "stages": rest["stages"],
        "warnings": rest["warnings"],
        "seed": recipe.seed,
        "labels": recipe.labels,
        "count": recipe.count,
        "software": software(),
        "ledger": rest["ledger"],
        "accepted_data_changes": rest["data_changes"],
        "turn": subject.turn.to_plain(),
        **({"withdrawals": subject.withdrawn.to_plain()} if subject.withdrawn.number else {}),
        "recipe": {
            "version": subject.version,
            "fingerprint": fingerprint(recipe),
            "hash": subject.version_hash,
            "resolved": recipe_to_plain(recipe),
        },
        "snapshot": snapshot.to_plain(),
    }


def replaced_pools(recipe: Recipe, changes: Iterable[Mapping[str, Any]]) -> frozenset[str]:
    """Pools whose data was replaced by accepted changes: what they gave is not all of what they hold now.

    A change names a pool as it was called then: a branch may have renamed it since.
    """
    changed = {name for change in changes for name in change["pools"]}
    gone = changed - recipe.pools.keys()
    return frozenset(
        name
        for name, pool in recipe.pools.items()
        if name in changed or (pool.renamed_from is not None and (gone or pool.renamed_from in changed))
    )


def _pool(holding: Holding, state: PoolState, recipe: Recipe, *, is_replaced: bool) -> Plain:
    """A pool so far. Distinct documents are not among it: ``recipe audit`` counts them exactly.

    It was read fresh and dropped tokens over stock times: what a rule leaves out is read past.

    After skips, growth and other seeds the documents begun in the first epoch are not all that were read.
    """
    stock = 0 if is_replaced else part_of(recipe, holding.stock)
    read = state.body - state.overlap + sum(state.dropped.values())
    return {
        **holding.to_plain(),
        "epoch": state.cursor.epoch,
        "epoch_seed": recipe.seed + state.cursor.epoch,
        "epochs_read": f"{read / stock:.4f}" if stock else None,
        "documents_begun": state.documents,
        "documents_begun_in_first_epoch": state.distinct,
        "tokens": {
            "spent": state.spent,
            "owed": state.owed,
            "body": state.body,
            "overlap": state.overlap,
            "special": state.special,
            "padding": state.padding,
            "labels": state.labels,
            **({"separators": state.separators} if state.separators else {}),
        },
        "sequences": state.sequences,
        "dropped": dict(sorted(state.dropped.items())),
    }
