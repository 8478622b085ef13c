"""``recipe seal``: print the head of a run's record, to publish."""

from __future__ import annotations

import argparse
from pathlib import Path

from recipe.audit.seal import seal_run
from recipe.cli.options import add_json
from recipe.cli.output import print_json


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the run."""
    parser.add_argument("run", type=Path, metavar="RUN", help="the run's folder, for example runs/demo")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the line; nothing is locked or written."""
    seal = seal_run(args.run)
    if args.json:
        print_json(seal.to_plain())
    else:
        print(seal.line())
    return 0
