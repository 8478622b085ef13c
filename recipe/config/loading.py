"""A recipe by name or path: Hydra composes it, overrides change it, OmegaConf resolves it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from recipe.config.building import build_recipe
from recipe.config.change import Change
from recipe.config.lost_sets import lost_sets, with_stand_ins
from recipe.config.naming import folder_name
from recipe.config.overrides import apply_changes, read_overrides
from recipe.config.pool_patterns import whole_sets
from recipe.config.pool_sets import STAR, expand_pool_sets, has_sets, sets_in
from recipe.config.problems import Fault, nearest, shown
from recipe.config.recipe import Recipe
from recipe.config.resolving import omegaconf_error, resolve
from recipe.config.sources import GROUPS, PRIMARY, Located, config_loader, locate
from recipe.config.vocabulary import VOCABULARY
from recipe.errors import RecipeError


def load_recipe(
    source: str | Path,
    overrides: Sequence[str] = (),
    *,
    config_dir: Path | None = None,
    pools_root: Path | None = None,
) -> Recipe:
    """The recipe of a name (shipped, or in ``config_dir``) or of a YAML file, with overrides applied.

    No pool is opened; folders are looked up where a pool is a set of them (`recipe.config.pool_sets`).

    Args:
        source: ``"demo"``, or a path to a YAML file.
        overrides: ``key=value`` as on the command line; also ``+key=value``, ``~key``, and choices of a
            config group such as ``tokenizer=bytes``.
        config_dir: a folder laid out like ``conf/``, searched before the shipped one.
        pools_root: where the pools are, instead of where the recipe says.

    Raises:
        RecipeError: with every problem: where, given, expected, fix.
    """
    located = locate(source, config_dir)
    changes, found = read_overrides(overrides)
    loader = config_loader(located.search_path)
    chosen = [change for change in changes if _is_choice(change, loader)]
    data = _compose(loader, located, chosen)
    own = [change for change in changes if change not in chosen]
    faults, sets, stand_ins = _apply(data, own, pools_root, located.title)
    resolved, unresolved = resolve(data, located.title)
    resolved, partial = whole_sets(resolved, sets)
    found += [*faults, *unresolved, *partial]
    resolved.setdefault("name", folder_name(located.file.stem))
    return build_recipe(resolved, located.title, also=found, stand_ins=stand_ins)


def _apply(
    data: dict[str, Any], changes: Sequence[Change], pools_root: Path | None, title: str
) -> tuple[list[Fault], list[str], list[str]]:
    """Apply overrides, in place; pool sets become pools once what is said of them is applied.

    Returns faults, the names of the sets that were expanded, and pools that stand for those of other sets.
    """
    about_sets = [change for change in changes if _is_about_sets(change)]
    if not has_sets(data) and not any(STAR in change.text for change in about_sets):
        found = apply_changes(data, changes, VOCABULARY)
        if pools_root is not None:
            data["pools_root"] = str(pools_root)
        return found, [], []
    found = apply_changes(data, about_sets, VOCABULARY)
    if pools_root is not None:
        data["pools_root"] = str(pools_root)
    rest = [change for change in changes if change not in about_sets]
    sets = sets_in(data)
    pools, faults, lost = _expanded(data, title)
    data["pools"], stand_ins = with_stand_ins(data, pools, lost, [part for one in rest for part in one.place])
    found += [*faults, *apply_changes(data, rest, VOCABULARY)]
    return found, [key for key in sets if key not in lost], stand_ins


def _expanded(data: dict[str, Any], title: str) -> tuple[dict[str, Any], list[Fault], list[str]]:
    """Pools instead of sets, faults, and the sets that have one.

    Interpolations in what the sets say, and in the root, are resolved for that.
    """
    sets = sets_in(data)
    if not sets:
        return data["pools"], [], []
    resolved, lost = resolve(data, title)
    faults = [fault for fault in lost if fault.place[0].startswith(("pools_root", *_dotted(sets)))]
    if faults:
        own = {key: pool for key, pool in data["pools"].items() if key not in sets}
        return own, [], sets  # told with everything that cannot be resolved
    known = {key: resolved["pools"][key] if key in sets else own for key, own in data["pools"].items()}
    expanded, faults = expand_pool_sets({"pools": known, "pools_root": resolved.get("pools_root")})
    return expanded["pools"], faults, lost_sets(faults)


def _dotted(sets: Sequence[str]) -> list[str]:
    return [f"pools.{key}" for key in sets]


def _is_about_sets(change: Change) -> bool:
    """Whether an override says which folders sets look for: a word on the root, on sets, on all pools."""
    place = change.place
    return place in (("pools_root",), ("pools",)) or (place[0] == "pools" and STAR in place[1])


def _is_choice(change: Change, loader: ConfigLoaderImpl) -> bool:
    """Whether an override chooses an option of a config group, rather than setting a key."""
    if "@" in change.key or "/" in change.key:
        return True
    if change.key not in GROUPS or not loader.repository.group_exists(change.key):
        return False
    return isinstance(change.value, str) and change.value in loader.repository.get_group_options(change.key)


def _compose(loader: ConfigLoaderImpl, located: Located, chosen: Sequence[Change]) -> dict[str, Any]:
    for change in chosen:
        if change.key.startswith("hydra/"):
            expected, fix = "a key of the recipe", "leave it out: no setting of Hydra has an effect here"
            raise RecipeError.single(
                located.title, change.text, given=change.text, expected=expected, fix=fix
            )
        if change.key == "recipe":
            fix = f"name the recipe itself: recipe run {change.value}"
            expected = "a key of the recipe"
            raise RecipeError.single(
                located.title, change.text, given=change.text, expected=expected, fix=fix
            )
    texts = [change.text for change in chosen]
    while True:
        try:
            config = loader.load_configuration(PRIMARY, texts, RunMode.RUN, from_shell=False)
            break
        except HydraException as error:
            added = _added(texts, str(error))
            if added == texts:
                raise _composition_error(error, located, texts) from None
            texts = added
        except RecursionError:
            fix = "remove the entry that leads back here"
            expected = "a defaults list that does not lead back to itself"
            raise RecipeError.single(
                located.title, "defaults", given="a circle", expected=expected, fix=fix
            ) from None
    data = OmegaConf.to_container(config, resolve=False)
    assert isinstance(data, dict)
    data.pop("hydra", None)
    return {str(key): value for key, value in data.items()}


def _added(texts: Sequence[str], message: str) -> list[str]:
    """The choices, with the one added that Hydra found no default for."""
    missing = re.search(r"Could not override '([^']+)'", message)
    return [f"+{text}" if missing and text.startswith(f"{missing[1]}=") else text for text in texts]


def _composition_error(error: HydraException, located: Located, texts: Sequence[str]) -> RecipeError:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OmegaConfBaseException):
            return omegaconf_error(cause, located.title)
        cause = cause.__cause__ or cause.__context__
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    options = _options(lines)
    missing = re.search(r"Could not (?:find|load) '?([^'\s]+?)'?\.?$", lines[0])
    fix = "correct the defaults list"
    if missing:
        folder = missing[1].rpartition("/")[0].strip("/")
        fix = f"add {folder or 'the folder'}/{missing[1].rpartition('/')[2]}.yaml, or correct the name"
        fix = nearest(missing[1].rpartition("/")[2], options, fix)
    if texts:
        fix = f"check {', '.join(texts)} and the recipe's defaults list"
    given = lines[0].replace(f"'{PRIMARY}'", located.title).replace(PRIMARY, located.title)
    expected = (
        f"one of {', '.join(options)}" if options else "configs that exist, in folders of the search path"
    )
    return RecipeError.single(located.title, "defaults", given=shown(given), expected=expected, fix=fix)


def _options(lines: Sequence[str]) -> list[str]:
    """Options that Hydra's message lists, if it does."""
    for index, line in enumerate(lines):
        if line.startswith("Available options"):
            return [option for option in lines[index + 1 :] if " " not in option]
    return []
