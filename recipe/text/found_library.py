"""Text that every Python installation holds: sources, language reference, docstrings, our guide."""

from __future__ import annotations

import ast
import inspect
import os
import re
import sys
import sysconfig
from collections.abc import Iterator
from hashlib import blake2b
from importlib import import_module, resources
from pathlib import Path

from recipe.errors import RecipeError
from recipe.text.documents import Document

#: Folders of the standard library that are tests, tables, bundled or installed by others.
SKIPPED_FOLDERS = {
    *("test", "tests", "idle_test", "lib2to3", "idlelib", "turtledemo", "ensurepip", "encodings"),
    *("pydoc_data", "site-packages", "dist-packages", "lib-dynload", "__pycache__"),
}
MAX_CODE_BYTES = 12_000_000
PYTHON = f"{sys.implementation.name} {'.'.join(map(str, sys.version_info[:3]))}"


def code_documents() -> Iterator[Document]:
    """Sources of the standard library; the files of a package are one group."""
    total = 0
    for path, relative in _library_files():
        data = path.read_bytes()
        total += len(data)
        if total > MAX_CODE_BYTES:
            return
        package = relative.parts[0] if len(relative.parts) > 1 else None
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError:
            continue  # a source that declares another encoding
        if not text.strip():
            continue
        name = relative.as_posix()
        yield Document(
            id=name, text=text, group=package, source=name, tags={"package": package or relative.stem}
        )


def tutorial_documents() -> Iterator[Document]:
    """Docstrings of the standard library, a document a module; sources are parsed, never run."""
    for path, relative in _library_files():
        try:
            tree = ast.parse(path.read_bytes())
        except (SyntaxError, ValueError):
            continue
        sections = list(_docstrings(tree, ""))
        text = "\n\n".join(sections)
        if len(text) >= 200:
            module = ".".join(relative.with_suffix("").parts).removesuffix(".__init__")
            yield Document(
                id=module,
                text=f"{module}\n{'=' * len(module)}\n\n{text}\n",
                source=relative.as_posix(),
                tags={"sections": len(sections)},
            )


def english_documents() -> Iterator[Document]:
    """Topics of the language reference, as Python's own help shows them."""
    try:
        topics = import_module("pydoc_data.topics").topics
    except ImportError as error:
        raise _missing("pydoc_data.topics", "the language reference") from error
    for name in sorted(topics):
        yield Document(id=name, text=topics[name], source=f"pydoc_data/topics: {name}")


def chinese_documents() -> Iterator[Document]:
    """This project's guide in Chinese, a document a section."""
    for name, text in _guide():
        title = text.partition("\n")[0].removeprefix("# ")
        for number, section in enumerate(re.split(r"(?m)^(?=## )", text)):
            if section.count("\n") > 2:
                yield Document(
                    id=f"{name}#{number}",
                    text=section.strip() + "\n",
                    source=name,
                    tags={"guide": title},
                )


def guide_hash() -> str:
    """Hash of the guide's text: it changes with the project."""
    return blake2b(repr(_guide()).encode(), digest_size=8).hexdigest()


def _guide() -> list[tuple[str, str]]:
    """(file name, text) of the guide."""
    files = [
        file for file in (resources.files("recipe.text") / "found_zh").iterdir() if file.name.endswith(".md")
    ]
    return [(file.name, file.read_text("utf-8")) for file in sorted(files, key=lambda file: file.name)]


def _library_files() -> Iterator[tuple[Path, Path]]:
    """(path, path inside the library) of its sources, in an order the file system does not decide."""
    root = Path(sysconfig.get_path("stdlib"))
    found = False
    for parent, folders, names in os.walk(root):
        folders[:] = sorted(f for f in folders if f not in SKIPPED_FOLDERS and not f.startswith("config-"))
        for name in sorted(names):
            # _sysconfigdata holds paths of the machine that built Python
            if name.endswith(".py") and not name.startswith("_sysconfigdata"):
                found = True
                path = Path(parent, name)
                yield path, path.relative_to(root)
    if not found:
        raise _missing(str(root), "the sources of the standard library")


def _docstrings(node: ast.AST, prefix: str) -> Iterator[str]:
    """``name(arguments)`` and the docstring of a module, its classes and their methods."""
    if isinstance(node, ast.Module) and (doc := ast.get_docstring(node)):
        yield doc
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{prefix}{child.name}"
            doc = ast.get_docstring(child, clean=False)
            if doc and len(doc) > 40:
                arguments = "" if isinstance(child, ast.ClassDef) else f"({ast.unparse(child.args)})"
                yield f"{name}{arguments}\n\n{inspect.cleandoc(doc)}"
            if isinstance(child, ast.ClassDef):
                yield from _docstrings(child, f"{name}.")


def _missing(where: str, what: str) -> RecipeError:
    return RecipeError.single(
        "text on this machine",
        where,
        given="not installed",
        expected=f"{what} of this Python ({PYTHON})",
        fix="use a Python with its full standard library, or prepare pools of your own text",
    )
