"""Run as a program: kill an attach, or an adoption, at every write, and check that it can be done again."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import cast

import recipe
from recipe import RecipeError
from recipe.run import writes
from recipe.run.comparing.adopt import How, adopt_run
from recipe.run.comparing.decisions import Word
from recipe.run.comparing.evidence import read_evidence
from recipe.run.comparing.history import read_history
from recipe.run.folder import RunFolder
from recipe.run.ledger import read_rows
from tests.run.faulty import FaultyOs, copy, cuts_of, in_child, killed_before


def attach(path: Path) -> None:
    recipe.attach_metrics(path, {"code": {"loss": 2.5}})


def num_said(path: Path) -> int:
    return sum(row.kind == "metrics" for row in read_rows(path / "ledger.jsonl"))


def enumerate_kills(path: Path, folder: Path) -> int:
    """The number of cuts made."""
    step = recipe.run_status(path).step
    cuts = cuts_of(lambda: attach(copy(path, folder / "count")))
    for fault, at in cuts:
        cut = copy(path, folder / "cut")
        assert in_child(lambda p=cut: attach(p), FaultyOs(fault, at))
        assert recipe.run_status(cut).step == step
        before = num_said(cut)
        assert before in (0, 1)
        attach(cut)
        assert num_said(cut) == before + 1
        recipe.open_run(cut).checkpoint(step + 1)
    return len(cuts)


def enumerate_adoptions(runs: Path, folder: Path, how: How) -> int:
    """The number of cuts made; ``runs`` holds ``trunk`` and its branch ``B``."""
    word = Word(by="Li", reason="loss")

    def adopt(path: Path) -> None:
        adopt_run(path / "B", how, word=word)

    cuts = cuts_of(lambda: adopt(copy(runs, folder / "count")))
    if how == "amend":  # within every write; between two of them now and then, for it takes long
        cuts = [(fault, at) for fault, at in cuts if fault is not killed_before or at % 4 == 0]
    for fault, at in cuts:
        cut = copy(runs, folder / "cut")
        # The branch names its parent by where it was: it is looked for beside the branch.
        assert in_child(lambda p=cut: adopt(p), FaultyOs(fault, at))
        for name in ("trunk", "B"):
            recipe.run_status(cut / name)
            for row in read_history(cut / name).said("decision"):
                read_evidence(RunFolder(cut / name), row.data["evidence"])
        if at % 4 and fault is killed_before:
            continue  # doing it again takes long, and there are few states to do it from
        try:
            adopt(cut)
        except RecipeError as error:
            assert how == "amend" and "nothing to amend" in str(error), error
        for name in ("trunk", "B"):
            assert read_history(cut / name).said("decision"), name
        amended = [row for row in read_rows(cut / "trunk" / "ledger.jsonl") if row.kind == "amend"]
        assert bool(amended) is (how == "amend")
    return len(cuts)


if __name__ == "__main__":
    writes.os = FaultyOs(None)  # type: ignore[assignment]
    what, source, place = sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3])
    if what == "attach":
        print(enumerate_kills(source, place))
    else:
        print(enumerate_adoptions(source, place, cast(How, what)))
