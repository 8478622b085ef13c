"""Token files that somebody else made, Megatron's among them, as the layout of a pool."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.pools.card import CARD_NAME
from recipe.pools.foreign.exported import exported_form, exported_marks
from recipe.pools.foreign.finding import find_foreign, several_kinds
from recipe.pools.foreign.form import NOTHING_SAID, Form
from recipe.pools.foreign.layout import Said, open_foreign
from recipe.pools.imported import find_pairs, open_pairs
from recipe.pools.layout import Layout
from recipe.pools.pool import Pool


def imported_layout(place: Path, name: str, said: Said, reopen: Callable[..., Pool]) -> Layout | None:
    """The layout of files that somebody else made; None if there are none.

    Args:
        place: file, folder, prefix or pattern.
        name: of the pool.
        said: what the recipe says of them.
        reopen: opens the pool again on the other side of a pickle.

    Files that `recipe export POOL` wrote have the marks that their manifest states.

    Raises:
        RecipeError: files of several kinds, or that contradict themselves, their manifest, or what is said of
            them.
    """
    form = exported_form(place, said.form)
    pairs, found = find_pairs(place), find_foreign(place, form)
    if pairs and found:
        given = f"Megatron pairs ({pairs[0].name}) and {found[0].kind} ({found[0].path.name})"
        raise several_kinds(place, given, found[0].path)
    if pairs:
        refuse_form(name, said.form, f"{place} holds Megatron pairs, whose index states it")
    elif not found:
        return None
    files = [pair.with_suffix(".bin") for pair in pairs] or [one.path for one in found]
    stated = exported_marks(place, name, files, said.marks)
    eos, bos = said.marks if stated is None else (stated.eos, stated.bos)
    if pairs:
        layout = open_pairs(place, pairs, eos=eos, bos=bos, reopen=reopen)
    else:
        layout = open_foreign(place, found, Said(form, (eos, bos)), partial(reopen, form=said.form))
    if stated is None:
        return layout
    return replace(layout, bos_stored=stated.bos_stored, eos_stored=stated.eos_stored, declared=said.marks)


def is_imported(path: Path, form: Form = NOTHING_SAID) -> bool:
    """Whether token files lie there that somebody else made."""
    if (path / CARD_NAME).is_file():
        return False
    return bool(find_pairs(path) or find_foreign(path, exported_form(path, form)))


def refuse_form(name: str, form: Form, why: str) -> None:
    """Refuse words for files that say all of it themselves."""
    said = {field.name: getattr(form, field.name) for field in fields(form)}
    problems = [
        Problem(f"pools.{name}.{key}", str(value), f"no {key}: {why}", f"leave {key} out")
        for key, value in said.items()
        if value != getattr(NOTHING_SAID, key)
    ]
    if problems:
        raise RecipeError(f"pool {name}", problems)
