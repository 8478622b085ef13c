"""What could not be checked: it is named, and a check that could not be made is none that passed."""

from __future__ import annotations

import argparse
from typing import Any

OPTION = "--allow-unchecked"
NOT_CLEARED = f"exit code 1: not everything could be checked; {OPTION} accepts that"


def add_allow_unchecked(parser: argparse.ArgumentParser) -> None:
    """Declare ``--allow-unchecked``."""
    parser.add_argument(
        OPTION,
        action="store_true",
        help="exit with 0 although something could not be checked; it is named all the same",
    )


def concluded(plain: dict[str, Any], args: argparse.Namespace, *, wrong: bool) -> int:
    """The exit code of an answer, whose ``ok`` says the same; ``unchecked`` is in it.

    >>> answer = {"unchecked": ["cannot tell"]}
    >>> concluded(answer, argparse.Namespace(allow_unchecked=False), wrong=False), answer["ok"]
    (1, False)
    >>> concluded(answer, argparse.Namespace(allow_unchecked=True), wrong=False), answer["ok"]
    (0, True)
    """
    plain["ok"] = not wrong and (args.allow_unchecked or not plain["unchecked"])
    return 0 if plain["ok"] else 1
