"""The course of a run, turn by turn: which stream served which steps, and what is on record of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import islice, pairwise
from pathlib import Path

from recipe.errors import RecipeError
from recipe.mixing.opening import close_pools, open_pools
from recipe.pools import Pool
from recipe.run.canonical import Plain
from recipe.run.finding import find_place
from recipe.run.folder import RunFolder, read_identity
from recipe.run.head import read_head
from recipe.run.holdings import changed, known_paths, refuse_changed
from recipe.run.ledger import row_at, rows_backwards
from recipe.run.manifest import manifest_path, read_manifest
from recipe.run.opening import handle_on_record
from recipe.run.place import Place, subject_of
from recipe.run.row import Row
from recipe.run.state import State
from recipe.run.stream import RunStream
from recipe.run.tracing.record import Record, RowMark
from recipe.run.turns import turn_before

_ROWS_BEFORE_TURN = 64


@dataclass(frozen=True, kw_only=True)
class Course:
    """Steps of a run between two turns: they are all of one stream."""

    run: str
    version: int
    """Of the recipe in force."""
    stream: RunStream
    first_step: int
    stop_step: int
    marks: tuple[RowMark, ...]
    """What is on record of it at known places, in order; the first is the turn's own row."""
    record: Record

    @property
    def pools(self) -> dict[str, Pool]:
        """Its pools, as they were read then."""
        return {pool.name: pool for pool in self.stream.ground.pools}

    @property
    def pairs(self) -> Iterator[tuple[RowMark, RowMark]]:
        """Neighbouring marks, between which there may be more."""
        return pairwise(self.marks)

    def before(self, step: int) -> RowMark:
        """The last mark on record at or before a step of this course."""
        for low, high in self.pairs:
            if high.step > step:
                return self.record.nearest(low, high, step)
        return self.marks[-1]


@dataclass(frozen=True, kw_only=True)
class Gap:
    """Steps that cannot be traced here, and why."""

    run: str
    first_step: int
    stop_step: int
    why: str

    def to_plain(self) -> Plain:
        """Plain values for JSON."""
        return {"run": self.run, "steps": [self.first_step, self.stop_step], "why": self.why}


class Lineage:
    """A run from its first step to its last checkpoint, its parents' steps included; pools stay open."""

    def __init__(self, path: Path, pools_root: Path | None = None) -> None:
        """Open the run at its last checkpoint; nothing is written.

        Raises:
            RecipeError: no run, a damaged record, or a pool of its last turn that is missing or changed.
        """
        self._pools_root = pools_root
        self._open = ExitStack()
        folder = RunFolder(path)
        folder.check()
        place, tip = _last_place(folder)
        self.run = place.state.run
        self.step = place.state.snapshot.step
        """Steps on record."""
        try:
            parts = list(self._parts(folder, place, tip))
        except BaseException:
            self.close()
            raise
        parts.reverse()
        self.courses = tuple(
            part
            for part in parts
            # A parent that was left where its course changed served no step of its last course.
            if isinstance(part, Course) and (part is parts[-1] or part.first_step < part.stop_step)
        )
        """In the order of their steps; the last one goes on after the last checkpoint."""
        self.gaps = tuple(part for part in parts if isinstance(part, Gap))

    @property
    def last(self) -> Course:
        """The course that goes on after the last checkpoint."""
        return self.courses[-1]

    def name_now(self, course: Course, pool: str) -> str:
        """What a pool of a course is called at the end: branches may rename pools."""
        order, last = course.stream.recipe.order_name(pool), self.last.stream.recipe
        if pool in last.pools and last.order_name(pool) == order:
            return pool
        return next((name for name in last.pools if last.order_name(name) == order), pool)

    def close(self) -> None:
        """Let go of the pools."""
        self._open.close()

    def __enter__(self) -> Lineage:
        """The lineage itself."""
        return self

    def __exit__(self, *error: object) -> None:
        """Close."""
        self.close()

    def _parts(self, folder: RunFolder, place: Place, tip: Row | None) -> Iterator[Course | Gap]:
        """Courses and gaps of a run up to a checkpoint, last first, then those of its parents."""
        stream, state = self._stream(folder, place), place.state
        record, turn, after = Record(folder.ledger), row_at(folder.ledger, state.turn.offset), None
        stop = state.snapshot.step
        while True:
            if after is None or turn.end_step < stop:
                try:
                    stream = stream if after is None else stream.at(stop - 1)
                except RecipeError as error:
                    turn = _creation(folder.ledger, turn)
                    yield Gap(run=state.run, first_step=turn.end_step, stop_step=stop, why=_why(error))
                    break
                yield Course(
                    run=state.run,
                    version=state.version if after is None else int(turn.data["recipe"]),
                    stream=stream,
                    first_step=turn.end_step,
                    stop_step=stop,
                    marks=tuple(_marks(record, turn, tip, after)),
                    record=record,
                )
            before = turn_before(folder.ledger, turn)
            if before is None:
                break
            turn, after, stop = before, turn, turn.end_step
        if turn.data.get("parent") is not None and turn.end_step:
            yield from self._parent(folder, turn)

    def _parent(self, folder: RunFolder, created: Row) -> Iterator[Course | Gap]:
        """The parts of the run that a branch left, up to where it did."""
        parent: Plain = created.data["parent"]
        try:
            found, place, row = _opened_parent(folder, parent)
            yield from self._parts(found, place, row)
        except RecipeError as error:
            yield Gap(run=parent["run"], first_step=0, stop_step=created.end_step, why=_why(error))

    def _stream(self, folder: RunFolder, place: Place) -> RunStream:
        state = place.state
        pools = open_pools(state.recipe, known_paths(state.recipe, state.holdings, self._pools_root))
        self._open.callback(close_pools, pools.values())
        refuse_changed(changed(state.holdings, pools), fix="put the data back that the run was served from")
        return handle_on_record(folder, place, subject_of(place, pools), pools).stream()


