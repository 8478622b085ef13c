"""Where recipes come from: folders laid out like ``conf/`` and single files, read strictly for Hydra."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hydra._internal.config_loader_impl import ConfigLoaderImpl
from hydra._internal.config_search_path_impl import ConfigSearchPathImpl
from hydra.core.object_type import ObjectType
from hydra.core.plugins import Plugins
from hydra.plugins.config_source import ConfigLoadError, ConfigResult, ConfigSource
from omegaconf import OmegaConf

from recipe.config.problems import nearest, shown
from recipe.config.shipped import shipped_conf, titled
from recipe.config.strict_yaml import read_yaml
from recipe.errors import RecipeError

GROUPS = ("recipe", "pool", "tokenizer", "sink", "branch")
PRIMARY = "__recipe__"
"""What Hydra calls the recipe that is loaded: it stands at the top, above all groups."""
_SUFFIXES = (".yaml", ".yml")
_GROUP_KEY = re.compile(r"^(?P<words>(?:(?:optional|override)\s+)*)(?P<group>[^/\s].*)$")


@dataclass(frozen=True, slots=True)
class Located:
    """A recipe that was found: its file, and where it may take other configs from."""

    file: Path
    search_path: tuple[str, ...]

    @property
    def title(self) -> str:
        """What messages call the recipe."""
        return titled(self.file)


def locate(source: str | Path, config_dir: Path | None = None) -> Located:
    """Find a recipe by name (own folder first, then shipped), or a YAML file by path.

    Raises:
        RecipeError: there is none, or ``config_dir`` is no folder of recipes.
    """
    roots = [shipped_conf()]
    if config_dir is not None:
        if not config_dir.is_dir():
            fix = "name a folder laid out like conf/: recipe/, pool/, tokenizer/, …"
            raise RecipeError.single("recipe", "--config-dir", given=config_dir, expected="a folder", fix=fix)
        roots.insert(0, config_dir.absolute())
    folders = tuple(f"{FolderSource.scheme()}://{root}" for root in roots)
    if not isinstance(source, Path):
        for root in roots:
            if (file := _file_of(root / "recipe", source)) is not None:
                return Located(file, (*folders, f"{FileSource.scheme()}://{file}"))
    path = Path(source).expanduser()
    if path.is_file():
        return Located(path.absolute(), (f"{FileSource.scheme()}://{path.absolute()}", *folders))
    raise _not_found(source, roots)


def _not_found(source: str | Path, roots: list[Path]) -> RecipeError:
    names = sorted({file.stem for root in roots for file in (root / "recipe").glob("*.y*ml")})
    path = Path(source).expanduser()
    looks_like_path = str(source) != "" and (
        path.is_dir() or "/" in str(source) or str(source).endswith(_SUFFIXES)
    )
    if looks_like_path and path.is_dir():
        fix = "name a file in it, or use --config-dir for a folder laid out like conf/"
    elif looks_like_path and (near := _near_file(path)):
        fix = f"did you mean '{near}'?"
    else:
        fix = nearest(source, names, "name one of these, or the path of a YAML file")
    expected = f"a YAML file, or one of {', '.join(names)}"
    return RecipeError.single("recipe", "RECIPE", given=str(source), expected=expected, fix=fix)


def _near_file(path: Path) -> Path | None:
    beside = sorted(path.parent.glob("*.y*ml")) if path.parent.is_dir() else []
    return next(
        (other for other in beside if other.stem == path.stem), beside[0] if len(beside) == 1 else None
    )


def _file_of(folder: Path, name: str) -> Path | None:
    if not name or name.endswith("/"):
        return None
    stem = re.sub(r"\.ya?ml$", "", name)
    for suffix in _SUFFIXES:
        file = folder / f"{stem}{suffix}"
        if file.is_file() and file.resolve().is_relative_to(folder.resolve()):
            return file
    return None


class FolderSource(ConfigSource):
    """A folder laid out like ``conf/``, read by the strict YAML loader."""

    @staticmethod
    def scheme() -> str:
        """What a search path entry of this kind starts with."""
        return "recipe-folder"

    def file_of(self, config_path: str) -> Path | None:
        """The file of a config, None where there is none."""
        return _file_of(Path(self.path), config_path)

    def folder_of(self, group: str) -> Path:
        """The folder of a group."""
        return Path(self.path) / group

    def load_config(self, config_path: str) -> ConfigResult:
        """A config and the package its keys belong to: a recipe's own are the top."""
        file = self.file_of(config_path)
        if file is None:
            raise ConfigLoadError(f"no config {config_path} in {self.path}")
        title = titled(file)
        data = read_yaml(file, title)
        if not isinstance(data, dict):
            fix = "write keys and values, such as seed: 1"
            raise RecipeError.single(title, title, given=type(data).__name__, expected="a mapping", fix=fix)
        if "hydra" in data:
            fix = "remove it: no setting of Hydra has an effect here"
            given = shown(data["hydra"])
            raise RecipeError.single(title, "hydra", given=given, expected="keys of a recipe", fix=fix)
        for key in ("pools", "groups", "stages", "every_stage"):
            if isinstance(data.get(key), list):
                fix = f"write {key}: {{name: ...}}; a file merges into the one it starts from, name by name"
                raise RecipeError.single(title, key, given=shown(data[key]), expected="a mapping", fix=fix)
        if "defaults" in data:
            data["defaults"] = _absolute(data["defaults"], title)
        header = dict(self._get_header_dict(file.read_text(encoding="utf-8-sig")[:512]))
        if (config_path == PRIMARY or config_path.startswith("recipe/")) and header.get("package") is None:
            header["package"] = "_global_"
        return ConfigResult(
            provider=self.provider, path=self.full_path(), config=OmegaConf.create(data), header=header
        )

    def available(self) -> bool:
        """Whether the folder is there."""
        return Path(self.path).exists()

    def is_group(self, config_path: str) -> bool:
        """Whether a folder of this name is there."""
        return self.folder_of(config_path).is_dir()

    def is_config(self, config_path: str) -> bool:
        """Whether a file of this name is there."""
        return self.file_of(config_path) is not None

    def list(self, config_path: str, results_filter: ObjectType | None) -> list[str]:
        """Names of the configs and groups in a group."""
        folder = self.folder_of(config_path)
        names = set()
        for entry in sorted(folder.iterdir()) if folder.is_dir() else []:
            if entry.is_dir() and results_filter in (None, ObjectType.GROUP):
                names.add(entry.name)
            if entry.suffix in _SUFFIXES and results_filter in (None, ObjectType.CONFIG):
                names.add(entry.stem)
        return sorted(names)


