"""Part 5: the sampling program itself: a wheel of the very files that ran, and what they ran with.

The wheel is put together from the package as it was imported, so that it needs no build tools and no
network, and is what produced the test vectors even where the package was changed after it was installed.
"""

from __future__ import annotations

import base64
import hashlib
import io
import platform
import re
import zipfile
from collections.abc import Mapping
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, version
from pathlib import Path

from recipe import errors
from recipe.config.shipped import shipped_conf
from recipe.errors import RecipeError
from recipe.run.canonical import Plain
from recipe.run.statement import software

FORMAT = 1
PROJECT = "token-recipe"
_TIME = (1980, 1, 1, 0, 0, 0)
_LEFT_OUT = ("__pycache__",)


@cache
def package_files() -> Mapping[str, bytes]:
    """The files of the package as it runs here, by name in a wheel; configs are inside as installed.

    Read once: what is edited while a process runs is not what runs.
    """
    package = Path(errors.__file__).parent
    conf = shipped_conf()
    files = {f"recipe/{name}": data for name, data in _tree(package).items()}
    return {**files, **{f"recipe/conf/{name}": data for name, data in _tree(conf).items()}}


def _tree(folder: Path) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and not path.is_symlink())
    names = {path: path.relative_to(folder) for path in paths if path.suffix != ".pyc"}
    return {
        name.as_posix(): path.read_bytes()
        for path, name in names.items()
        if not any(part in _LEFT_OUT or part.startswith(".") for part in name.parts)
    }


def source_hash(files: Mapping[str, bytes]) -> str:
    """One hash over names and contents: SHA-256 of lines ``<sha256>  <name>``, sorted by name.

    >>> source_hash({"a": b""})[:8], source_hash({}) == source_hash({"a": b""})
    ('fba19305', False)
    """
    lines = [f"{hashlib.sha256(files[name]).hexdigest()}  {name}\n" for name in sorted(files)]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def wheel_name() -> str:
    """File name of the wheel."""
    return f"{_stem()}-py3-none-any.whl"


def _stem() -> str:
    return f"{PROJECT.replace('-', '_')}-{version(PROJECT)}"


def wheel(files: Mapping[str, bytes]) -> bytes:
    """A wheel of the package's files: the same bytes for the same files."""
    info = f"{_stem()}.dist-info"
    inside = {**files, **{f"{info}/{name}": data for name, data in _dist_info().items()}}
    record = "".join(f"{name},{_record_hash(inside[name])},{len(inside[name])}\n" for name in sorted(inside))
    inside[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as archive:
        for name in (*sorted(name for name in inside if not name.endswith("/RECORD")), f"{info}/RECORD"):
            entry = zipfile.ZipInfo(name, _TIME)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, inside[name])
    return out.getvalue()


def files_in_wheel(path: Path) -> dict[str, bytes]:
    """The package's files in a wheel."""
    with zipfile.ZipFile(path) as archive:
        names = [name for name in archive.namelist() if name.startswith("recipe/")]
        return {name: archive.read(name) for name in names}


def _record_hash(data: bytes) -> str:
    return "sha256=" + base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _dist_info() -> dict[str, bytes]:
    found = _distribution()
    wanted = {
        "METADATA": found.read_text("METADATA"),
        "entry_points.txt": found.read_text("entry_points.txt"),
    }
    files = {name: text.encode() for name, text in wanted.items() if text is not None}
    licence = found.read_text("licenses/LICENSE")
    if licence is not None:
        files["licenses/LICENSE"] = licence.encode()
    tags = "Wheel-Version: 1.0\nGenerator: recipe handover\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    return {**files, "WHEEL": tags.encode()}


def _distribution() -> Distribution:
    try:
        return distribution(PROJECT)
    except PackageNotFoundError as error:
        raise RecipeError.single(
            "handover",
            PROJECT,
            given="a package that was not installed",
            expected="its metadata, as pip installs it",
            fix="pip install it first (also with -e): the wheel is made from what is installed",
        ) from error


def requirements() -> str:
    """The packages it ran with here, pinned, one a line."""
    names = [
        re.split(r"[^\w.-]", text, maxsplit=1)[0]
        for text in _distribution().requires or ()
        if "extra ==" not in text
    ]
    pinned = []
    for name in sorted(set(names), key=str.lower):
        try:
            pinned.append(f"{name}=={version(name)}\n")
        except PackageNotFoundError:
            continue
    return "".join(pinned)


def program_plain(files: Mapping[str, bytes]) -> Plain:
    """What is said of the program."""
    return {
        "format": FORMAT,
        "wheel": wheel_name(),
        "source_hash": source_hash(files),
        "source_files": len(files),
        "software": software(),
        "system": {"machine": platform.machine(), "system": platform.system()},
    }
