"""Decisions on record, and the final sets that stay sealed until there is one.

A decision is a row of the run that was chosen: which manifest, who approved it, why, and the hash of
the comparison it rests on. Final sets (``final/NAME``) are shown only once one of the compared runs
was decided for, and every opening is a row, in each run whose sealed numbers were shown, before they
are. Whoever can read the files of a run can read the numbers in them: the seal binds what this
program shows, and makes looking leave a trace.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from recipe.errors import Problem, RecipeError
from recipe.run.canonical import Plain
from recipe.run.comparing.compare import compared
from recipe.run.comparing.comparison import Comparison, Question, RunAtStep
from recipe.run.comparing.evidence import store_evidence
from recipe.run.comparing.history import History, decisions_about
from recipe.run.comparing.measured import is_sealed, metrics_at
from recipe.run.folder import RunFolder
from recipe.run.ledger import Tail
from recipe.run.row import Row
from recipe.run.sayings import counted_checkpoint, say
from recipe.run.statement import text_on_record


@dataclass(frozen=True, kw_only=True)
class Word:
    """Who says something that is put on record, and why."""

    by: str
    reason: str

    def check(self, who: str) -> None:
        """Raise RecipeError unless both are texts that can be put on record; ``who`` names the first."""
        problems = []
        for where, text in ((who, self.by), ("--reason", self.reason)):
            try:
                told = text_on_record(where, text).strip()
            except ValueError as error:
                problems.append(
                    Problem(where, str(error), "a text on one line", "write it shorter, on one line")
                )
                continue
            if not told:
                problems.append(Problem(where, "nothing", "a text", f"give {where}: it is put on record"))
        if problems:
            raise RecipeError("not put on record", problems)


@dataclass(frozen=True, kw_only=True)
class Decision:
    """A decision that was put on record."""

    run: str
    manifest: int
    evidence: str
    """Hash of what it rests on, kept in ``evidence/`` of the run."""
    row: int
    """Of the run's ledger."""


def decide(comparison: Comparison, run: str, word: Word) -> Decision:
    """Put on record that one of some compared runs was chosen, with the comparison as its evidence.

    Args:
        comparison: what the decision rests on.
        run: the path or the name of a compared run.
        word: who approved it, and why.

    Raises:
        RecipeError: not one of the runs, a checkpoint that was discarded meanwhile, somebody else is
            writing, or the system refuses; no row was written then.
    """
    word.check("--approved-by")
    chosen = chosen_run(comparison, run)
    folder = RunFolder(Path(chosen.path))
    mark = store_evidence(folder, comparison.to_plain())
    row = say_decision(folder, decision_body("choice", chosen, mark, word))
    return Decision(run=chosen.name, manifest=chosen.manifest, evidence=mark, row=row.number)


def chosen_run(comparison: Comparison, run: str) -> RunAtStep:
    """The compared run of a path or a name.

    Raises:
        RecipeError: there is none, or more than one has the name.
    """
    by_path = [each for each in comparison.runs if Path(each.path).absolute() == Path(run).absolute()]
    found = by_path or [each for each in comparison.runs if each.name == run]
    if len(found) != 1:
        raise RecipeError.single(
            "not one of the compared runs",
            "--decide",
            given=run,
            expected=f"one of {', '.join(each.path for each in comparison.runs)}",
            fix="give the path of one of them",
        )
    return found[0]


def decision_body(how: str, chosen: RunAtStep, evidence: str, word: Word) -> Plain:
    """The body of a decision's row."""
    return {
        "kind": "decision",
        "as": how,
        "run": chosen.name,
        "id": chosen.id,
        "manifest": chosen.manifest,
        "manifest_hash": chosen.manifest_hash,
        "evidence": evidence,
        "approved_by": word.by,
        "reason": word.reason,
    }


def say_decision(folder: RunFolder, body: Plain, *, own: bool = True) -> Row:
    """Append a decision's row; one about the run's ``own`` manifest only while that counts."""

    def compose(tail: Tail) -> Plain:
        if own:
            counted_checkpoint(folder, tail, body["manifest"])
        return body

    return say(folder, compose)


def open_final(histories: Sequence[History], question: Question, word: Word) -> Comparison:
    """The comparison with its final sets; that they were opened is put on record first.

    Raises:
        RecipeError: no decision on record, no final set at the step, somebody else is writing, or the
            system refuses; nothing is shown then.
    """
    word.check("--by")
    found = compared(histories, Question(step=question.step))
    if not found.sealed:
        raise RecipeError.single(
            "nothing to open",
            "--open-final",
            given=f"no set final/NAME at step {found.step}",
            expected="a final set of one of the runs",
            fix="attach one (recipe attach RUN --set final/NAME …), or compare at another step",
        )
    if not decisions_about(histories):
        raise _sealed(found)
    shown = compared(histories, question, final=True)
    for history, run in zip(histories, found.runs, strict=True):
        sets = sorted(filter(is_sealed, metrics_at(history, found.step)))
        if sets:
            said = {"sets": sets, "manifest": run.manifest, "by": word.by, "reason": word.reason}
            say(history.folder, partial(_opened, said))
    return shown


def _opened(said: Plain, tail: Tail) -> Plain:
    return {"kind": "opened", **said}


def _sealed(found: Comparison) -> RecipeError:
    return RecipeError.single(
        "final sets are sealed",
        "--open-final",
        given=f"no decision on record for one of {', '.join(run.label for run in found.runs)}",
        expected="a decision that was made without them",
        fix="decide first: recipe compare … --decide RUN --approved-by NAME --reason …, or recipe adopt",
    )
