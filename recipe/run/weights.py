"""What became of a checkpoint's weights, as far as it can be seen from this machine."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

Fate = Literal["kept", "removed", "forgotten", "not seen"]
"""``kept``: they are there. ``removed``: where they were saved is there, and they are not. ``forgotten``:
that they were deleted is on record. ``not seen``: an address elsewhere, or a place that is not here."""
_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LOCAL = ("/", "./", "../", "~")


def local_path(uri: str) -> Path | None:
    """The path that a URI or text is; None for an address elsewhere.

    >>> local_path("file:///w/4.pt"), local_path("s3://bucket/4.pt")
    (PosixPath('/w/4.pt'), None)
    """
    text = uri.removeprefix("file://")
    return None if _ADDRESS.match(text) else Path(text).expanduser()


def is_marked_local(text: str) -> bool:
    """Whether a text can only mean a path of this machine, and no name of a publisher's.

    >>> is_marked_local("./weights"), is_marked_local("org/model-8b")
    (True, False)
    """
    return text.startswith((*_LOCAL, "file://"))


def weights_fate(run: Path, uri: str, *, forgotten: bool = False) -> Fate:
    """What became of the weights that a manifest names; paths are relative to the run's folder.

    Args:
        run: the run's folder.
        uri: as the trainer said it.
        forgotten: whether their deletion is on record.
    """
    if forgotten:
        return "forgotten"
    path = local_path(uri)
    if path is None:
        return "not seen"
    file = run / path
    if file.exists():
        return "kept"
    # A bare name is no place: it may be relative to anything.
    return "removed" if file.parent.is_dir() and file.parent != run else "not seen"
