"""Text → pool: two passes, on all cores, in bounded memory; an interrupted one goes on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from recipe.errors import ContentError, RecipeError
from recipe.pools.beside import COPIES_NAME, QUARANTINE_NAME, RECORD_NAME, sealed_record
from recipe.pools.card import json_object
from recipe.pools.copies import copies_in, extend_copies
from recipe.pools.pool import Pool
from recipe.pools.sections import Section
from recipe.pools.settings import token_dtype
from recipe.pools.split_record import has_record, write_record
from recipe.pools.workplace import unfinished_folder, write_durably
from recipe.pools.writer import PoolWriter
from recipe.text.copies import noted_copies
from recipe.text.counts import Counted
from recipe.text.duplicates import AS_DUPLICATE, AS_OTHER_SPLIT, Placed, Rule, place_documents
from recipe.text.engines import check_engine
from recipe.text.extending import check_groups, check_new_ids
from recipe.text.first_pass import tokenise
from recipe.text.hold import clear, held, remove
from recipe.text.inputs import TASKS_VERSION, FileInput, Input, MadeInput
from recipe.text.preparation import (
    PrepareOptions,
    Progress,
    Tell,
    hidden,
    preparation_key,
    tell_nobody,
)
from recipe.text.quarantine import check_usable, gathered_tally, write_quarantine
from recipe.text.sources import SourceFile, list_sources, tables_as_text
from recipe.text.space import disk_errors
from recipe.text.spill import has_finished, merged, remove_unfinished
from recipe.text.splits import check_counts
from recipe.text.targets import Target, targets_of
from recipe.text.tokenise import Work
from recipe.text.tokenizers import Tokenizer

FORMAT = 1

_STATE = "state.json"
_READ = "read.json"
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
    files = _files(sources, folder, options, progress)
    if options.split is not None:
        raise ValueError("a split makes several pools: call prepare_splits")
    return _Preparation(FileInput(files, options.read), folder, tokenizer, options, progress).run()[0]


def prepare_splits(
    sources: Sequence[str | Path],
    out: str | Path,
    tokenizer: Tokenizer,
    options: PrepareOptions,
    *,
    progress: Tell = tell_nobody,
) -> dict[str, Pool]:
    """As `prepare_pool`, for the pools of a split, in one reading: ``out/train``, ``out/validation``, ….

    A document's split is a function of the salt and of its group, or else of its tokens: see
    `recipe.pools.splits`. No text is in two of them: where documents of groups in several splits are equal,
    those of the smallest one stay (of equal shares, the one named last), and the others are left out, counted
    as ``other_split``. With ``extends``, the folder of the splits that are extended: their documents stay
    where they are.

    Raises:
        RecipeError: as for `prepare_pool`; or a split would hold no document.
    """
    if options.split is None:
        raise ValueError("options.split says which pools there are")
    folder = _checked(Path(out))
    files = _files(sources, folder, options, progress)
    pools = _Preparation(FileInput(files, options.read), folder, tokenizer, options, progress).run()
    return dict(zip(options.split.names, pools, strict=True))


def _files(
    sources: Sequence[str | Path], folder: Path, options: PrepareOptions, tell: Tell
) -> tuple[SourceFile, ...]:
    apart = (folder, unfinished_folder(folder))
    return list_sources(sources, options.read, leave_out=apart, on_hidden=lambda all: tell(hidden(all)))


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
    return _Preparation(source, Path(out), tokenizer, options or PrepareOptions(), progress).run()[0]


@dataclass(frozen=True, slots=True)
class _Read:
    """What the first pass found."""

    tasks: int
    contents: list[dict[str, Any]]


class _Preparation:
    """One preparation, from its sources to its pools."""

    def __init__(
        self, source: Input, out: Path, tokenizer: Tokenizer, options: PrepareOptions, tell: Tell
    ) -> None:
        check_engine(options)
        self.source, self.out, self.tokenizer, self.options, self.tell = source, out, tokenizer, options, tell
        self.targets = targets_of(out, tokenizer, options)
        self.settings = [dict(target.settings) for target in self.targets]
        extended = tuple(target.extends for target in self.targets)
        self.rule = Rule(drop=options.duplicates == "drop", split=options.split, extends=extended)
        self.spill = out.with_name(f".{out.name}.prepare")

    def run(self) -> list[Pool]:
        """The pools: as they are, or made."""
        if not self.spill.exists() and (pools := self._all_existing()) is not None:
            return pools
        self.out.parent.mkdir(parents=True, exist_ok=True)
        with held(self.spill, lambda: self._say(f"waiting for another process that prepares {self.out}")):
            try:
                for target in self.targets:
                    target.restore(self.spill)
                with disk_errors(self.spill, self.source.total_bytes):
                    pools = self._all_existing()  # they may have been made while this process waited
                    pools = self._made() if pools is None else pools
            except BaseException as error:
                if isinstance(error, ContentError) or not has_finished(self.spill):
                    remove(self.spill)
                raise
            remove(self.spill)
            return pools

    def _all_existing(self) -> list[Pool] | None:
        """The pools that are there, if none is left to be made."""
        found = [t.existing(self.source, overwrite=self.options.overwrite) for t in self.targets]
        pools = [pool for pool in found if pool is not None]
        if len(pools) < len(found) or not (self.options.split is None or has_record(self.out, pools)):
            return None
        for pool in pools:
            self._say(f"{pool.path} is up to date")
        return pools

    def _made(self) -> list[Pool]:
        self._tell_tables()
        read = self._first_pass()
        tally, placed = gathered_tally(self.spill, read.tasks), None
        check_usable(self.spill, read.tasks, tally)
        if self.rule.is_needed:
            self._say("looking for equal documents")
            placed = place_documents(self.spill, read.tasks, self.rule)
            duplicate = placed.total(AS_DUPLICATE) if self.rule.drop else None
            tally.leave_out(duplicate, None if self.rule.split is None else placed.total(AS_OTHER_SPLIT))
            tally.check()
        if self.rule.split is not None and placed is not None:
            check_counts(self.out, self.rule, placed, tally.kept)
        self._check_extended(read, placed)
        for target in self.targets:
            is_there = target.existing(self.source, overwrite=self.options.overwrite) is not None
            if not is_there and not target.is_made(self.spill):
                with target.named():
                    self._second_pass(read, Counted(tally, placed), target)
        pools = [target.put(self.spill) for target in self.targets]
        if self.rule.split is not None:
            (self.out / QUARANTINE_NAME).unlink(missing_ok=True)
            if tally.quarantined:
                write_quarantine(self.out / QUARANTINE_NAME, self.spill, read.tasks)
            write_record(self.out, self.rule.split, pools, tally.to_plain())
        return pools

    def _tell_tables(self) -> None:
        """Say which tables are read as one text each, unless somebody asked for text."""
        if self.options.read.format == "auto" and (found := tables_as_text(self.source.files)):
            told = ", ".join(f"{count:,} {suffix}" for suffix, count in found.items())
            self._say(
                f"note: read as one text a file, not as rows or records: {told} (--format jsonl reads lines "
                "of JSON, --exclude leaves files out, --format text says that it is meant)"
            )

    def _check_extended(self, read: _Read, placed: Placed | None) -> None:
        """Refuse groups and ids that an extended pool has, before anything is written."""
        for target in self.targets:
            if target.extends is not None:
                chosen = None if placed is None else placed.chosen(target.split)
                check_groups(self.spill, read.tasks, target.extends, chosen)
                check_new_ids(self.spill, read.tasks, target.extends, chosen)

    def _first_pass(self) -> _Read:
        """Tokenise what is not tokenised yet."""
        settings = self.settings[0] if self.options.split is None else self.settings
        state = json.loads(
            json.dumps({"settings": settings, "inputs": self.source.state(), "tasks": TASKS_VERSION})
        )
        before = json_object(self.spill / _STATE)
        if before == state:
            self._say("going on where the last preparation stopped")
        else:
            if before:
                self._say("what is left of an interrupted preparation of something else is removed")
            clear(self.spill)
            write_durably(self.spill / _STATE, json.dumps(state).encode())
        if finished := json_object(self.spill / _READ):
            return _Read(finished["tasks"], finished["contents"])
        remove_unfinished(self.spill)
        split = self.options.split
        work = Work(
            tokenizer=self.tokenizer,
            fingerprint=self.targets[0].settings["tokenizer"],
            seed=self.options.seed,
            read=self.options.read,
            files=self.source.files,
            salt=None if not self.rule.is_needed else 0 if split is None else split.salt,
        )
        tasks = tokenise(self.source, work, self.spill, self.options, self.tell)
        read = _Read(tasks, self.source.contents())
        write_durably(
            self.spill / _READ, json.dumps({"tasks": read.tasks, "contents": read.contents}).encode()
        )
        return read

    def _second_pass(self, read: _Read, counted: Counted, target: Target) -> None:
        """Write the documents of one pool in the order of their keys."""
        path = target.place(self.spill)
        said = {"read": counted.tally.to_plain()}
        said |= counted.split_of(self.rule, target)
        record = {"format": FORMAT, "settings": target.settings, "inputs": read.contents, **said}
        source = {
            "prepared": preparation_key(target.settings, _without_times(read.contents)),
            **({"files": len(read.contents)} if self.source.files else self.source.state()[0]),
            **said,
        }
        with PoolWriter(
            path,
            vocab_size=self.tokenizer.vocab_size,
            eos=self.tokenizer.eos,
            tokenizer=target.settings["tokenizer"],
            tokenizer_name=self.tokenizer.name,
            part_tokens=self.options.part_tokens,
            shuffled=target.extends is None,
            seed=self.options.seed,
            source=source,
            resume=True,
            extends=target.extends,
            repeats=self.options.repeats,
        ) as writer:
            self._write(writer, read, counted, target)
            folder = unfinished_folder(path)
            if counted.tally.quarantined and self.options.split is None:
                write_quarantine(folder / QUARANTINE_NAME, self.spill, read.tasks)
            self._write_copies(folder, target)
            write_durably(folder / RECORD_NAME, sealed_record(folder, record))
            if writer.settings.repeats is not None:
                self._say("looking for what repeats inside documents and groups")
            writer.close(dropped=counted.dropped(target)).close()

    def _write_copies(self, folder: Path, target: Target) -> None:
        """Keep what left-out copies of the extended pool's documents say more, now and before."""
        if target.extends is None:
            return
        before, new = target.extends.layout.folder / COPIES_NAME, noted_copies(self.spill, target.split)
        extend_copies(folder / COPIES_NAME, before, new)
        if count := sum(1 for _ in copies_in(new)):
            self._say(
                f"note: {count:,} documents of {target.extends.path} equal new ones whose tags say more: "
                f"they stay as they are, {COPIES_NAME} has the tags; `recipe pools dedup` of it joins them"
            )

    def _write(self, writer: PoolWriter, read: _Read, counted: Counted, target: Target) -> None:
        dtype, placed = token_dtype(self.tokenizer.vocab_size), counted.placed
        before = 0 if target.extends is None else target.extends.num_documents
        chosen, total = None, counted.tally.kept
        if placed is not None:
            chosen, total = placed.chosen(target.split), placed.count(target.split)
        start = writer.num_documents - before
        for entry in merged(self.spill, read.tasks, dtype, start, chosen=chosen):
            id, group, tags, source, *said = entry.row
            if placed is not None:
                tags = placed.tags.of(entry.number) or tags
            sections = _sections(said[0]) if said and said[0] is not None else None
            rest = {"tags": tags, "source": source, "sections": sections, "lead": said[1] if said[1:] else ()}
            writer.add(entry.tokens, id=id, group=group, **rest)
            if writer.num_documents % _TELL_DOCUMENTS == 0:
                self.tell(Progress(phase="write", done=writer.num_documents - before, total=total))
        self.tell(Progress(phase="write", done=writer.num_documents - before, total=total))

    def _say(self, text: str) -> None:
        self.tell(Progress(phase="note", text=text))


def _sections(rows: list[list[Any]]) -> list[Section]:
    """The sections of a document, as the first pass wrote them."""
    return [Section(start, id, tuple(needs)) for start, id, needs in rows]


def _without_times(contents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What the pool depends on: a copied or touched file is the same."""
    return [{key: value for key, value in entry.items() if key != "mtime_ns"} for entry in contents]
