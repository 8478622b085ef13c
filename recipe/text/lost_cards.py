"""What is still known of a pool whose card was lost: by its tokenizer, and by what `prepare` wrote down."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from recipe.errors import RecipeError
from recipe.pools.beside import RECORD_NAME, REMADE
from recipe.pools.card import json_object
from recipe.pools.reasons import DUPLICATE, EMPTY, OTHER_SPLIT
from recipe.pools.refingerprint import Known
from recipe.text.preparation import preparation_key
from recipe.text.tokenizers import Tokenizer


def known_by(folder: Path, tokenizer: Tokenizer) -> Known:
    """What the tokenizer and the record of a preparation say of a pool.

    Raises:
        RecipeError: the record says that another tokenizer made it.
    """
    record = json_object(folder / RECORD_NAME)
    made_by = record.get("settings", {}).get("tokenizer")
    found = tokenizer.fingerprint()
    if made_by not in (None, found):
        raise RecipeError.single(
            str(folder), "--tokenizer", given=f"{tokenizer.name}: tokenizer {found}",
            expected=f"tokenizer {made_by}, as {RECORD_NAME} says", fix="name the one that made the pool",
        )  # fmt: skip
    return Known(
        vocab_size=tokenizer.vocab_size,
        eos=tokenizer.eos,
        tokenizer=found,
        tokenizer_name=tokenizer.name,
        **_prepared(record),
    )


def _prepared(record: dict[str, Any]) -> dict[str, Any]:
    """Seed, order, what was left out and where it came from; what another pool gave is not known any more."""
    if not {"settings", "inputs", "read"} <= record.keys():
        return {"source": {REMADE: "the card was lost; of the contents alone"}}
    settings, inputs, read = record["settings"], record["inputs"], record["read"]
    timeless = [{key: value for key, value in one.items() if key != "mtime_ns"} for one in inputs]
    files = {"files": len(inputs)} if all("name" in one for one in inputs) else dict(inputs[0])
    empty = {EMPTY: read[EMPTY]} if read.get(EMPTY) else {}
    others = {key: read[key] for key in (DUPLICATE, OTHER_SPLIT) if read.get(key)}
    return {
        "seed": settings.get("seed"),
        "shuffled": "extends" not in settings,
        "dropped": {**empty, **dict(sorted(read.get("quarantined", {}).items())), **others},
        "source": {
            "prepared": preparation_key(settings, timeless),
            **files,
            "read": read,
            REMADE: f"the card was lost; of the contents and {RECORD_NAME}",
        },
    }
