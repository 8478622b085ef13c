"""First pass: records → tokens → sorted runs on disk, on all cores, a task at a time."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from itertools import count
from multiprocessing import connection
from pathlib import Path
from typing import Any

import numpy as np

from recipe.errors import Problem, RecipeError
from recipe.pools.sections import Section
from recipe.pools.settings import token_dtype
from recipe.text.documents import MAX_PROBLEMS, Document, Refusal, Tally
from recipe.text.inputs import Batch, Input
from recipe.text.leads import lead_of
from recipe.text.preparation import Progress, Tell
from recipe.text.readers import parse_batch
from recipe.text.records import Raw
from recipe.text.sections import section_starts, token_sections
from recipe.text.shuffle import unit_key
from recipe.text.sources import ReadOptions, SourceFile
from recipe.text.spill import Entry, encode_run, repeated_ids, report_file, store_run
from recipe.text.tokenizers import ByteTokenizer, Tokenizer

#: Characters that are encoded in one call.
ENCODE_CHARACTERS = 1 << 20
#: Stored bytes below which other processes would start later than this one is done.
SMALL_BYTES = 4 << 20
SMALL_BYTES_OF_BYTES = 64 << 20


PLACE_IDS = "--place-ids takes file and line for the id; --id-key names another key"


@dataclass(frozen=True, kw_only=True)
class Work:
    """What every task needs."""

    folder: Path
    tokenizer: Tokenizer
    fingerprint: str
    seed: int
    read: ReadOptions
    files: tuple[SourceFile, ...]

    def do(self, number: int, batch: Batch) -> None:
        """Tokenise one batch and store it.

        Raises:
            RecipeError: ``on_bad: error`` and a record gives no document.
        """
        tally = Tally()
        documents, refusals, places = self._documents(number, batch, tally)
        entries = []
        for (document, place), tokens in zip(
            zip(documents, places, strict=True), self._encode(documents), strict=True
        ):
            if not len(tokens):
                tally.kept, tally.empty = tally.kept - 1, tally.empty + 1
                tally.repaired -= document.repaired
                continue
            row = (document.id, document.group, dict(document.tags), document.place)
            row += self._sections(document)
            row += self._lead(document, len(row) - 4)
            key = unit_key(self.seed, document)
            entries.append(Entry(key=key, file=place[0], line=place[1], tokens=tokens, row=row))
        tally.check()
        report = {"tally": tally.to_plain(), "refused": [refusal.to_plain() for refusal in refusals]}
        run = encode_run(entries, token_dtype(self.tokenizer.vocab_size), report)
        store_run(self.folder, number, run)

    def _documents(
        self, number: int, batch: Batch, tally: Tally
    ) -> tuple[list[Document], list[Refusal], list[tuple[int, int]]]:
        """Documents with text, refusals, and the (file, line) by which a group is ordered."""
        records = [item for item in batch if isinstance(item, Raw)]
        if records:
            documents, refusals = parse_batch(records, self.files, self.read, tally)
            index = {self.files[raw.file].name: raw.file for raw in records}
            return documents, refusals, [(index[d.source], d.line or 0) for d in documents]
        made = [item for item in batch if isinstance(item, Document)]
        for document in made:
            if document.text:
                tally.keep(document)
            else:
                tally.skip_empty()
        places = [(number, place) for place, document in enumerate(made) if document.text]
        return [document for document in made if document.text], [], places

    def _lead(self, document: Document, said: int) -> tuple[Any, ...]:
        """What stands in front of a document, behind as much as is said of it anyway (its sections)."""
        if self.read.marker is None:
            return ()
        lead = lead_of(document, self.read.marker, self.tokenizer)
        return (None, lead)[said:] if lead else ()

    def _sections(self, document: Document) -> tuple[Any, ...]:
        """The document's sections in tokens, if anything is said of them."""
        found = document.sections
        if found is None and self.read.sections is not None:
            found = tuple(Section(start) for start in section_starts(document.text, self.read.sections))
        if found is None:
            return ()
        if all(section == Section(0) for section in found):
            return ([],)
        try:
            return (token_sections(found, self.tokenizer.offsets(document.text)),)
        except ValueError as error:
            raise RecipeError.single(
                "sections", document.place, given=str(error), expected="a token of its own for each section",
                fix="join the sections, or leave out their ids",
            ) from error  # fmt: skip

    def _encode(self, documents: list[Document]) -> Iterator[np.ndarray]:
        """Ids of each document, in calls of bounded size."""
        texts: list[str] = []
        size = 0
        for document in documents:
            texts.append(document.text)
            size += len(document.text)
            if size >= ENCODE_CHARACTERS:
                yield from self.tokenizer.encode_batch(texts)
                texts, size = [], 0
        if texts:
            yield from self.tokenizer.encode_batch(texts)


