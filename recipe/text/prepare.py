"""Text → pool: two passes, on all cores, in bounded memory; an interrupted one goes on."""

from __future__ import annotations

import errno
import json
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.errors import Problem, RecipeError
from recipe.pools.adopting import check_extends
from recipe.pools.card import CARD_NAME
from recipe.pools.opening import open_pool
from recipe.pools.pool import Pool
from recipe.pools.sections import Section
from recipe.pools.settings import PoolSettings, token_dtype
from recipe.pools.workplace import unfinished_folder, write_durably
from recipe.pools.writer import PoolWriter
from recipe.text.documents import Tally
from recipe.text.engines import check_engine
from recipe.text.first_pass import tokenise
from recipe.text.hold import clear, held, remove
from recipe.text.inputs import TASKS_VERSION, FileInput, Input, MadeInput
from recipe.text.preparation import (
    PrepareOptions,
    Progress,
    Tell,
    differences,
    preparation_key,
    settings_of,
    tell_nobody,
)
from recipe.text.quarantine import gathered_tally, write_quarantine
from recipe.text.sources import list_sources
from recipe.text.spill import has_finished, merged, remove_unfinished
from recipe.text.tokenise import Work
from recipe.text.tokenizers import Tokenizer

RECORD_NAME = "prepare.json"
"""In a prepared pool: settings, inputs with their hashes, counts."""
QUARANTINE_NAME = "quarantine.jsonl"
"""In a prepared pool, if any record was left out: source, line (or row, member), reason."""
FORMAT = 1

_STATE = "state.json"
_READ = "read.json"
_NO_SPACE = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_TELL_DOCUMENTS = 128


def prepare_pool(
    sources: Sequence[str | Path],
    out: str | Path,
    tokenizer: Tokenizer,
    options: PrepareOptions | None = None,
    *,
    progress: Tell = tell_nobody,
) -> Pool:
    """Tokenise JSON lines, tables, tars and text trees into a pool, in a seeded global document shuffle.

    The bytes of the pool depend on the contents and names of the sources, the tokenizer's content and
    the options, not on workers, places or interruptions. A pool made from the same is opened as it is.
    An interrupted preparation of the same goes on; what is left of another one is removed and told.

    Args:
        sources: files and folders, of this machine or of a store (``s3://bucket/web``).
        out: folder of the pool.
        tokenizer: from `load_tokenizer`.
        options: seed, workers, reading.
        progress: called with what happens.

    Raises:
        RecipeError: unreadable sources, bad records (``on_bad: error``), another pool at ``out``, a
            full disk. Nothing that could be taken for a whole pool is left.
    """
    options = options or PrepareOptions()
    folder = _checked(Path(out))
    files = list_sources(sources, options.read, leave_out=(folder, unfinished_folder(folder)))
    return _Preparation(FileInput(files, options.read), folder, tokenizer, options, progress).run()


def _checked(out: Path) -> Path:
    """The pool's folder, if it can be one.

    Raises:
        RecipeError: it is no name of a folder, or a file is on the way to it.
    """
    if out.name in ("", "..") or "\0" in str(out):
        given, fix = repr(str(out)), "give the pool a name, for example pools/web"
        raise RecipeError.single("prepare", "OUT", given=given, expected="a folder of its own", fix=fix)
    above = next((path for path in out.parents if path.exists()), None)
    if above is not None and not above.is_dir():
        given, fix = f"{above}, which is a file", "choose another folder, or move the file away"
        raise RecipeError.single("prepare", str(out), given=given, expected="a folder above it", fix=fix)
    return out


def prepare_documents(
    source: MadeInput,
    out: str | Path,
    tokenizer: Tokenizer,
    options: PrepareOptions | None = None,
    *,
    progress: Tell = tell_nobody,
) -> Pool:
    """As `prepare_pool`, for documents a program makes; what it says of itself is kept in the card."""
    return _Preparation(source, Path(out), tokenizer, options or PrepareOptions(), progress).run()


@dataclass(frozen=True, slots=True)
class _Read:
    """What the first pass found."""

    tasks: int
    contents: list[dict[str, Any]]