def _last_place(folder: RunFolder) -> tuple[Place, Row | None]:
    """Where a run stands, and the row of that checkpoint; None where it has none."""
    while True:
        place, tip = find_place(folder, again=True), read_head(folder.ledger).parent
        step = place.state.snapshot.step
        if tip is None or tip.end_step == step:  # else somebody wrote a checkpoint in between
            return place, tip


def _marks(record: Record, turn: Row, tip: Row | None, after: Row | None) -> Iterator[RowMark]:
    """Rows of a turn: its own, its last checkpoint, and the chunk row that the turn ``after`` closed."""
    last = turn
    yield RowMark.of(turn)
    checkpoint = tip if after is None else record.last_before(tip, after)
    if checkpoint is not None and checkpoint.offset > turn.offset:
        last = checkpoint
        yield RowMark.of(checkpoint)
    if after is not None and last.end_step < after.end_step:
        for row in islice(rows_backwards(record.path, after.offset), _ROWS_BEFORE_TURN):
            if row.offset <= last.offset or row.kind == "rewind":
                return
            if row.kind == "chunk" and row.end_step == after.end_step:
                yield RowMark.of(row)
                return


def _opened_parent(folder: RunFolder, parent: Plain) -> tuple[RunFolder, Place, Row]:
    """The parent's folder, the manifest that a branch left it at, and the row of that checkpoint."""
    places = [Path(parent["path"]), folder.path.absolute().parent / parent["run"]]
    found = next((RunFolder(path) for path in places if _is_run(path, parent["id"])), None)
    if found is None:
        raise RecipeError.single(
            f"{folder.path}: steps of its parent",
            f"run {parent['run']}",
            given=f"not found at {' or at '.join(map(str, dict.fromkeys(places)))}",
            expected=f"the run with id {parent['id']}, which has the steps before the branch",
            fix="bring the parent's folder back to one of these places",
        )
    path = manifest_path(found.path, int(parent["manifest"]))
    manifest = read_manifest(path, parent["hash"])
    state = State.from_manifest(manifest, str(path))
    row = Record(found.ledger).numbered(int(manifest["ledger"]["row"]) + 1)
    if row is None or row.data.get("manifest_hash") != parent["hash"]:
        raise RecipeError.single(
            f"{found.path}: another record",
            f"{found.ledger}",
            given="no checkpoint row of the manifest that the branch left it at",
            expected=f"the row of manifest {parent['manifest']}",
            fix="take the parent's folder from a copy; `recipe audit` names every fault",
        )
    return found, Place(state=state, version_hash=manifest["recipe"]["hash"], from_state=False), row


def _is_run(path: Path, identity: str) -> bool:
    folder = RunFolder(path)
    try:
        return bool(read_identity(folder)["id"] == identity)
    except (OSError, RecipeError, KeyError):
        return False


def _creation(ledger: Path, turn: Row) -> Row:
    """The first turn of a run."""
    while (before := turn_before(ledger, turn)) is not None:
        turn = before
    return turn


def _why(error: RecipeError) -> str:
    problem = error.problems[0]
    return f"{error.title}: {problem.given}"
