"""Small lessons in Python with examples; each one is run before it is given."""

from __future__ import annotations

import doctest
import inspect
from collections.abc import Iterator

from recipe.text.dice import Dice
from recipe.text.documents import Document
from recipe.text.lessons import LESSONS, Lesson

NUM_DOCUMENTS = 1_500

_OPENINGS = (
    "Write a function that {task}.",
    "A function that {task}.",
    "A lesson in Python that {task}, and checks itself.",
    "A short program that {task}.",
)
_CLOSINGS = (
    "The examples in the docstring are run as tests: `python -m doctest` prints nothing when they hold.",
    "Read the examples first, then the code; they say the same thing.",
    "Try to change the code so that one of the examples fails, and see which.",
    "Every example above was run before this text was written.",
)


def teacher_documents(seed: int, num_documents: int = NUM_DOCUMENTS) -> Iterator[Document]:
    """Lessons whose examples were run and came out as written; a failing one is our own bug."""
    dice = Dice(seed, "teacher")
    for index in range(num_documents):
        lesson = LESSONS[index % len(LESSONS)]
        text, num_examples = _write(lesson, dice)
        yield Document(
            id=f"teacher-{index}",
            text=text,
            source=f"generated: verified lessons, seed {seed}",
            tags={"lesson": lesson.name, "verified": True, "examples": num_examples},
        )


def _write(lesson: Lesson, dice: Dice) -> tuple[str, int]:
    """Opening, code with examples, remark; and the number of examples."""
    values = lesson.values(dice)
    cases = lesson.cases(dice, values)
    task = lesson.task.format(**values)
    examples = "\n".join(f"    >>> {call}\n    {want!r}" for call, want in cases)
    heading = f'    """{task[0].upper()}{task[1:]}.\n\n{examples}\n    """'
    code = lesson.code.strip("\n").format(doc=heading, **values)
    verify(code)
    opening = dice.pick(_OPENINGS).format(task=task)
    text = f"# {opening}\n\n{code}\n\n# {dice.pick(lesson.remarks)}\n# {dice.pick(_CLOSINGS)}\n"
    return text, len(cases)


def verify(code: str) -> None:
    """Run every doctest example of some code; they print nothing but their value.

    Raises:
        AssertionError: an example gives something else, or there is none.
    """
    space: dict[str, object] = {"__name__": "lesson"}
    exec(compile(code, "<lesson>", "exec"), space)
    documents = [value.__doc__ for value in list(space.values()) if inspect.isfunction(value)]
    examples = [example for text in documents for example in doctest.DocTestParser().get_examples(text or "")]
    assert examples, code
    checker = doctest.OutputChecker()
    for example in examples:
        got = f"{eval(example.source, space)!r}\n"
        assert checker.check_output(example.want, got, 0), (example.source, example.want, got)
