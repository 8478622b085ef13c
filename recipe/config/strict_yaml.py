"""YAML read without surprises: names keep their text, a key given twice is a fault with both lines.

Only ``true``/``false``, ``null`` and plain decimal integers turn into values. Whatever else YAML 1.1 would
convert (``no``, ``1e5``, ``2024_01``, ``12:30``, dates) stays the text that was written, as value and as key.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from recipe.config.problems import Fault, Place, shown
from recipe.errors import RecipeError

_TAG = "tag:yaml.org,2002:"

DEEPEST = 50
"""Levels of mappings and lists in each other."""
LARGEST = 50_000
"""Values and keys of a text, aliases counted as what they stand for."""
LONGEST_NUMBER = 4300
"""Digits that Python reads; amounts are far below."""

ONCE = "each key once"
"""What is expected where a key is given twice."""


class RefusedError(yaml.MarkedYAMLError):
    """YAML of which no value is made; the message is what to do instead."""


class StrictLoader(yaml.SafeLoader):
    """PyYAML's safe loader with few implicit types, and text for keys."""

    yaml_implicit_resolvers = {}  # noqa: RUF012

    def __init__(self, text: str) -> None:
        """A loader of one text."""
        super().__init__(text)
        self._level = 0
        self._measures: dict[Node, tuple[int, int]] = {}

    def compose_node(self, parent: Node | None, index: int) -> Node | None:
        """The next node, measured with what it holds: neither depth nor size may run away."""
        is_alias, mark = self.check_event(yaml.AliasEvent), self.peek_event().start_mark  # type: ignore[no-untyped-call]
        self._level += 1
        if self._level > DEEPEST:
            raise _too_deep(mark)
        node = super().compose_node(parent, index)
        self._level -= 1
        if node is None or node in self._measures:
            return node
        if is_alias:
            raise RefusedError(problem="a value refers to itself: remove the alias", problem_mark=mark)
        self._measures[node] = depth, size = self._measure(node)
        if depth > DEEPEST:
            raise _too_deep(mark)
        if size > LARGEST:
            message = (
                f"more than {LARGEST} values and keys, aliases counted as what they stand for: write fewer"
            )
            raise RefusedError(problem=message, problem_mark=mark)
        return node

    def _measure(self, node: Node) -> tuple[int, int]:
        """How deep a node goes, and how many nodes it is with all aliases expanded."""
        if isinstance(node, ScalarNode):
            return 1, 1
        parts = (
            node.value if isinstance(node, SequenceNode) else [part for pair in node.value for part in pair]
        )
        measures = [self._measures[part] for part in parts]
        return 1 + max((depth for depth, _ in measures), default=0), 1 + sum(size for _, size in measures)

    def construct_object(self, node: Node, deep: bool = False) -> Any:
        """The value of a node; where its tag promises another kind of value, that is told with the line."""
        try:
            return super().construct_object(node, deep=deep)
        except (ValueError, LookupError, AttributeError, OverflowError):
            text = node.value if isinstance(node, ScalarNode) else ""
            message = f"no {node.tag.removeprefix(_TAG)}: remove the tag, or correct the value"
            if text.lstrip("+-").isdecimal():
                message = f"a number of {len(text)} digits: write at most {LONGEST_NUMBER}"
            raise RefusedError(problem=message, problem_mark=node.start_mark) from None

    def construct_mapping(self, node: MappingNode, deep: bool = False) -> dict[Any, Any]:
        """A mapping whose keys are text, in the order written; merge keys (``<<``) go under own keys."""
        self.flatten_mapping(node)
        return {self._key(key): self.construct_object(value, deep=deep) for key, value in node.value}

    @staticmethod
    def _key(node: Node) -> str:
        if not isinstance(node, ScalarNode):
            raise yaml.constructor.ConstructorError(
                None, None, "a key must be a single word", node.start_mark
            )
        return str(node.value)


