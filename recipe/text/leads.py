"""Markers: special tokens in front of the documents of a group, such as the names of a repository's files."""

from __future__ import annotations

from functools import cache
from string import Formatter

from recipe.errors import RecipeError
from recipe.text.documents import Document
from recipe.text.tokenizers import SPECIALS, Tokenizer, load_tokenizer

FIELDS = ("path", "id", "group")
"""What a marker may name of a document: its file, its id, its group."""


def check_marker(template: str) -> None:
    """Refuse a marker that says nothing, or names what no document has.

    Raises:
        RecipeError: with what was expected.
    """
    try:
        names = [(name, spec) for _, name, spec, _ in Formatter().parse(template) if name is not None]
    except ValueError as error:
        raise _refused(template, f"text with {{path}}, {{id}} or {{group}} ({error})") from None
    if not template or any(name not in FIELDS or spec for name, spec in names):
        raise _refused(template, "text, in which {path}, {id} and {group} stand for those of a document")


def lead_of(document: Document, template: str, tokenizer: Tokenizer) -> list[int]:
    """Ids of what stands in front of a document; none where it belongs to no group.

    Special tokens written in the template are those tokens.

    Args:
        document: whose name, id and group are put in.
        template: such as ``<|file_sep|>{path}`` and a line end.
        tokenizer: of the pool.

    Raises:
        RecipeError: name, id or group hold a special token themselves.
    """
    if document.group is None:
        return []
    values = {"path": document.source, "id": document.id, "group": document.group}
    special = _with_specials(tokenizer.spec, tokenizer.eos)
    for name in FIELDS:
        text = str(values[name])
        if f"{{{name}}}" in template and _ids(special, text) != _ids(tokenizer, text):
            raise RecipeError.single(
                "marker", document.place, given=f"{name} {text!r}",
                expected=f"a {name} without the name of a special token: it would be that token",
                fix=f"rename it, or leave {{{name}}} out of the marker",
            )  # fmt: skip
    return _ids(special, template.format(**values))


def _ids(tokenizer: Tokenizer, text: str) -> list[int]:
    ids: list[int] = tokenizer.encode_batch([text])[0].tolist()
    return ids


@cache
def _with_specials(spec: str, eos: int) -> Tokenizer:
    if spec == "bytes" or spec.endswith(SPECIALS):
        return load_tokenizer(spec, eos=eos)
    return load_tokenizer(f"{spec}{SPECIALS}", eos=eos)


def _refused(template: str, expected: str) -> RecipeError:
    return RecipeError.single(
        "prepare", "marker", given=repr(template), expected=expected,
        fix="write it like '<|file_sep|>{path}'; {{ and }} stand for the signs themselves",
    )  # fmt: skip
