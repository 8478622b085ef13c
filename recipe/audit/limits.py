"""What an audit cannot prove, said with every answer."""

from __future__ import annotations

from recipe.audit.coverage import Coverage


def limits(checked: Coverage) -> tuple[str, ...]:
    """The limits of one audit, in sentences.

    >>> len(limits(Coverage(rows=3)))
    4
    """
    return tuple(filter(None, (_rewriting(checked), _words(), _use(checked), *_left_out(checked))))


def _rewriting(checked: Coverage) -> str:
    if checked.head:
        return (
            "Rows after the published one could still be replaced, with every hash made anew, or cut off: "
            "publish `recipe seal` again after each checkpoint that matters."
        )
    return (
        "Whoever owns the folder can compute another history, true in itself, and write all of it anew, or "
        "cut off the end with its manifests: only a hash that was published before tells (`recipe seal`, "
        "then `recipe audit --head HASH`)."
    )


def _words() -> str:
    return (
        "The trainer's own words (URI, digest, metrics, GPU-hours), reasons, names of those who approved, "
        "decisions, what a policy remembers, the recipe as it was typed (beside the resolved one), versions "
        "of software, places of pools, and times are as they were written: nothing computes them again."
    )


def _use(checked: Coverage) -> str:
    if checked.served:
        return (
            "Batch digests tell what the trainer was handed in the steps compared, by its own program; "
            "they cannot tell that it learned from it, and of other steps only what they would be."
        )
    return (
        "The record tells what the recipe serves at each step, not that the trainer used it: "
        "batch digests, if the run kept any, tell what it was handed (`--served`)."
    )


def _left_out(checked: Coverage) -> list[str]:
    said = []
    if checked.chain_only:
        said.append(
            "Numbers were not looked at: a forger who makes every hash anew passes a check of the chain."
        )
    elif checked.sample_seed is not None or checked.outside or checked.unavailable:
        said.append("Rows that were not computed again were only checked for their sums and their place.")
    if checked.metadata_only:
        said.append(
            "Token files were not opened: how long documents are was compared, what they hold was not."
        )
    elif not checked.chain_only and _partly(checked):
        said.append("Token files were compared with their hashes only as far as is said above.")
    return said


def _partly(checked: Coverage) -> bool:
    return not checked.pools or any(not how.startswith("all files") for how in checked.pools.values())
