"""What a decision rests on, kept in the run it is about: ``evidence/<hash>.json``, canonical JSON.

The name is the hash of the bytes, and the row of the decision repeats it, so that what was known when
the decision was made can be shown, and not changed, later.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

from recipe.errors import RecipeError
from recipe.run import writes
from recipe.run.canonical import Plain, canonical, digest
from recipe.run.folder import RunFolder

FOLDER = "evidence"


def evidence_path(folder: RunFolder, mark: str) -> Path:
    """Where the evidence with a hash is."""
    return folder.path / FOLDER / f"{mark}.json"


def store_evidence(folder: RunFolder, evidence: Plain) -> str:
    """Keep evidence; it is written before the row that names it.

    Returns:
        its hash.

    Raises:
        RecipeError: the system refuses, or other bytes are there under this name.
    """
    data = canonical(evidence)
    mark = digest(data)
    path = evidence_path(folder, mark)
    writes.make_folder(path.parent)
    if not writes.create_file(path, data):
        read_evidence(folder, mark)
    return mark


def read_evidence(folder: RunFolder, mark: str) -> Plain:
    """The evidence with a hash.

    Raises:
        RecipeError: it is missing, or its bytes are not those that were written.
    """
    path = evidence_path(folder, mark)
    if not re.fullmatch("[0-9a-f]{64}", mark):
        raise _lost(folder.path / FOLDER, "a name that is no hash", f"{mark!r:.80}")
    try:
        data = path.read_bytes()
    except OSError as error:
        raise _lost(path, str(error.strerror), mark) from error
    if digest(data) != mark:
        raise _lost(path, f"bytes with hash {digest(data)}", mark)
    evidence: Plain = json.loads(data)
    return evidence


def _lost(path: Path, given: str, mark: str) -> RecipeError:
    return RecipeError.single(
        f"{path}: not the evidence of the decision",
        str(path),
        given=given,
        expected=f"bytes with hash {mark}, as the decision's row says",
        fix="take the file from a copy of the run",
    )
