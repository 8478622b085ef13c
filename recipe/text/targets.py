"""The pools that a preparation makes: where each goes, what it depends on, what is there already."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.errors import ContentError, Problem, RecipeError
from recipe.pools.adopting import check_extends
from recipe.pools.beside import RECORD_NAME
from recipe.pools.card import CARD_NAME, json_object
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.settings import PoolSettings
from recipe.pools.split_record import check_others, split_at
from recipe.pools.splits import SPLIT, Split
from recipe.pools.workplace import is_used, move_whole, refuse_inside, tidy
from recipe.text.inputs import Input
from recipe.text.preparation import PrepareOptions, differences, settings_of
from recipe.text.tokenizers import Tokenizer

_OPTIONS = ("tokenizer", "seed", "part_tokens", "repeats", "duplicates", "extends")
_DERIVED = ("kind", "group")
"""What is said of a file and comes from the options as well."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """One pool of a preparation."""

    path: Path
    split: int = 0
    """Its number among the splits."""
    ending: str = ""
    """What tells its files between the passes apart from those of other splits."""
    extends: Pool | None
    settings: Mapping[str, Any]
    """Everything but the inputs that decides its bytes."""

    def place(self, spill: Path) -> Path:
        """Where it is written: not over what is there; of a split, beside it until all pools are whole."""
        return self._new(spill) if self.ending or is_used(self.path) else self.path

    def is_made(self, spill: Path) -> bool:
        """Whether it is whole in ``spill``, where all was made from the same, and has to be moved only."""
        return self._new(spill).exists()

    def put(self, spill: Path) -> Pool:
        """The pool, in its place: what is there makes room."""
        if self.is_made(spill):
            if is_used(self.path):
                self.path.rename(spill / f"old{self.ending}")
            self.path.parent.mkdir(parents=True, exist_ok=True)
            move_whole(self._new(spill), self.path)
        return open_pool(self.path, self.path.name)

    def _new(self, spill: Path) -> Path:
        return spill / f"new{self.ending}"

    @contextmanager
    def named(self) -> Iterator[None]:
        """Faults of what it would hold are told under its own name, wherever it is written."""
        try:
            yield
        except ContentError as error:
            raise ContentError(str(self.path), error.problems) from error

    def restore(self, spill: Path) -> None:
        """Put the old pool back where a replacement was cut between its two renames."""
        old = spill / f"old{self.ending}"
        if old.exists() and not self.path.exists():
            old.rename(self.path)
        elif old.exists():
            shutil.rmtree(old)

    def existing(self, source: Input, *, overwrite: bool) -> Pool | None:
        """The pool that is there if it was made from the same; None: nothing there, or to be replaced.

        Raises:
            RecipeError: something else is there.
        """
        if not is_used(self.path):
            return None
        tidy(self.path)
        record = json_object(self.path / RECORD_NAME)
        if not (self.path / CARD_NAME).is_file():
            raise refused(
                self.path,
                "no pool",
                "choose another folder: what is no pool is never replaced, nor by --overwrite",
            )
        found = [
            Problem(_option(key), new, f"{old} (the pool that is there)", "--overwrite, or another folder")
            for key, old, new in differences(record.get("settings", {}), self.settings)
        ]
        if record:
            inputs = _as_read_now(record["inputs"], source) if found else record["inputs"]
            changed = source.is_unchanged(inputs)
            found += [
                Problem(name, "changed, new or gone", "as in the pool", "--overwrite, or another folder")
                for name in changed[:20]
            ]
        if record and not found:
            return open_pool(self.path, self.path.name)
        if overwrite:
            return None
        if not record:
            raise refused(self.path, "a pool that prepare did not make", "--overwrite, or another folder")
        raise RecipeError(f"{self.path} was prepared from something else", found)


def _option(key: str) -> str:
    """The option that a setting comes from; keys that come from no option stay.

    >>> _option("read.tag_keys"), _option("seed"), _option("cleaning_version")
    ('--tag-key', '--seed', 'cleaning_version')
    """
    name = key.removeprefix("read.")
    if not key.startswith("read.") and name not in _OPTIONS:
        return key
    return f"--{name.replace('tag_keys', 'tag_key').replace('_', '-')}"


def _as_read_now(inputs: Sequence[Mapping[str, Any]], source: Input) -> list[dict[str, Any]]:
    """Files as the pool was made from them, but with the kinds and groups that other options gave them."""
    now = {state.get("name"): state for state in source.state()}
    return [
        {**old, **{key: now[old["name"]][key] for key in _DERIVED if old.get("name") in now and key in old}}
        for old in inputs
    ]


def targets_of(out: Path, tokenizer: Tokenizer, options: PrepareOptions) -> list[Target]:
    """The pool at ``out``, or one in it for each split.

    Raises:
        RecipeError: the folder is inside a pool, or what is extended has other ids, marks, another tokenizer,
            or another split.
    """
    refuse_inside(out.parent)
    split, fingerprint = options.split, tokenizer.fingerprint()
    names = [None] if split is None else list(split.names)
    if split is not None and (out / CARD_NAME).exists():
        raise refused(out, "a pool", "choose another folder: splits are pools in a folder of their own")
    if split is not None:
        check_others(out, split)
    if options.extends is not None:
        _check_split_folder(options.extends, split)
    found = []
    for index, name in enumerate(names):
        path = out if name is None else out / name
        extends = None
        if options.extends is not None:
            extends = open_pool(options.extends / (name or ""), path.name)
            made_by = {"tokenizer": fingerprint, "tokenizer_name": tokenizer.name}
            marks = {"vocab_size": tokenizer.vocab_size, "eos": tokenizer.eos}
            check_extends(extends, PoolSettings(**marks, **made_by), path)  # type: ignore[arg-type]
            check_split(extends, split, name)
        ending = "" if name is None else f"-{index}"
        settings = settings_of(tokenizer, options, extends, name)
        found.append(Target(path=path, split=index, ending=ending, extends=extends, settings=settings))
    return found


def _check_split_folder(extends: Path, split: Split | None) -> None:
    """The folder of a split is extended by the same split: texts go where its rule says.

    Raises:
        RecipeError: another split was named, or none.
    """
    said = split_at(extends)
    if said is None or (extends / CARD_NAME).exists():
        return
    wanted = {} if split is None else split.to_plain()
    if {key: wanted.get(key) for key in said} != said:
        raise RecipeError.single(
            "prepare", str(extends), given=f"--split {_shares(wanted)}" if wanted else "no --split",
            expected=f"one pool; this is the folder of a split: {', '.join(said['shares'])}",
            fix=f"repeat the split that it was made with: {_as_typed(said)}",
        )  # fmt: skip


def check_split(extends: Pool, split: Split | None, name: str | None) -> None:
    """Refuse to extend a split by documents that are split otherwise, or not at all.

    Raises:
        RecipeError: shares, salt or name are others than those of the pool.
    """
    said = dict(extends.card.source.get(SPLIT, {}))
    said.pop("documents", None)
    wanted = {} if split is None else {**split.to_plain(), "name": name}
    if said != wanted:
        raise RecipeError.single(
            "prepare", str(extends.path), given=_split_text(wanted), expected=_split_text(said),
            fix=_same_split(extends, said),
        )  # fmt: skip


def _same_split(extends: Pool, said: Mapping[str, Any]) -> str:
    """How to extend a pool as it was made."""
    if not said:
        return "leave --split out: the pool was made without one"
    return f"extend all sides together: --extends {extends.path.parent} {_as_typed(said)}"


def _as_typed(said: Mapping[str, Any]) -> str:
    """The options that make a split."""
    return f"--split {_shares(said)}" + (f" --split-salt {said['salt']}" if said["salt"] else "")


def _shares(said: Mapping[str, Any]) -> str:
    return ",".join(f"{name}={share}" for name, share in said["shares"].items())


def _split_text(said: Mapping[str, Any]) -> str:
    return f"{said['name']} of {_shares(said)}, salt {said['salt']}" if said else "no split"


def refused(path: Path, given: str, fix: str) -> RecipeError:
    """What is there is not what may be written over."""
    return RecipeError.single(
        "prepare", str(path), given=given, expected="a new folder, or the same pool", fix=fix
    )
