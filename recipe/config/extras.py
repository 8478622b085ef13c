"""Optional packages: how the ones of an extra are installed here."""

from __future__ import annotations

from pathlib import Path
from shlex import quote

_CHECKOUT = Path(__file__).resolve().parents[2]


def how_to_install(extra: str, top: Path = _CHECKOUT) -> str:
    """The command that installs an extra: from the checkout that runs, else by the package's name.

    >>> how_to_install("train", Path("nowhere"))
    "pip install 'token-recipe[train]'"
    """
    if not (top / "pyproject.toml").is_file():
        return f"pip install 'token-recipe[{extra}]'"
    where = "." if top == Path.cwd() else str(top)
    return f"pip install -e {quote(f'{where}[{extra}]')}"
