"""Writing a pool: documents in their final order, in bounded memory, resumable to the part."""

from __future__ import annotations

import json
import operator
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from recipe.errors import ContentError, Problem, RecipeError
from recipe.pools.adopting import adopt_parts, check_extends, extended_source
from recipe.pools.card import CARD_NAME, read_card
from recipe.pools.closing import close_pool, remove_notes
from recipe.pools.opening import open_pool
from recipe.pools.part import Batch, FinishedPart, PartWriter
from recipe.pools.pool import Pool
from recipe.pools.repeats import REPEATS, stretch_of
from recipe.pools.sections import Section, plain
from recipe.pools.settings import PART_TOKENS, SETTINGS_NAME, PoolSettings
from recipe.pools.workplace import Workplace, write_durably

_MAX_DOCUMENT = (1 << 31) - 1
_STAGE_TOKENS = 1 << 20
"""A document with more is written through, and takes no memory beside its own array."""
_STAGE_DOCUMENTS = 1 << 15
"""Of documents of a few tokens: what is said of each takes more memory than its tokens."""
_SHOWN_PROBLEMS = 5
_ENCODER = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False)


class PoolWriter:
    """Takes documents one by one and makes a pool of them when closed.

    The pool is written in ``<path>.partial`` and gets its name when it is whole. After an
    interruption, a writer with ``resume=True`` and the same settings keeps the finished parts:
    ``num_documents`` says how many documents they hold, and ``add`` goes on with the next one.
    As a context manager it gives up what is not closed when it is left.
    """

    def __init__(  # noqa: PLR0913  the settings of a pool, spelled out
        self,
        path: Path | str,
        *,
        vocab_size: int,
        eos: int | None = None,
        bos: int | None = None,
        tokenizer: str | None = None,
        tokenizer_name: str | None = None,
        part_tokens: int | None = None,
        shuffled: bool = False,
        seed: int | None = None,
        source: Mapping[str, Any] | None = None,
        resume: bool = False,
        extends: Pool | None = None,
        repeats: int | None = None,
    ) -> None:
        """Begin or continue a pool.

        Args:
            path: final folder; nothing may be there.
            vocab_size: ids are in 0..vocab_size - 1.
            eos: id written after each document.
            bos: id written before each document.
            tokenizer: content fingerprint of the tokenizer.
            tokenizer_name: what people call it.
            part_tokens: stored tokens of a part at most.
            shuffled: whether documents come in a seeded global order.
            seed: of that order.
            source: plain summary of what the pool is made from; part of what must be the same to resume.
            resume: keep the finished parts of an interrupted write with the same settings.
            extends: a pool whose documents come first; its files are linked, or copied to another disk.
            repeats: find what repeats inside units, in stretches of so many tokens; default: as ``extends``.

        Raises:
            RecipeError: impossible settings, something at ``path``, or another writer at work.
        """
        self.path = Path(path)
        repeats = stretch_of(self.path, repeats, extends)
        source = dict(source or {}) if repeats is None else {**(source or {}), REPEATS: repeats}
        self.settings = PoolSettings(
            vocab_size=vocab_size, eos=eos, bos=bos, tokenizer=tokenizer, tokenizer_name=tokenizer_name,
            part_tokens=PART_TOKENS if part_tokens is None else part_tokens, shuffled=shuffled, seed=seed,
            source=source if extends is None else extended_source(extends, source), repeats=repeats,
        )  # fmt: skip
        self.settings.check(self.path)
        if extends is not None:
            check_extends(extends, self.settings, self.path)
        self._resumable, self._extends = resume, extends
        self._bos = np.array([] if bos is None else [bos], dtype=np.int64)
        self._eos = np.array([] if eos is None else [eos], dtype=np.int64)
        self._stage = np.empty(_STAGE_TOKENS, dtype=np.int64)
        self._filled = 0
        self._long: tuple[NDArray[Any], NDArray[Any]] | None = None
        self._batch = Batch()
        self._part: PartWriter | None = None
        self._part_tokens = 0
        self._place = Workplace(self.path)
        try:
            self._finished = self._begin(extends)
        except BaseException:
            self._place.discard()
            raise
        self.num_documents = sum(part.record.documents for part in self._finished)
        if self._is_whole():
            self.num_documents = read_card(self._place.folder).num_documents
        """Documents taken so far, those of finished parts of an interrupted write included."""
        self._flushed = self.num_documents

    @property
    def num_finished_parts(self) -> int:
        """Parts that an interruption cannot lose any more."""
        return len(self._finished)

    def add(  # noqa: PLR0913  everything a pool keeps of a document
        self,
        tokens: ArrayLike,
        *,
        id: int | str | None = None,
        group: int | str | None = None,
        tags: Mapping[str, Any] | None = None,
        source: Any = None,
        sections: Sequence[int | Section] | None = None,
        lead: ArrayLike = (),
    ) -> None:
        """Take the next document.

        Args:
            tokens: ids, without marks; may be empty.
            id: unique in the pool; default: the document's number.
            group: documents of one group come one after another.
            tags: attributes of the document.
            source: where it came from: any plain value.
            sections: tokens of the document at which its sections begin, rising; with what each needs.
            lead: special tokens between the begin mark and the document, such as the name of its file.

        Raises:
            RecipeError: the document cannot be stored. Ids out of range, repeated document ids,
                scattered groups and needs that are not met are told by a later ``add`` or by ``close``.
            ValueError: sections that do not rise, or lie outside the document.
        """
        body = np.asarray(tokens)
        if body.ndim != 1 or (body.dtype.kind not in "iu" and body.size) or _is_huge(body):
            raise self._refused(
                f"an array of {body.dtype}{list(body.shape)}", "a one-dimensional array of integers"
            )
        front = self._front(lead)
        length = len(front) + body.size + len(self._eos)
        if length > _MAX_DOCUMENT:
            raise self._refused(f"{length} tokens", f"at most {_MAX_DOCUMENT}")
        if self._part_tokens + length > self.settings.part_tokens and self._part_tokens:
            self._finish_part()
        if self._filled + length > len(self._stage) or len(self._batch.ids) == _STAGE_DOCUMENTS:
            self._flush()
        is_long = length > len(self._stage)
        for tokens in () if is_long else (front, body, self._eos):
            self._put(tokens)
        batch = self._batch
        batch.ids.append(self.num_documents if id is None else self._key(id))
        batch.groups.append(None if group is None else self._key(group))
        batch.tags.append(_json(tags) if tags else None)
        batch.sources.append(None if source is None else _json(source))
        batch.sections.append(None if sections is None else plain(sections, body.size))
        batch.leads.append(len(front) - len(self._bos))
        batch.lengths.append(length)
        self._part_tokens += length
        self.num_documents += 1
        if is_long:
            self._long = front, body
            self._flush()

    def close(
        self, *, dropped: Mapping[str, Any] | None = None, beside: Callable[[Path], None] | None = None
    ) -> Pool:
        """Finish the pool and open it.

        Args:
            dropped: what was left out, by reason; plain values for the card.
            beside: writes what else belongs into the folder, which has its card by then, before it gets its
                name; called again after an interruption.

        Raises:
            RecipeError: an id is out of range or repeated, a group's documents are scattered, a section
                needs one that is not there, or the disk is full. The pool is not there then.
        """
        self._finish_part()
        with self._place.disk_errors():
            if not self._is_whole():
                close_pool(self._place.folder, self.settings, self._finished, dropped or {}, self._extends)
            if beside is not None:
                beside(self._place.folder)
            self._place.sync()
            remove_notes(self._place.folder)
            self._place.publish()
        return open_pool(self.path, self.path.name)

    def abort(self, *, keep_parts: bool = False) -> None:
        """Give up: remove everything, or all but the finished parts."""
        if self._part is not None:
            self._part.give_up()
            self._part = None
        if keep_parts:
            if not self._is_whole():
                self._keep(self._finished)
            self._place.release()
        else:
            self._place.discard()

    def __enter__(self) -> PoolWriter:
        """The writer itself."""
        return self

    def __exit__(self, kind: type[BaseException] | None, *error: object) -> None:
        """Give up what is not closed; finished parts stay only where a later write can use them."""
        if self._place.held:
            is_at_fault = kind is not None and issubclass(kind, ContentError)
            self.abort(keep_parts=self._resumable and not is_at_fault)

    def _begin(self, extends: Pool | None) -> list[FinishedPart]:
        """Finished parts of an earlier write with the same settings, and of the pool that is extended."""
        finished: list[FinishedPart] = []
        settings = self._place.folder / SETTINGS_NAME
        if self._resumable and settings.is_file() and settings.read_bytes() == self.settings.to_json():
            if self._is_whole():
                return finished
            while (file := self._part_file(len(finished))).is_file():
                finished.append(FinishedPart.from_json(file.read_bytes()))
        self._keep(finished)
        with self._place.disk_errors():
            write_durably(settings, self.settings.to_json())
            if extends is not None:
                finished += adopt_parts(extends, self._place.folder, len(finished))
        return finished

    def _is_whole(self) -> bool:
        """Whether everything is written, and the folder has to get its name only."""
        return (self._place.folder / CARD_NAME).is_file()

    def _keep(self, finished: Sequence[FinishedPart]) -> None:
        """Remove all but these parts."""
        self._place.keep_only({SETTINGS_NAME, *(name for part in finished for name in part.file_names)})

    def _part_file(self, number: int) -> Path:
        return self._place.folder / f"part-{number:05d}.json"

    def _front(self, lead: ArrayLike) -> NDArray[np.int64]:
        """What is stored in front of a body."""
        tokens = np.asarray(lead)
        if not tokens.size:
            return self._bos
        if tokens.ndim != 1 or tokens.dtype.kind not in "iu":
            shape = f"a lead of {tokens.dtype}{list(tokens.shape)}"
            raise self._refused(shape, "a one-dimensional array of integers")
        return np.concatenate([self._bos, tokens.astype(np.int64)])

    def _put(self, tokens: NDArray[Any]) -> None:
        if tokens.size:
            self._stage[self._filled : self._filled + tokens.size] = tokens
            self._filled += tokens.size

    def _flush(self) -> None:
        """Write what is staged, or the one document that is too long for the stage."""
        if self._batch.ids:
            stored = self._stage[: self._filled] if self._long is None else self._long[1]
            self._check_range(stored, self.settings.has_bos if self._long is None else 0)
            with self._place.disk_errors(stored.size * self.settings.token_dtype.itemsize):
                if self._part is None:
                    self._part = PartWriter(self._place.folder, len(self._finished), self.settings)
                if self._long is None:
                    self._part.append(stored, self._batch)
                else:
                    self._part.append_long((*self._long, self._eos), self._batch)
            self._flushed += len(self._batch.ids)
        self._batch, self._filled, self._long = Batch(), 0, None

    def _finish_part(self) -> None:
        self._flush()
        if self._part is None:
            return
        with self._place.disk_errors():
            finished = self._part.finish()
            write_durably(self._part_file(len(self._finished)), finished.to_json())
        self._finished.append(finished)
        self._part, self._part_tokens = None, 0

    def _check_range(self, stored: NDArray[Any], mark: int) -> None:
        """Every id is in 0..vocab_size - 1, else the first documents at fault are named.

        ``mark``: begin marks that each document has in ``stored``.
        """
        limit = self.settings.vocab_size
        if not len(stored) or (int(stored.min()) >= 0 and int(stored.max()) < limit):
            return
        starts = np.cumsum([0, *self._batch.lengths])
        faults = np.flatnonzero((stored < 0) | (stored >= limit))
        documents = np.searchsorted(starts, faults, side="right") - 1
        places = faults - starts[documents] - mark - np.array(self._batch.leads)[documents] * (mark >= 0)
        _, first = np.unique(documents, return_index=True)
        problems = [
            Problem(
                f"document {self._flushed + documents[at]} (id {self._batch.ids[documents[at]]!r})",
                f"id {stored[faults[at]]} at position {places[at]}",
                f"ids in 0..{limit - 1} (vocab_size {limit})",
                "check the tokenizer, or give the vocab_size it has",
            )
            for at in first[:_SHOWN_PROBLEMS]
        ]
        raise ContentError(str(self.path), problems)

    def _key(self, key: object) -> int | str:
        """An id or group as a whole number or text of Python."""
        if isinstance(key, str):
            return str(key)
        try:
            number = operator.index(key)  # type: ignore[arg-type]
        except TypeError:
            number = None
        if number is None or isinstance(key, bool) or not -(1 << 63) <= number < 1 << 63:
            raise self._refused(f"{key!r} as id or group", "a text, or a whole number of 64 bits")
        return number

    def _refused(self, given: str, expected: str) -> RecipeError:
        return ContentError.single(
            str(self.path), f"document {self.num_documents}", given=given, expected=expected,
            fix="correct the document, or leave it out",
        )  # fmt: skip


def _is_huge(body: NDArray[Any]) -> bool:
    """Whether unsigned ids do not even fit 63 bits."""
    return body.dtype == np.uint64 and body.size > 0 and int(body.max()) >= 1 << 63


def _json(value: Any) -> str:
    return _ENCODER.encode(value)
