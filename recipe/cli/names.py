"""Names of runs: one plain folder, whatever the shell and the system make of odd characters."""

from __future__ import annotations

import unicodedata

from recipe.errors import RecipeError

MOST_BYTES = 200
_SIGNS = "._=,+-"


def check_name(name: str, where: str) -> None:
    """Refuse a name that is no plain folder name: letters of any script, digits and ``._=,+-``.

    Args:
        name: of a run.
        where: the key or option that gave it.

    Raises:
        RecipeError: it is empty, begins with ``-`` or ``.``, is longer than 200 bytes, or holds
            something else.
    """
    odd = sorted({sign for sign in name if not _is_plain(sign)})
    if name and not odd and name[0] not in "-." and len(name.encode()) <= MOST_BYTES:
        return
    given = repr(name) if len(name) <= MOST_BYTES else f"{name[:40]!r} and {len(name) - 40:,} characters more"
    raise RecipeError.single(
        "recipe run",
        where,
        given=f"{given}, with {', '.join(map(ascii, odd[:8]))}" if odd else given,
        expected=f"the name of one folder: letters, digits and {_SIGNS}, not beginning with '-' or '.', "
        f"at most {MOST_BYTES} bytes",
        fix="give a plain name with --name; the folder above it is --runs-dir",
    )


def _is_plain(sign: str) -> bool:
    """Letters with their marks, and digits, of any script; surrogates are none."""
    return sign in _SIGNS or unicodedata.category(sign)[0] in "LMN"
