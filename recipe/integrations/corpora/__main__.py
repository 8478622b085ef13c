"""From JSON lines to an audited run, with the figures: ``python -m recipe.integrations.corpora FOLDER``.

FOLDER holds ``*.jsonl`` files of records ``{id, text, source, licence}``, named by what they are (``en_…``,
``zh_…``, ``code_…``, ``doc_…``, ``math…``, ``verified_…``; ``--group`` says otherwise). Each group becomes a
pool, equal documents once, and a smaller one that is held out. Texts of several pools stay in the first
of them, held-out ones first; held-out text is looked for in training before and after. Then a recipe of two
stages is planned, run, audited and reported. Every step is a verb of the command line, printed as it is done.
The same command goes on where it was interrupted.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from recipe.errors import RecipeError
from recipe.integrations.corpora.figures import page, pool_figures, step_figures
from recipe.integrations.corpora.folders import GROUPS, text_groups
from recipe.integrations.corpora.path import Trial, follow


def main(argv: Sequence[str] | None = None) -> int:
    """Do all steps and print the figures; 0, or 1 where the audit finds something, or 2."""
    args = _parser().parse_args(argv)
    try:
        groups = text_groups(args.folder, _groups(args.group), args.held_out)
        work, steps = args.work.absolute(), (args.steps, max(1, args.steps // 4))
        trial = Trial(
            groups=groups, work=work, tokenizer=args.tokenizer, eos=args.eos, held_percent=args.held_percent,
            steps=steps,
        )  # fmt: skip
        done = dict(follow(trial))
    except RecipeError as error:
        print(error, file=sys.stderr)
        return 2
    print("", *page(groups, done), sep="\n\n")
    figures = {"pools": pool_figures(groups, done), "steps": step_figures(done)}
    answers = {name: step.answer for name, step in done.items()}
    (trial.work / "figures.json").write_text(json.dumps({**figures, "answers": answers}, indent=1), "utf-8")
    return 0 if done["audit"].passed else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m recipe.integrations.corpora", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("folder", type=Path, metavar="FOLDER")
    parser.add_argument("--tokenizer", default="bytes", help="as for recipe prepare (default: bytes)")
    parser.add_argument("--eos", help="as for recipe prepare")
    parser.add_argument("--work", type=Path, default=Path("corpora"), help="default: corpora")
    parser.add_argument(
        "--group", action="append", default=[], metavar="NAME=GLOB",
        help="files of a pool, by their names without .jsonl; before the usual ones; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--held-out", action="append", default=[], metavar="GLOB",
        help="files that are held out as a whole; repeatable",
    )  # fmt: skip
    parser.add_argument(
        "--held-percent", type=int, default=2, help="of the documents of every other group (default: 2)"
    )
    parser.add_argument(
        "--steps", type=int, default=256,
        help="of the first stage, of 65,536 positions each; the second has a quarter (default: 256)",
    )  # fmt: skip
    return parser


def _groups(asked: Sequence[str]) -> Mapping[str, str]:
    named: dict[str, str] = {}
    for text in asked:
        name, sign, pattern = text.partition("=")
        if not (name and sign and pattern):
            raise RecipeError.single(
                "corpora", "--group", given=text, expected="NAME=GLOB", fix="for example code='code_*'"
            )
        named[name] = pattern
    return {**named, **{name: pattern for name, pattern in GROUPS.items() if name not in named}}


if __name__ == "__main__":
    raise SystemExit(main())
