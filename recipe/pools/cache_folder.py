"""Where copies and derived files lie on this machine; a setting of the machine, and no part of a recipe."""

from __future__ import annotations

import os
from pathlib import Path

CACHE = "RECIPE_CACHE"
"""Variable of the environment that names the folder."""


def named_cache_folder() -> Path | None:
    """The folder that the environment names, if it names one."""
    return Path(given).expanduser() if (given := os.environ.get(CACHE)) else None


def cache_folder() -> Path:
    """That folder; by default ``token-recipe`` below ``$XDG_CACHE_HOME``, or below ``~/.cache``."""
    home = Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser()
    return named_cache_folder() or home / "token-recipe"
