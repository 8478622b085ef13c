"""Manifests: numbered, immutable statements at checkpoints, as YAML a person can read.

The last line of the file is the hash of all bytes before it, so any other byte is a fault. The
ledger's checkpoint row repeats the hash: **a checkpoint counts once its row is whole in the
ledger**. A manifest without a row is an unfinished one and its number is used again;
``latest.yaml`` is a copy of the last manifest, replaced after the row was written, and may be one
behind after a crash, never ahead.
"""

from __future__ import annotations

from pathlib import Path

import yaml

from recipe.errors import RecipeError
from recipe.run.canonical import Plain, digest, plain_value
from recipe.run.shapes import MANIFEST, lacking

FORMAT = 2
_HASH_LINE = "hash: "

_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_Dumper = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def yaml_bytes(value: Plain) -> bytes:
    """Plain values as YAML: keys in the order given, text as it is."""
    text: str = yaml.dump(
        plain_value(value), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20
    )
    return text.encode()


def yaml_value(path: Path, data: bytes) -> Plain:
    """A YAML mapping read from ``path``; YAML is data here: tags construct nothing, aliases are refused.

    Raises:
        RecipeError: it is no mapping.
    """
    try:
        if b"*" in data and any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(data, _Loader)):
            raise _unreadable(path, "an alias, which may stand for more than a memory holds")
        value = yaml.load(data, Loader=_Loader)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise _unreadable(path, (str(error) or type(error).__name__).splitlines()[0]) from error
    if not isinstance(value, dict):
        raise _unreadable(path, type(value).__name__)
    return value


def sealed(value: Plain) -> bytes:
    """A mapping as YAML with the hash of its bytes as last line.

    >>> sealed({"number": 1}).decode().splitlines()[0]
    'number: 1'
    """
    body = yaml_bytes(value)
    return body + f"{_HASH_LINE}{digest(body)}\n".encode()


def unseal(path: Path, data: bytes) -> Plain:
    """What :func:`sealed` wrote; the result holds ``hash``.

    Raises:
        RecipeError: a byte differs from what was written.
    """
    body, mark, rest = data.rpartition(_HASH_LINE.encode())
    if not mark or rest != f"{digest(body)}\n".encode():
        raise RecipeError.single(
            f"{path}: damaged",
            str(path),
            given=f"last line {mark.decode() + rest.decode(errors='replace').strip()!r}",
            expected=f"{_HASH_LINE}{digest(body)}" if mark else "a hash as last line",
            fix="take the file from a copy, or open an older step; `recipe audit` names every fault",
        )
    return {**yaml_value(path, body), "hash": digest(body)}


def seal_of(data: bytes) -> str:
    """The hash that ends a sealed file."""
    return data.rpartition(_HASH_LINE.encode())[2].decode(errors="replace").strip()


def manifest_path(folder: Path, number: int) -> Path:
    """Where manifest ``number`` of a run folder is."""
    return folder / "manifests" / f"{number:06d}.yaml"


def latest_path(folder: Path) -> Path:
    """Where the copy of the last manifest is."""
    return folder / "manifests" / "latest.yaml"


def read_manifest(path: Path, expected_hash: str | None = None) -> Plain:
    """A manifest, checked against its own hash and the one the ledger names.

    Raises:
        RecipeError: the file is missing, damaged, of another format, or not the one the ledger names.
    """
    try:
        manifest = unseal(path, path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error.strerror) from error
    if manifest.get("format") != FORMAT:
        raise _unreadable(path, f"format {manifest.get('format')}")
    if (key := lacking(manifest, MANIFEST)) is not None:
        raise _unreadable(path, f"{key}: {manifest.get(key)!s:.60}")
    if expected_hash is not None and manifest["hash"] != expected_hash:
        raise RecipeError.single(
            f"{path}: not the manifest of the ledger",
            str(path),
            given=f"hash {manifest['hash']}",
            expected=f"hash {expected_hash}, as the ledger's checkpoint row says",
            fix="take the file from a copy; `recipe audit` names every fault",
        )
    return manifest


def _unreadable(path: Path, given: object) -> RecipeError:
    return RecipeError.single(
        f"{path}: no manifest",
        str(path),
        given=given,
        expected=f"a YAML mapping of format {FORMAT}",
        fix="take the file from a copy, or open another step of the run; `recipe audit` names every fault",
    )
