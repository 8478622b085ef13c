"""One range of an object, whatever happens on the way: waits, second tries, and errors that name it."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from time import monotonic

from recipe.errors import RecipeError
from recipe.pools.remote.signed import unsigned
from recipe.pools.remote.store import ANSWER_SECONDS, ChangedError, Stamp, Store, is_missing, is_refused

TRIES = 7
FIRST_PAUSE = 0.1
"""Seconds before the second try; each further pause is twice as long."""
LONGEST_PAUSE = 5.0
IMPATIENCE = 5
"""A request that takes so many times as long as usual is made a second time; the first answer counts."""
LEAST_PATIENCE = 0.3
"""Seconds before that, at least."""


@dataclass(frozen=True, slots=True)
class Object:
    """An object of a pool in a store."""

    pool: str
    store: Store
    path: str
    """Bucket and key, as its store's package writes them."""
    stamp: Stamp | None = None
    """The version that is read; None: whichever is there."""

    @property
    def url(self) -> str:
        """For messages."""
        return f"{self.store.scheme}://{self.path.lstrip('/')}"


class Traffic:
    """What one process asked of stores, counted."""

    def __init__(self) -> None:
        """Nothing asked yet."""
        self.requests = 0
        """Answers taken."""
        self.num_bytes = 0
        """Of these answers."""
        self.repeated = 0
        """Requests made again, after an error or a cut answer."""
        self.doubled = 0
        """Requests made twice because the first one was slow."""
        self.usual_seconds = 0.05
        """That a request takes, of late."""
        self.waits = 0
        """Steps whose tokens were not there yet when they were copied."""
        self.waited_seconds = 0.0


TRAFFIC = Traffic()


async def ask(what: Object, span: tuple[int, int] | None = None) -> bytes:
    """Bytes ``span`` of an object, or all of it, and exactly these.

    Raises:
        RecipeError: it is gone, changed, closed to us, or cannot be read after several tries.
    """
    last: object = "nothing"
    for attempt in range(TRIES):
        if attempt:
            await _pause(attempt)
        try:
            async with what.store.limit:
                data = await _first_answer(what, span)
        except ChangedError as error:
            raise changed(what, error.stamp) from error
        except TimeoutError:
            last = f"no answer in {ANSWER_SECONDS:g} seconds"
        except Exception as error:  # each store's package has exceptions of its own
            if is_missing(error):
                raise gone(what) from error
            last = f"{type(error).__name__}: {unsigned(' '.join(str(error).split())):.200}"
            if is_refused(error) or isinstance(error, ImportError):
                raise _unread(what, span, last, attempt + 1) from error
        else:
            wanted = span[1] - span[0] if span else None if what.stamp is None else what.stamp.size
            if wanted is None or len(data) == wanted:
                TRAFFIC.requests += 1
                TRAFFIC.num_bytes += len(data)
                return data
            last = f"{len(data)} bytes of {wanted}"
    raise _unread(what, span, last, TRIES)


async def listed(store: Store, path: str) -> dict[str, Stamp]:
    """Objects of a folder, by name, asked for several times where the store does not answer.

    Raises:
        Exception: what the store's package raised last.
    """
    for attempt in range(1, TRIES):
        try:
            return await asyncio.wait_for(store.listing(path), ANSWER_SECONDS)
        except Exception as error:  # each store's package has exceptions of its own
            if is_missing(error) or is_refused(error) or isinstance(error, ValueError | ImportError):
                raise
        await _pause(attempt)
    return await asyncio.wait_for(store.listing(path), ANSWER_SECONDS)


async def _pause(attempt: int) -> None:
    TRAFFIC.repeated += 1
    await asyncio.sleep(min(FIRST_PAUSE * 2 ** (attempt - 1), LONGEST_PAUSE))


async def _first_answer(what: Object, span: tuple[int, int] | None) -> bytes:
    """The answer of one request, or of a second one if the first takes unusually long."""
    begun, patience = monotonic(), max(LEAST_PATIENCE, IMPATIENCE * TRAFFIC.usual_seconds)
    first = asyncio.ensure_future(what.store.get(what.path, span, what.stamp))
    tasks = {first}
    try:
        done, _ = await asyncio.wait(tasks, timeout=patience)
        # A store that is slow as a whole gets no second load on top.
        if not done and TRAFFIC.doubled * 20 <= TRAFFIC.requests + 160:
            TRAFFIC.doubled += 1
            tasks.add(asyncio.ensure_future(what.store.get(what.path, span, what.stamp)))
        pending = set(tasks)
        while pending:
            left = ANSWER_SECONDS - (monotonic() - begun)
            done, pending = await asyncio.wait(
                pending, timeout=max(0.0, left), return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                raise TimeoutError
            answered = next((task for task in done if task.exception() is None), None)
            if answered is not None:
                if answered is first:
                    TRAFFIC.usual_seconds += 0.05 * (monotonic() - begun - TRAFFIC.usual_seconds)
                return answered.result()
        return next(iter(done)).result()
    finally:
        for task in tasks:
            task.cancel()
            task.add_done_callback(_heard)


def _heard(task: asyncio.Task[bytes]) -> None:
    """Errors of requests that nobody waits for any more are nobody's."""
    if not task.cancelled():
        task.exception()


def changed(what: Object, now: Stamp | None) -> RecipeError:
    """The error for an object that was written anew while its pool was read."""
    return RecipeError.single(
        f"pool {what.pool}", what.url, given="another version" if now is None else str(now),
        expected=f"{what.stamp}, as when the pool was opened",
        fix="put the file back that was there, or stop and open the pool anew: it is another one now",
    )  # fmt: skip


def gone(what: Object) -> RecipeError:
    """The error for an object that is not there any more."""
    return RecipeError.single(
        f"pool {what.pool}", what.url, given="no such object",
        expected="the file that was there" if what.stamp is None else str(what.stamp),
        fix="copy it there again from where it is whole, or prepare the pool again",
    )  # fmt: skip


def _unread(what: Object, span: tuple[int, int] | None, last: object, tries: int) -> RecipeError:
    where = f"{what.url}, bytes {span[0]}..{span[1]}" if span else what.url
    return RecipeError.single(
        f"pool {what.pool}", where, given=f"{last} ({tries} tries)" if tries > 1 else last,
        expected="bytes that can be read",
        fix="check that the store can be reached, its name and credentials; then start again: a run resumes",
    )  # fmt: skip
