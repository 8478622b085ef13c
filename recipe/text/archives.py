"""Records of tars as WebDataset writes them: members of one stem, one after the other, are one record."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, Any

from recipe.text.records import Raw
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.streams import TruncatedError, open_bytes, truncation

JSON = "json"
TEXT = "txt"


def raw_members(index: int, file: SourceFile, options: ReadOptions, digest: Any = None) -> Iterator[Raw]:
    """The records of a tar, read from its beginning to its end; ``line`` counts them from 1.

    A member's stem is its path up to the first dot of its name, its suffix what follows, in lower case.
    Hidden members are left out, as in folders. All of several tars written one after the other are read.
    """
    number, record = 0, None
    with open_bytes(file.path, digest) as stream:
        try:
            for member, data in _members(stream, options):
                stem, suffix = _split(member.name)
                if record is None or record.stem != stem:
                    if record is not None:
                        yield record.raw(index, options)
                    number += 1
                    record = _Record(stem, number)
                record.add(suffix, data, member.size > options.max_line_bytes)
        except TruncatedError as error:
            if isinstance(error, _BehindEndError) and record is not None:
                yield record.raw(index, options)
                record = None
            # Members of the record that was begun may be lost: it is the one that is left out.
            at = (number, record.stem) if record is not None else (None, None)
            empty = file.size == 0
            detail = f"a tar that is whole: {error}"
            yield Raw(index, at[0], b"", "empty_file" if empty else "truncated", detail, member=at[1])
            return
        if record is not None:
            yield record.raw(index, options)


def _split(name: str) -> tuple[str, str]:
    """Stem and suffix of a member.

    >>> _split("./web/0001.meta.JSON")
    ('web/0001', 'meta.json')
    """
    folder, slash, base = name.removeprefix("./").rpartition("/")
    stem, _, suffix = base.partition(".")
    return f"{folder}{slash}{stem}", suffix.lower()


@dataclass(slots=True)
class _Record:
    """What was read of the members of one stem."""

    stem: str
    number: int
    data: dict[str, bytes] = field(default_factory=dict)
    suffixes: list[str] = field(default_factory=list)
    too_long: set[str] = field(default_factory=set)

    def add(self, suffix: str, data: bytes | None, is_long: bool) -> None:
        """One more member; its bytes if they are of use."""
        self.suffixes.append(suffix)
        if data is not None:
            self.data[suffix] = data
            self.too_long |= {suffix} if is_long else set()

    def raw(self, index: int, options: ReadOptions) -> Raw:
        """The record, or what is wrong with it."""
        asked = options.text_member
        text = asked if asked is not None else TEXT if TEXT in self.data else JSON
        fields = self.data.get(JSON, b"{}") if text != JSON else None
        reason, detail = self._fault(text, options)
        if reason is not None:
            stem = self.stem.encode(errors="backslashreplace").decode()
            return Raw(index, self.number, self.data.get(text, b"")[:1024], reason, detail, member=stem)
        return Raw(index, self.number, self.data[text], member=self.stem, fields=fields)

    def _fault(self, text: str, options: ReadOptions) -> tuple[str | None, str]:
        try:
            self.stem.encode()
        except UnicodeEncodeError:
            return "bad_member", "a member's name in UTF-8"
        if any(self.suffixes.count(suffix) > 1 for suffix in self.data):
            return "bad_member", f"one member of each suffix; there are {_listed(self.suffixes)}"
        if text not in self.data:
            wanted = f".{text}" if options.text_member else f".{TEXT} or .{JSON}"
            return "text_missing", f"a member {wanted}; members found: {_listed(self.suffixes)}"
        if self.too_long:
            return "too_long", f"at most {options.max_line_bytes:,} bytes"
        return None, ""


def _listed(suffixes: list[str]) -> str:
    return ", ".join(f".{suffix}" for suffix in suffixes[:10])


def _members(stream: IO[bytes], options: ReadOptions) -> Iterator[tuple[tarfile.TarInfo, bytes | None]]:
    """Files of the archive, with the bytes of those that a record is made of.

    Raises:
        TruncatedError: the archive stops before its end mark, or is damaged.
    """
    read = {TEXT, JSON} if options.text_member is None else {options.text_member}
    read |= {JSON} if _needs_fields(options) else set()
    with truncation():
        archive = _Archive.open(fileobj=stream, mode="r|", tarinfo=_Header, ignore_zeros=True)
    with archive:
        while True:
            with truncation():
                member = archive.next()
                archive.members.clear()  # type: ignore[attr-defined]  # else they would grow with the archive
            if member is None:
                return
            if member.isdir() or any(
                part.startswith(".") for part in member.name.removeprefix("./").split("/")
            ):
                continue
            data = None
            if member.isreg() and _split(member.name)[1] in read:
                with truncation():
                    content = archive.extractfile(member)
                    assert content is not None
                    data = content.read(min(member.size, options.max_line_bytes))
            yield member, data


def _needs_fields(options: ReadOptions) -> bool:
    """Whether anything but the text is taken from a record."""
    return bool(not options.place_ids or options.group_key or options.tag_keys or options.units_key)


class _BehindEndError(TruncatedError):
    """The archive is whole, and something stands behind it."""


class _Archive(tarfile.TarFile):
    """A tar that knows whether its end mark was seen."""

    ended = False


class _Header(tarfile.TarInfo):
    """Headers of members; what the library takes for the end of the archive without a word is an error."""

    @classmethod
    def fromtarfile(cls, archive: Any) -> _Header:
        try:
            header = super().fromtarfile(archive)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined]
            archive.ended = True
            raise
        except tarfile.EmptyHeaderError as error:  # type: ignore[attr-defined]
            if not archive.ended:
                raise TruncatedError("it has no end mark") from error
            raise
        except tarfile.HeaderError as error:
            if archive.ended:
                raise _BehindEndError("bytes behind its end that are no tar") from error
            raise TruncatedError(f"a header that is none: {error}") from error
        archive.ended = False
        return header