def _resolver(tag: str, pattern: str, first: str) -> None:
    StrictLoader.add_implicit_resolver(_TAG + tag, re.compile(pattern), list(first))


_resolver("bool", r"^(?:true|True|TRUE|false|False|FALSE)$", "tTfF")
_resolver("null", r"^(?:~|null|Null|NULL|)$", "~nN\0")
StrictLoader.add_implicit_resolver(_TAG + "null", re.compile(r"^$"), [""])
_resolver("int", r"^[-+]?(?:0|[1-9][0-9]*)$", "-+0123456789")
_resolver("merge", r"^<<$", "<")


def parse_yaml(text: str, title: str) -> Any:
    """The plain value of YAML text.

    Raises:
        RecipeError: it is no YAML, or a mapping has a key twice; ``title`` names the file.
    """
    try:
        loader = StrictLoader(text)
        node = loader.get_single_node()
        if node is None:
            return {}
        twice = [fault.problem() for fault in _repeated_keys(node, ())]
        if twice:
            raise RecipeError(title, twice)
        return loader.construct_document(node)
    except yaml.MarkedYAMLError as error:
        raise _not_yaml(error, title) from None
    except (yaml.YAMLError, ValueError) as error:
        fix = "save it as UTF-8 text without control characters"
        raise RecipeError.single(title, title, given=shown(str(error)), expected="YAML", fix=fix) from None


def read_yaml(path: Path, title: str | None = None) -> Any:
    """The plain value of a YAML file; faults as `parse_yaml`."""
    title = title or str(path)
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        fix = "save it as UTF-8"
        raise RecipeError.single(
            title, title, given=f"byte {error.start} is no UTF-8", expected="UTF-8", fix=fix
        ) from None
    return parse_yaml(text, title)


def _too_deep(mark: yaml.Mark) -> RefusedError:
    return RefusedError(problem=f"more than {DEEPEST} levels: nest less", problem_mark=mark)


def _not_yaml(error: yaml.MarkedYAMLError, title: str) -> RecipeError:
    mark = error.problem_mark or error.context_mark
    line = f"{title}:{mark.line + 1}" if mark else title
    given = mark.get_snippet(indent=0) if mark else None
    message = " ".join(part for part in (error.context, error.problem) if part)
    fix = (
        f"{message}{f', column {mark.column + 1}' if mark else ''}; quote text that holds special characters"
    )
    if isinstance(error, RefusedError):
        fix = message
    if "single document" in str(error.context):
        fix = "a file is one recipe: remove everything from this line on, or keep it in a file of its own"
    if error.problem and "\\t" in error.problem:
        fix = f"{message}: indent with spaces"
    return RecipeError.single(
        title, line, given=(given or "").split("\n")[0] or "the file", expected="YAML", fix=fix
    )


def _repeated_keys(node: Node, place: Place) -> Iterator[Fault]:
    if isinstance(node, SequenceNode):
        for index, item in enumerate(node.value):
            yield from _repeated_keys(item, (*place, str(index)))
    if not isinstance(node, MappingNode):
        return
    first: dict[str, tuple[Node, Node]] = {}
    for key, value in node.value:
        name = str(key.value) if isinstance(key, ScalarNode) else "?"
        if name in first and key.tag != f"{_TAG}merge":
            lines = [pair[0].start_mark.line + 1 for pair in (first[name], (key, value))]
            given = f"{_text(first[name][1])} (line {lines[0]}) and {_text(value)} (line {lines[1]})"
            fix = (
                f"remove line {lines[0]} or line {lines[1]}" if lines[0] != lines[1] else "remove one of them"
            )
            yield Fault((*place, name), given, ONCE, fix)
        first.setdefault(name, (key, value))
        yield from _repeated_keys(value, (*place, name))


def _text(node: Node) -> str:
    if isinstance(node, ScalarNode):
        return shown(str(node.value))
    return "a list" if isinstance(node, SequenceNode) else "a mapping"