class _Preparation:
    """One preparation, from its sources to its pool."""

    def __init__(
        self, source: Input, out: Path, tokenizer: Tokenizer, options: PrepareOptions, tell: Tell
    ) -> None:
        check_engine(options)
        self.source, self.out, self.tokenizer, self.options, self.tell = source, out, tokenizer, options, tell
        self.extends = None if options.extends is None else open_pool(options.extends, out.name)
        self.settings = settings_of(tokenizer, options, self.extends)
        if self.extends is not None:
            made_by = {"tokenizer": self.settings["tokenizer"], "tokenizer_name": tokenizer.name}
            marks = {"vocab_size": tokenizer.vocab_size, "eos": tokenizer.eos}
            check_extends(self.extends, PoolSettings(**marks, **made_by), out)  # type: ignore[arg-type]
        self.spill = out.with_name(f".{out.name}.prepare")

    def run(self) -> Pool:
        """The pool: as it is, or made."""
        if (pool := self._existing()) is not None:
            return pool
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with held(self.spill, lambda: self._say(f"waiting for another process that prepares {self.out}")):
            try:
                self._restore()
                with self._disk_errors():
                    pool = self._existing()  # it may have been made while this process waited
                    pool = self._second_pass(self._first_pass()) if pool is None else pool
            except BaseException:
                if not has_finished(self.spill):
                    remove(self.spill)
                raise
            remove(self.spill)
            return pool

    def _existing(self) -> Pool | None:
        """The pool at ``out`` if it was made from the same; None: nothing there, or to be replaced.

        Raises:
            RecipeError: something else is there.
        """
        if not _is_used(self.out):
            return None
        record = _load(self.out / RECORD_NAME)
        if not (self.out / CARD_NAME).is_file():
            raise self._refused("no pool", "choose another folder: only a pool is ever written over")
        found = [
            Problem(key, new, f"{old} (the pool that is there)", "--overwrite, or another folder")
            for key, old, new in differences(record.get("settings", {}), self.settings)
        ]
        if record:
            changed = self.source.is_unchanged(record["inputs"])
            found += [
                Problem(name, "changed, new or gone", "as in the pool", "--overwrite, or another folder")
                for name in changed[:20]
            ]
        if record and not found:
            self._say(f"{self.out} is up to date")
            return open_pool(self.out, self.out.name)
        if self.options.overwrite:
            return None
        if not record:
            raise self._refused("a pool that prepare did not make", "--overwrite, or another folder")
        raise RecipeError(f"{self.out} was prepared from something else", found)

    def _first_pass(self) -> _Read:
        """Tokenise what is not tokenised yet."""
        state = json.loads(
            json.dumps({"settings": self.settings, "inputs": self.source.state(), "tasks": TASKS_VERSION})
        )
        before = _load(self.spill / _STATE)
        if before == state:
            self._say("going on where the last preparation stopped")
        else:
            if before:
                self._say("what is left of an interrupted preparation of something else is removed")
            clear(self.spill)
            write_durably(self.spill / _STATE, json.dumps(state).encode())
        if finished := _load(self.spill / _READ):
            return _Read(finished["tasks"], finished["contents"])
        remove_unfinished(self.spill)
        work = Work(
            tokenizer=self.tokenizer,
            fingerprint=self.settings["tokenizer"],
            seed=self.options.seed,
            read=self.options.read,
            files=self.source.files,
        )
        tasks = tokenise(self.source, work, self.spill, self.options, self.tell)
        read = _Read(tasks, self.source.contents())
        write_durably(
            self.spill / _READ, json.dumps({"tasks": read.tasks, "contents": read.contents}).encode()
        )
        return read

    def _second_pass(self, read: _Read) -> Pool:
        """Write the documents in the order of their keys."""
        tally = gathered_tally(self.spill, read.tasks)
        path = self.spill / "new" if _is_used(self.out) else self.out
        if path != self.out and path.exists():
            shutil.rmtree(path)
        record = {
            "format": FORMAT,
            "settings": self.settings,
            "inputs": read.contents,
            "read": tally.to_plain(),
        }
        source = {
            "prepared": preparation_key(self.settings, _without_times(read.contents)),
            **({"files": len(read.contents)} if self.source.files else self.source.state()[0]),
            "read": tally.to_plain(),
        }
        with PoolWriter(
            path,
            vocab_size=self.tokenizer.vocab_size,
            eos=self.tokenizer.eos,
            tokenizer=self.settings["tokenizer"],
            tokenizer_name=self.tokenizer.name,
            part_tokens=self.options.part_tokens,
            shuffled=self.extends is None,
            seed=self.options.seed,
            source=source,
            resume=True,
            extends=self.extends,
            repeats=self.options.repeats,
        ) as writer:
            self._write(writer, read, tally.kept)
            folder = unfinished_folder(path)
            write_durably(folder / RECORD_NAME, json.dumps(record, indent=1, ensure_ascii=False).encode())
            if tally.quarantined:
                write_quarantine(folder / QUARANTINE_NAME, self.spill, read.tasks)
            if writer.settings.repeats is not None:
                self._say("looking for what repeats inside documents and groups")
            pool = writer.close(dropped=_dropped(tally, self.extends))
        return pool if path == self.out else self._replace(pool, path)

    def _write(self, writer: PoolWriter, read: _Read, total: int) -> None:
        dtype = token_dtype(self.tokenizer.vocab_size)
        before = 0 if self.extends is None else self.extends.num_documents
        for entry in merged(self.spill, read.tasks, dtype, writer.num_documents - before):
            id, group, tags, source, *said = entry.row
            sections = _sections(said[0]) if said and said[0] is not None else None
            rest = {"tags": tags, "source": source, "sections": sections, "lead": said[1] if said[1:] else ()}
            writer.add(entry.tokens, id=id, group=group, **rest)
            if writer.num_documents % _TELL_DOCUMENTS == 0:
                self.tell(Progress(phase="write", done=writer.num_documents - before, total=total))
        self.tell(Progress(phase="write", done=writer.num_documents - before, total=total))

    def _replace(self, pool: Pool, path: Path) -> Pool:
        """Put the new pool in the place of the old one."""
        pool.close()
        self.out.rename(self.spill / "old")
        path.rename(self.out)
        return open_pool(self.out, self.out.name)

    def _restore(self) -> None:
        """Put the old pool back where a replacement was cut between its two renames."""
        old = self.spill / "old"
        if old.exists() and not self.out.exists():
            old.rename(self.out)
        elif old.exists():
            shutil.rmtree(old)

    def _say(self, text: str) -> None:
        self.tell(Progress(phase="note", text=text))

    def _refused(self, given: str, fix: str) -> RecipeError:
        return RecipeError.single(
            "prepare", str(self.out), given=given, expected="a new folder, or the same pool", fix=fix
        )

    @contextmanager
    def _disk_errors(self) -> Iterator[None]:
        """A full disk as a fault that says what is needed; finished tasks stay, halves go."""
        try:
            yield
        except OSError as error:
            if error.errno not in _NO_SPACE:
                raise
            remove_unfinished(self.spill)
            written = sum(path.stat().st_size for path in self.spill.iterdir())
            free = shutil.disk_usage(self.spill).free
            needed = max(2 * written, 2 * (self.source.total_bytes or 0))
            raise RecipeError.single(
                "prepare",
                str(self.spill),
                given=f"no space left: {free:,} bytes free, {written:,} written",
                expected=f"about {needed:,} bytes, for tokens between the passes and for the pool",
                fix="free space and run the same again, it goes on; or remove the folder to give up",
            ) from error


def _is_used(path: Path) -> bool:
    """Whether something is there; an empty folder is nothing."""
    return path.exists() and not (path.is_dir() and not any(path.iterdir()))


def _sections(rows: list[list[Any]]) -> list[Section]:
    """The sections of a document, as the first pass wrote them."""
    return [Section(start, id, tuple(needs)) for start, id, needs in rows]


def _dropped(tally: Tally, extends: Pool | None) -> dict[str, int]:
    """Records left out, by reason, of the pool that is extended too."""
    empty = {"empty": tally.empty} if tally.empty else {}
    dropped = {**empty, **dict(sorted(tally.quarantined.items()))}
    before = {} if extends is None else extends.card.dropped
    return {reason: before.get(reason, 0) + dropped.get(reason, 0) for reason in {**before, **dropped}}


def _without_times(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the pool depends on: a copied or touched file is the same."""
    return [{key: value for key, value in entry.items() if key != "mtime_ns"} for entry in contents]


def _load(path: Path) -> dict[str, Any]:
    """A JSON object, or nothing where it is missing or damaged."""
    try:
        data = json.loads(path.read_bytes())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return data if isinstance(data, dict) else {}
