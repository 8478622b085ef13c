"""What the user did wrong, told once: where, given, expected, fix."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One fault of the input and the way out of it.

    ``where`` is the dotted key (the override that repairs it), or a file and line.
    """

    where: str
    given: object
    expected: str
    fix: str

    def __str__(self) -> str:
        """Four lines: the place, then what was given, expected, and the repair."""
        return (
            f"  {self.where}\n    given     {self.given}\n"
            f"    expected  {self.expected}\n    fix       {self.fix}"
        )


def counted(count: int, noun: str) -> str:
    """A number of things, in the singular where it is one.

    >>> counted(1, "document"), counted(2000, "file"), counted(0, "finding")
    ('1 document', '2,000 files', '0 findings')
    """
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


class RecipeError(Exception):
    """A fault of the user's input: every problem found, in one message.

    Printed without traceback by the command line, which then exits with 2.

    >>> print(RecipeError.single("demo.yaml", "seed", given=-1, expected="0..2**63-1", fix="use 0"))
    demo.yaml: 1 problem
      seed
        given     -1
        expected  0..2**63-1
        fix       use 0
    """

    def __init__(self, title: str, problems: Sequence[Problem]) -> None:
        """``title`` says whose problems they are; there is at least one."""
        if not problems:
            raise ValueError("a RecipeError needs at least one problem")
        self.title = title
        self.problems = tuple(problems)
        head = f"{title}: {counted(len(self.problems), 'problem')}"
        super().__init__("\n".join([head, *map(str, self.problems)]))

    @classmethod
    def single(cls, title: str, where: str, *, given: object, expected: str, fix: str) -> RecipeError:
        """An error with one problem."""
        return cls(title, [Problem(where, given, expected, fix)])

    def __reduce__(self) -> tuple[type[RecipeError], tuple[str, tuple[Problem, ...]]]:
        """Survive a trip between processes."""
        return (type(self), (self.title, self.problems))


class ContentError(RecipeError):
    """A fault of what was given to be stored: the same again fails again, so nothing is kept for going on."""
