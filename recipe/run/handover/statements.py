"""What a package states: all of it follows from a run's record and its pools, and can be made again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from recipe.config import Recipe, fingerprint, recipe_from_plain, recipe_to_plain
from recipe.mixing.curriculum import Curriculum
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.folder import RunFolder
from recipe.run.handover.data import data_list, pool_folders
from recipe.run.handover.pool_files import inside
from recipe.run.handover.quotas import quota_table
from recipe.run.handover.readme import readmes
from recipe.run.handover.rules import sequence_rules
from recipe.run.handover.trainer import trainer_settings
from recipe.run.ledger import read_tail
from recipe.run.manifest import yaml_bytes
from recipe.run.state import State

FORMAT = 1
INDEX_NAME = "handover.yaml"
RUN = "run"
TOKENIZER, DATA, SEQUENCES, QUOTAS, PROGRAM = (
    "1-tokenizer", "2-data", "3-sequences", "4-quotas", "5-program",
)  # fmt: skip
POOLS = f"{DATA}/pools"
STATE_NAME, VECTORS_NAME = f"{PROGRAM}/state.bin", f"{PROGRAM}/vectors.yaml"


@dataclass(frozen=True, slots=True)
class Subject:
    """What the parts are about: a run as its record has it, and its pools."""

    folder: RunFolder
    state: State
    manifest: Plain | None
    """The last one; None before the first checkpoint."""
    pools: Mapping[str, Pool]

    @property
    def recipe(self) -> Recipe:
        """The recipe in force."""
        return self.state.recipe


def statements(subject: Subject) -> dict[str, bytes]:
    """The parts that follow from record and pools alone, by file: whoever has both can make them again."""
    recipe, pools = subject.recipe, subject.pools
    plains = {
        f"{DATA}/data.yaml": data_list(recipe, pools),
        f"{SEQUENCES}/rules.yaml": sequence_rules(recipe, pools),
        f"{SEQUENCES}/trainer.yaml": trainer_settings(recipe),
        f"{QUOTAS}/quotas.yaml": quota_table(subject.folder, recipe, subject.manifest),
        f"{PROGRAM}/reading.yaml": _reading(subject),
    }
    files = {name: yaml_bytes(plain) for name, plain in plains.items()}
    return {**files, STATE_NAME: portable_state(subject.state)}


def portable_state(state: State) -> bytes:
    """The state without paths of this machine: every pool is named by its folder below a root of pools."""
    folders = pool_folders(state.recipe)
    plain = recipe_to_plain(state.recipe)
    plain.pop("pools_root", None)
    for name, folder in folders.items():
        if state.recipe.pools[name].of is None:
            plain["pools"][name]["path"] = folder
    return replace(
        state,
        recipe=recipe_from_plain(plain, source="the state"),
        holdings={name: replace(held, path=folders[name]) for name, held in state.holdings.items()},
    ).to_bytes()


def _reading(subject: Subject) -> Plain:
    """Seeds, and where the reading of every pool stands."""
    state, recipe = subject.state, subject.recipe
    places = zip(recipe.pools, state.snapshot.to_plain()["pools"], strict=True)
    return {
        "step": state.snapshot.step,
        "seed": recipe.seed,
        "pools": {name: {"epoch_seed": recipe.seed + plain["cursor"][0], **plain} for name, plain in places},
        "words": {
            "cursor": "epoch, block, stage (-1: the block was not begun), sequence of the block",
            "epoch_seed": "base seed + epoch; orders are keyed on both and on the pool's name",
        },
    }


def front_pages(subject: Subject, tokenizer: Plain, program: Plain, holds: Plain) -> dict[str, bytes]:
    """``handover.yaml`` and what a person reads first; they follow from everything else."""
    index = _index(subject, tokenizer, program, holds)
    texts = readmes(index, subject.recipe, _facts(subject))
    return {INDEX_NAME: yaml_bytes(index), **{name: text.encode() for name, text in texts.items()}}


def _index(subject: Subject, tokenizer: Plain, program: Plain, holds: Plain) -> Plain:
    state, manifest = subject.state, subject.manifest
    last = read_tail(subject.folder.ledger).last
    return {
        "format": FORMAT,
        "run": state.run,
        "step": state.snapshot.step,
        "positions": state.snapshot.positions,
        "manifest": None if manifest is None else manifest["number"],
        "manifest_hash": None if manifest is None else manifest["hash"],
        "recipe": {"version": state.version, "fingerprint": fingerprint(subject.recipe)},
        "ledger": {"rows": last.number + 1, "head": last.data["hash"]},
        "tokenizer": tokenizer["fingerprint"],
        "program": {"wheel": program["wheel"], "source_hash": program["source_hash"]},
        "holds": holds,
        "pools": {
            name: {
                "folder": folder,
                "fingerprint": state.holdings[name].fingerprint,
                "inside": inside(subject.pools[name], tokens=holds["tokens"]),
            }
            for name, folder in pool_folders(subject.recipe).items()
        },
    }


def _facts(subject: Subject) -> Plain:
    """What the README tells of where the run stands."""
    curriculum, snapshot = Curriculum.from_recipe(subject.recipe), subject.state.snapshot
    spent = {name: pool.spent for name, pool in zip(subject.recipe.pools, snapshot.pools, strict=True)}
    return {
        "stage": curriculum.stages[snapshot.stage].name,
        "num_steps": curriculum.num_steps,
        "spent": spent,
    }
