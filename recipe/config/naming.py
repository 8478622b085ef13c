"""Names that a folder may have: what a run is called, and a recipe, whose runs are called after it."""

from __future__ import annotations

import re

LONGEST_NAME = 200
"""Bytes of a name; folders beside a run are named after it and take some more."""
PLAIN_NAME = (
    f"a plain name: at most {LONGEST_NAME} bytes, all printable, no / in it, "
    "without . or - at its beginning or blanks around it"
)

_KEY = re.compile(r"(?!_target_$)[^\W.][\w-]*")


def is_key(name: str) -> bool:
    """Whether a pool, group or stage may be called so: a word of dotted keys, in files and on a command line.

    >>> [is_key(name) for name in ("no", "2024_01", "zh-Hans", "a.b", "-x", "")]
    [True, True, True, False, False, False]
    """
    return _KEY.fullmatch(name) is not None


def is_plain_name(name: str) -> bool:
    """Whether a name is one folder's, which can be shown and typed: `PLAIN_NAME`.

    >>> [is_plain_name(name) for name in ("trial 2", "a/b", "..", "-m", " a", "")]
    [True, False, False, False, False, False]
    """
    is_one = name != "" and "/" not in name and name[0] not in ".-" and name == name.strip()
    return is_one and name.isprintable() and len(name.encode(errors="replace")) <= LONGEST_NAME


def folder_name(stem: str) -> str:
    """A plain name for the recipe of a file that states none.

    >>> [folder_name(stem) for stem in ("trial 2", "-x", "..")]
    ['trial_2', 'x', 'recipe']
    """
    name = re.sub(r"[^\w.-]+", "_", stem).lstrip(".-") or "recipe"
    return name if is_plain_name(name) else name[: LONGEST_NAME // 4]