def tokenise(source: Input, work: Work, num_workers: int, tell: Tell) -> int:
    """Run every task that is not done yet; the number of tasks.

    Raises:
        RecipeError: a bad record (``on_bad: error``), ids that are not unique, or a process that died.
    """
    num_tasks = _tokenise(source, work, num_workers, tell)
    check_ids(work.folder, num_tasks)
    return num_tasks


def check_ids(folder: Path, num_tasks: int) -> None:
    """Refuse ids that several documents of these tasks have.

    Raises:
        RecipeError: naming the first ones and both places.
    """
    found = repeated_ids(folder, num_tasks, MAX_PROBLEMS)
    problems = [
        Problem(two, f"id {id!r}, as {one}", "an id of its own for each document", PLACE_IDS)
        for id, one, two in found
    ]
    if problems:
        raise RecipeError("ids that several documents have", problems)


def _tokenise(source: Input, work: Work, num_workers: int, tell: Tell) -> int:
    small = SMALL_BYTES_OF_BYTES if isinstance(work.tokenizer, ByteTokenizer) else SMALL_BYTES
    if num_workers == 1 or (source.total_bytes or 0) < small:
        return _run(source, work, lambda number, batch: work.do(number, batch), tell)
    return _run_in_processes(source, work, num_workers, tell)


def _run(source: Input, work: Work, do: Callable[[int, Batch], None], tell: Tell) -> int:
    number = 0
    for number, (batch, done) in enumerate(source.batches(), start=1):
        if not report_file(work.folder, number - 1).exists():
            do(number - 1, batch)
        if number >= 8 and number & (number - 1) == 0:  # hours before the end, at little cost
            done_tasks = (n for n in count() if not report_file(work.folder, n).exists())
            check_ids(work.folder, next(done_tasks))
        tell(Progress(phase="read", done=done, total=source.total_bytes))
    return number


def _run_in_processes(source: Input, work: Work, num_workers: int, tell: Tell) -> int:
    """Tasks in flight are bounded, so that reading does not run ahead of tokenising."""
    context = multiprocessing.get_context("spawn")
    running: deque[Future[None]] = deque()
    pool = ProcessPoolExecutor(num_workers, context, initializer=_begin, initargs=(work,))

    def do(number: int, batch: Batch) -> None:
        running.append(pool.submit(_do, number, batch))
        if len(running) > num_workers + 1:
            running.popleft().result()

    try:
        num_tasks = _run(source, work, do, tell)
        while running:
            running.popleft().result()
        return num_tasks
    except BrokenProcessPool as error:
        raise RecipeError.single(
            "prepare",
            "workers",
            given="a process that died",
            expected="all processes to finish (out of memory? or a script without a main guard)",
            fix="run the same again, it goes on where it stopped; with fewer --workers it needs less memory",
        ) from error
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


_work: Work | None = None


def _begin(work: Work) -> None:
    """In a new process: one tokenizer, one thread; it ends with the process that started it."""
    global _work
    # a thread of the library's own has memory of its own: a quarter faster than this one would be
    os.environ["TOKENIZERS_PARALLELISM"], os.environ["RAYON_NUM_THREADS"] = "true", "1"
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()
    if work.tokenizer.fingerprint() != work.fingerprint:
        raise RuntimeError(f"the tokenizer {work.tokenizer.spec} changed while text was prepared")
    _work = work


def _end_with_parent() -> None:
    """A killed parent closes nothing: without this its workers would wait, and write, for ever."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    connection.wait([parent.sentinel])
    os._exit(1)


def _do(number: int, batch: Batch) -> None:
    assert _work is not None
    _work.do(number, batch)
