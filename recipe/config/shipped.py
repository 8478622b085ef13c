"""The folder of shipped recipes, and files as messages name them."""

from __future__ import annotations

from pathlib import Path


def shipped_conf() -> Path:
    """The folder of shipped recipes: inside the installed package, else at the top of a checkout."""
    package = Path(__file__).resolve().parents[1]
    for folder in (package / "conf", package.parent / "conf"):
        if (folder / "recipe").is_dir():
            return folder
    raise FileNotFoundError(f"no shipped recipes beside {package}: the installation is incomplete")


def titled(file: Path) -> str:
    """A file as messages name it: short where it is shipped or below the working directory."""
    file = file.absolute()
    for top in (shipped_conf().parent, Path.cwd()):
        if file.is_relative_to(top):
            return file.relative_to(top).as_posix()
    return str(file)