class FileSource(FolderSource):
    """A single recipe file: its neighbours are recipes, folders beside it are groups."""

    @staticmethod
    def scheme() -> str:
        """What a search path entry of this kind starts with."""
        return "recipe-file"

    def file_of(self, config_path: str) -> Path | None:
        """The file itself, a neighbour, or a file of a group beside it."""
        file = Path(self.path)
        if config_path == PRIMARY:
            return file
        group, _, name = config_path.rpartition("/")
        return _file_of(self.folder_of(group), name) if group in GROUPS else None

    def folder_of(self, group: str) -> Path:
        """The folder of a group."""
        folder = Path(self.path).parent
        if group == "recipe":
            return folder
        return (folder.parent if folder.name == "recipe" else folder) / group

    def is_group(self, config_path: str) -> bool:
        """Whether it is a known group with a folder."""
        return config_path in GROUPS and super().is_group(config_path)


def _absolute(defaults: Any, title: str) -> Any:
    """A defaults list that means the same everywhere: groups from the top, the file itself last."""
    if not isinstance(defaults, list):
        fix = "write defaults: [demo]"
        raise RecipeError.single(title, "defaults", given=defaults, expected="a list of configs", fix=fix)
    absolute = [_from_top(entry) for entry in defaults]
    return absolute if "_self_" in absolute else [*absolute, "_self_"]


def _from_top(entry: Any) -> Any:
    """An entry of a defaults list; a word is another recipe, ``tokenizer: bytes`` a choice in a group."""
    if isinstance(entry, str) and entry != "_self_" and not entry.startswith("/"):
        return f"/{entry}" if entry.partition("/")[0] in GROUPS else f"/recipe/{entry}"
    if isinstance(entry, dict):
        return {_GROUP_KEY.sub(r"\g<words>/\g<group>", key): option for key, option in entry.items()}
    return entry


def config_loader(search_path: tuple[str, ...]) -> ConfigLoaderImpl:
    """Hydra's loader over these folders; no global state of Hydra is touched but its list of plugins."""
    plugins = Plugins.instance()
    for source in (FolderSource, FileSource):
        plugins.register(source)
    path = ConfigSearchPathImpl()
    path.append("hydra", "pkg://hydra.conf")
    for index, entry in enumerate(search_path):
        path.append("main" if index == 0 else f"folder {index}", entry)
    path.append("schema", "structured://")
    return ConfigLoaderImpl(path)
