"""The first files of a run: who it is, its recipe, and the first row of its ledger."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field

from recipe.config import Recipe, fingerprint
from recipe.mixing.snapshot import SNAPSHOT_FORMAT, Snapshot
from recipe.mixing.withdrawals import Withdrawals
from recipe.run import folder as folders
from recipe.run import manifest, row, state
from recipe.run.canonical import Plain
from recipe.run.folder import RecipeVersion
from recipe.run.holdings import Holdings, tokenizers
from recipe.run.statement import prior_of, software


@dataclass(frozen=True, kw_only=True)
class Birth:
    """What a run is created with."""

    name: str
    version: RecipeVersion
    """The first one, from the step the run begins at on."""
    holdings: Holdings
    snapshot: Snapshot
    """The state that its steps go on from."""
    turn: Plain = field(default_factory=dict)
    """Of a branch: stage and grid of the stretch that ends where it begins."""
    withdrawn: Withdrawals = field(default_factory=Withdrawals.none)
    """Of a branch: what its parent withdrew; else what its pools had erased."""
    policy: Plain | None = None
    """Of a branch whose policy goes on: its target, what it remembers, and the step of its last answer."""
    parent: Plain | None = None
    """Of a branch: the run and the manifest it starts from, and how it differs."""


def first_files(birth: Birth) -> dict[str, bytes]:
    """Contents of the first files by path in the run's folder; every call is another run."""
    time = row.now()
    run_id = uuid.uuid4().hex
    stored = manifest.sealed(birth.version.to_plain())
    identity = manifest.sealed(
        {
            "format": folders.FORMAT,
            "name": birth.name,
            "id": run_id,
            "created": time,
            "parent": birth.parent,
            "formats": {
                "recipe": folders.FORMAT,
                "ledger": row.FORMAT,
                "manifest": manifest.FORMAT,
                "snapshot": SNAPSHOT_FORMAT,
                "state": state.FORMAT,
            },
            "software": software(),
        }
    )
    start = start_record(birth.version.recipe, birth.holdings)
    created: Plain = {
        "kind": "created",
        "step": birth.snapshot.step,
        "run": birth.name,
        "id": run_id,
        "run_hash": manifest.seal_of(identity),
        "recipe": 1,
        "recipe_hash": manifest.seal_of(stored),
        "recipe_fingerprint": fingerprint(birth.version.recipe),
        "pools": {name: held.to_plain() for name, held in birth.holdings.items()},
        "snapshot": birth.snapshot.to_plain(),
        **birth.turn,
        **({} if birth.parent is None else {"parent": birth.parent}),
        **({} if start is None else {"start": start}),
        **({} if birth.policy is None else {"policy": birth.policy}),
        **({"withdrawals": birth.withdrawn.to_plain()} if birth.withdrawn.number else {}),
    }
    return {
        "run.yaml": identity,
        "recipes/0001.yaml": stored,
        "ledger.jsonl": row.first_line(created, time=time),
    }


def start_record(recipe: Recipe, holdings: Holdings) -> Plain | None:
    """Weights, revision, tokenizer and vocabulary that a run starts from, as one record; None without any.

    What the recipe says, and beside it what the pools show: the content fingerprint of the tokenizer
    they were made with.
    """
    prior = prior_of(recipe)
    if prior is None:
        return None
    marks = sorted(tokenizers(holdings))
    return {
        **prior,
        "vocab_size": recipe.model.vocab_size if recipe.model is not None else None,
        "pools_tokenizer": marks[0] if len(marks) == 1 else None,
    }
