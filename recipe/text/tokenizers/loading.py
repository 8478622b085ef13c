"""From a word or a path to a tokenizer: what is there decides its kind."""

from __future__ import annotations

from pathlib import Path

from recipe.errors import RecipeError
from recipe.text.tokenizers.builtin import ByteTokenizer
from recipe.text.tokenizers.hugging_face import JsonTokenizer
from recipe.text.tokenizers.kind import SPECIALS, Tokenizer, refused
from recipe.text.tokenizers.rank_files import PAIR, is_rank_file
from recipe.text.tokenizers.ranks import RankTokenizer
from recipe.text.tokenizers.sentence_pieces import SentencePieceTokenizer

KINDS = "bytes, a tokenizer.json, a file of tiktoken ranks, a SentencePiece model, or a folder that holds one"
_CONVERT = (
    "write the folder anew with a tokenizer.json: "
    "AutoTokenizer.from_pretrained(FOLDER).save_pretrained(FOLDER), with the transformers package"
)
_WITHOUT = (
    (("vocab.json", "merges.txt"), "vocab.json and merges.txt, which do not say how a text is split"),
    (("vocab.txt",), "vocab.txt, which does not say how a text is split"),
    (("tokenizer_config.json",), "tokenizer_config.json, which names a class of Python code"),
)
"""Files of folders whose tokenizer is a program, and what they lack."""


def load_tokenizer(spec: str | Path, *, eos: str | int | None = None) -> Tokenizer:
    """``bytes``, or what a file or folder holds.

    A folder is asked for ``tokenizer.json``, then for ``*.tiktoken``, ``tiktoken.model`` or
    ``tokenizer.model`` (whatever it is), ``*.model``, then for GPT-2's ``vocab.bpe`` with ``encoder.json``.

    Args:
        spec: the word ``bytes`` or a path. With ``#specials`` behind it special tokens written in a text
            are those tokens; they are text else.
        eos: token (or id) of a document's end; by default the common name the vocabulary holds, or
            what the file, or ``tokenizer_config.json`` beside it, says.

    Raises:
        RecipeError: nothing there, not a tokenizer, or the end of a document is not clear.
    """
    if str(spec) == "bytes":
        if eos not in (None, ByteTokenizer.eos):
            raise RecipeError.single(
                "tokenizer", "eos", given=eos, expected="256, or nothing", fix="leave it out for bytes"
            )
        return ByteTokenizer()
    path, specials = tokenizer_path(spec), str(spec).endswith(SPECIALS)
    file = _file_in(path) if path.is_dir() else path
    if not file.is_file():
        raise refused(file, "no such file", KINDS, "check the path, or use the built-in tokenizer: bytes")
    if file.name == "tokenizer.json":  # the folder is its name
        return JsonTokenizer(path, eos=eos, specials=specials)
    if is_rank_file(file):
        return RankTokenizer(file, eos=eos, specials=specials)
    if _first_byte(file) == b"\n":  # the tag of a model's first piece
        return SentencePieceTokenizer(file, eos=eos, specials=specials)
    return JsonTokenizer(file, eos=eos, specials=specials)


def tokenizer_path(spec: str | Path) -> Path:
    """The path of a tokenizer's file or folder.

    >>> tokenizer_path("tokenizers/ours#specials").as_posix()
    'tokenizers/ours'
    """
    return Path(str(spec).removesuffix(SPECIALS))


def _file_in(folder: Path) -> Path:
    """The tokenizer's file in a folder.

    Raises:
        RecipeError: there is none, or several.
    """
    if (plain := folder / "tokenizer.json").is_file():
        return plain
    for pattern in ("*.tiktoken", "tiktoken.model", "tokenizer.model", "*.model"):
        found = sorted(path for path in folder.glob(pattern) if path.is_file())
        if len(found) == 1:
            return found[0]
        if found:
            given = " and ".join(path.name for path in found[:3])
            raise refused(folder, given, "one tokenizer in a folder", f"name the file: {found[0]}")
    if all((folder / name).is_file() for name in PAIR):
        return folder / PAIR[0]
    for names, given in _WITHOUT:
        if all((folder / name).is_file() for name in names):
            raise refused(folder, f"no tokenizer.json, but {given}", KINDS, _CONVERT)
    raise refused(
        folder, "no such file: no tokenizer.json in it", KINDS,
        "check the path, or use the built-in tokenizer: bytes",
    )  # fmt: skip


def _first_byte(file: Path) -> bytes:
    with file.open("rb") as stream:
        return stream.read(1)
