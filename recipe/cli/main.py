"""The command ``recipe``: find the verb, run it, turn faults into exit codes.

Only the verb that was called is imported, so that ``recipe --help`` answers at once.
"""

from __future__ import annotations

import argparse
import gc
import importlib
import io
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from textwrap import fill
from typing import Protocol, cast

from recipe.cli.verbs import VERBS
from recipe.errors import RecipeError

_HELP = ("-h", "--help", "help")
DONE, CHECK_FAILED, BAD_INPUT, INTERRUPTED, PIPE_CLOSED = 0, 1, 2, 130, 141


class VerbModule(Protocol):
    """What a module must hold to be a verb."""

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        """Declare the verb's words and options."""

    def execute(self, args: argparse.Namespace) -> int:
        """Do it; 0 done, 1 a check failed."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code: 0 done, 1 a check failed, 2 bad input."""
    if argv is None:
        _write_any_text()
    try:
        code = _answered(list(sys.argv[1:] if argv is None else argv))
        sys.stdout.flush()
    except BrokenPipeError:
        # Python flushes both once more at exit: give them somewhere to go.
        for stream in (sys.stdout, sys.stderr):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        return PIPE_CLOSED
    return code


def _answered(words: list[str]) -> int:
    """Do what the words say; faults of the user and of the machine are one message each."""
    try:
        return _dispatch(words)
    except RecipeError as error:
        message = str(error)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        raise
    except OSError as error:
        places = [str(name) for name in (error.filename, error.filename2) if name is not None]
        message = ": ".join(["recipe", error.strerror or str(error), " -> ".join(places)]).removesuffix(": ")
    except UnicodeEncodeError as error:
        text = ascii(error.object[error.start : error.end])
        message = f"recipe: {text} cannot be a path here: names are {error.encoding} (try LC_ALL=C.UTF-8)"
    except ValueError as error:
        if not str(error).startswith("embedded null"):
            raise
        message = "recipe: a path holds a NUL character: no file can have such a name"
    print(message, file=sys.stderr)
    return BAD_INPUT


def _write_any_text() -> None:
    """What the terminal's encoding has no sign for is written as its escape, on stderr as ever."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in _HELP:
        print(overview())
        return DONE
    if words[0] in ("-V", "--version"):
        print(f"recipe {_version()}")
        return DONE
    name, rest = words[0], words[1:]
    if rest and f"{name} {rest[0]}" in VERBS:
        name, rest = f"{name} {rest[0]}", rest[1:]
    if name not in VERBS and family(name) and (not rest or rest[0] in _HELP):
        print(family_overview(name), file=sys.stdout if rest else sys.stderr)
        return DONE if rest else BAD_INPUT
    if name not in VERBS:
        raise _unknown(name, rest)
    module = _imported(VERBS[name].module)
    parser = _parser(name, module)
    args = parser.parse_intermixed_args(rest)
    try:
        return module.execute(args)
    except RecipeError as error:
        from recipe.cli.as_options import as_options  # where something is wrong: help answers without it

        raise as_options(error, args) from error


def _imported(name: str) -> VerbModule:
    """A verb's module; what is imported stays, so that looking for garbage meanwhile is time for nothing."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        return cast(VerbModule, importlib.import_module(name))
    finally:
        if was_on:
            gc.enable()


def overview() -> str:
    """The answer of ``recipe --help``: every verb in one line."""
    return (
        "usage: recipe VERB [words and options]\n\n"
        "Turns a YAML recipe into a training stream that is accounted for to the token.\n\n"
        f"verbs:\n{_summaries(list(VERBS))}\n\n"
        "Start with `recipe run`: it needs nothing else. `recipe VERB --help` has options and examples.\n"
        "Exit codes: 0 done, 1 a check failed, 2 bad input."
    )


def family(word: str) -> list[str]:
    """The verbs of two words that begin with one."""
    return [name for name in VERBS if name.startswith(f"{word} ")]


def family_overview(word: str) -> str:
    """The answer of ``recipe pools --help``: every verb of a family in one line."""
    return (
        f"usage: recipe {word} VERB [words and options]\n\n"
        f"verbs:\n{_summaries(family(word))}\n\n"
        f"`recipe {word} VERB --help` has options and examples."
    )


def _summaries(names: Sequence[str]) -> str:
    width = max(map(len, names))
    return "\n".join(f"  {name:<{width}}  {VERBS[name].summary}" for name in names)


def _parser(name: str, module: VerbModule) -> argparse.ArgumentParser:
    """The parser of one verb; its help ends with the verb's examples unless the verb wrote its own ending."""
    verb = VERBS[name]
    parser = argparse.ArgumentParser(
        prog=f"recipe {name}",
        description=f"{verb.summary[0].upper()}{verb.summary[1:]}.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    module.add_arguments(parser)
    if not parser.epilog:
        parser.epilog = "\n".join(["Examples:", *(f"  {line}" for line in verb.examples)])
    parser.description, parser.epilog = _folded(parser.description or ""), _folded(parser.epilog)
    return parser


def _folded(text: str) -> str:
    """Paragraphs in lines of at most 80 columns; those with lines of their own, such as commands, as is.

    >>> print(_folded("Examples:\\n  recipe run\\n\\none\\ntwo"))
    Examples:
      recipe run
    <BLANKLINE>
    one two
    """
    paragraphs = text.strip("\n").split("\n\n")
    return "\n\n".join(one if "\n  " in f"\n{one}" else fill(one, 80) for one in paragraphs)


def _unknown(word: str, rest: Sequence[str]) -> RecipeError:
    """A word that is no verb; behind the first word of a family, the second one is meant."""
    own = family(word) if rest else []
    if own:
        given, names, help_at = f"{word} {rest[0]}", own, f"recipe {word}"
        seconds = get_close_matches(rest[0], [name.removeprefix(f"{word} ") for name in own], n=1)
        near = [f"{word} {second}" for second in seconds]
    else:
        given, names, help_at = word, list(VERBS), "recipe"
        near = get_close_matches(word, VERBS, n=1)
    return RecipeError.single(
        "recipe",
        "VERB",
        given=given,
        expected=f"one of {', '.join(names)}",
        fix=f"did you mean 'recipe {near[0]}'?" if near else f"`{help_at} --help` says what each verb does",
    )


def _version() -> str:
    from importlib.metadata import version

    return version("token-recipe")


if __name__ == "__main__":
    raise SystemExit(main())
