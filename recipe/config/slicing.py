"""``slicing``: how documents longer than a window are cut, as written and with every default filled in."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BeforeValidator, PlainSerializer, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from recipe.config.partial import Model, overlay
from recipe.config.problems import Fault, faults, nearest, problem
from recipe.config.share_values import LARGEST_TERM, LONGEST_PERCENT, WEIGHT_PATTERN, write_weight
from recipe.config.values import Amount, Count, amount_schema, read_count
from recipe.maths.shares import PERCENT_PATTERN, parse_percent, parse_weight, percent_text, weight_text

Tail = Literal["keep", "backfill", "drop", "pad"]
Oversize = Literal["split", "truncate", "drop", "route"]
Specials = Literal["document", "window"]
Align = Literal["none", "section", "paragraph", "sentence", "line", "word", "number"]

REGIONS = ("head", "middle", "tail")
"""Of a document that is longer than a window; see ``recipe.sequences.windows``."""
WINDOW_MARKS = 2
"""Positions that marks round a window take."""

_V = TypeVar("_V")


def _by_region(given: Mapping[object, object], read: Callable[[object], _V], example: str) -> dict[str, _V]:
    """Values of some regions, in order."""
    found, values = list[Fault](), dict[str, _V]()
    if not given:
        raise problem("", given=given, expected=f"some of {', '.join(REGIONS)}", fix=f"write {example}")
    for region, value in given.items():
        if region not in REGIONS:
            expected, fix = f"one of {', '.join(REGIONS)}", nearest(region, REGIONS)
            found.append(Fault((str(region),), value, expected, fix))
            continue
        try:
            values[str(region)] = read(value)
        except PydanticCustomError as error:
            found += [fault.below((str(region),)) for fault in (error.context or {})["faults"]]
    if found:
        raise faults(found)
    return {region: values[region] for region in REGIONS if region in values}


def _read_stride(given: object) -> int | dict[str, int]:
    if isinstance(given, Mapping):
        return _by_region(given, read_count, "{head: 2048, tail: 2048}")
    return read_count(given)


def _read_part(given: object) -> Fraction:
    """A part of all, as an exact number."""
    try:
        part = parse_weight(given)
    except ValueError:
        raise problem("", given=given, expected="a number, 0..1", fix="write it like 0.5") from None
    if not 0 <= part <= 1 or part.denominator > LARGEST_TERM:
        raise problem("", given=given, expected="a number, 0..1", fix=_part_fix(part))
    return part


def _part_fix(part: Fraction) -> str:
    """What to write for a part that is none; a percent without its sign is likely."""
    if 1 < part <= 100:
        return f"write at most 1, such as {weight_text(part / 100)} for {weight_text(part)} % of the pieces"
    return "write 1 to keep all pieces, 0.5 for half of them"


def _read_density(given: object) -> dict[str, Fraction]:
    example = "{middle: 0.5}"
    if isinstance(given, Mapping):
        return _by_region(given, _read_part, example)
    part = _read_part(given)
    if part != 1:
        fix = f"write {{head: 1, middle: {weight_text(part)}, tail: 1}}, with the parts that are meant"
        raise problem("", given=given, expected="1, or a mapping of regions to numbers in 0..1", fix=fix)
    return {}


def _write_density(density: Mapping[str, Fraction]) -> int | dict[str, int | str]:
    return {region: write_weight(part) for region, part in density.items()} or 1


def _regions_schema(value: Mapping[str, Any]) -> dict[str, Any]:
    properties = dict.fromkeys(REGIONS, value)
    return {"type": "object", "properties": properties, "additionalProperties": False, "minProperties": 1}


Stride = Annotated[
    int | dict[str, int],
    BeforeValidator(_read_stride),
    WithJsonSchema({"anyOf": [*amount_schema(1)["anyOf"], _regions_schema(amount_schema(1))]}),
]
"""Tokens, one number or by region."""

_PART = {
    "anyOf": [{"type": "number", "minimum": 0, "maximum": 1}, {"type": "string", "pattern": WEIGHT_PATTERN}]
}
Density = Annotated[
    dict[str, Fraction],
    PlainValidator(_read_density),
    PlainSerializer(_write_density),
    WithJsonSchema({"anyOf": [{"const": 1}, _regions_schema(_PART)]}),
]
"""Shares of pieces by region; empty: all are kept."""


_DUPLICATES = {"keep": Fraction(0), "drop": Fraction(1)}


def _read_duplicates(given: object) -> Fraction:
    """The part of a window that repeats at least, for it to be dropped; 0: all are kept."""
    if isinstance(given, str) and given.strip() in _DUPLICATES:
        return _DUPLICATES[given.strip()]
    try:
        part = parse_percent(given)
    except ValueError:
        expected = "one of keep, drop, or percent text, above 0% and up to 100%"
        fix = nearest(given, tuple(_DUPLICATES)) if isinstance(given, str) else ""
        fix = fix if "did you mean" in fix else _duplicates_fix(given)
        raise problem("", given=given, expected=expected, fix=fix) from None
    if not 0 < part <= 1 or len(str(given).strip()) > LONGEST_PERCENT:
        expected = f"percent text above 0% and up to 100%, of at most {LONGEST_PERCENT} characters"
        raise problem("", given=given, expected=expected, fix="write 80%, drop for 100%, or keep")
    return part


def _duplicates_fix(given: object) -> str:
    """What to write for a number without its percent sign, or for anything else."""
    if isinstance(given, int | float | str) and not isinstance(given, bool):
        try:
            number = Fraction(str(given))
        except (ValueError, ZeroDivisionError):
            number = Fraction(0)
        if 0 < number <= 100:
            part = percent_text(number if number <= 1 else number / 100)
            return f"write {part} to drop windows of which so much repeats, or drop for whole ones"
    return "write drop, or 80% to drop windows of which so much repeats"


def write_duplicates(part: Fraction) -> str:
    """``keep``, ``drop`` or the part as percent text."""
    return {at: word for word, at in _DUPLICATES.items()}.get(part) or percent_text(part)


Duplicates = Annotated[
    Fraction,
    PlainValidator(_read_duplicates),
    PlainSerializer(write_duplicates, return_type=str),
    WithJsonSchema({"anyOf": [{"enum": list(_DUPLICATES)}, {"type": "string", "pattern": PERCENT_PATTERN}]}),
]
"""Windows that repeat: ``keep``, ``drop``, or drop those of which a part repeats."""


class SlicingConfig(Model):
    """How documents longer than a window are cut; what is left out has its default, or the stage's rule."""

    window: Count | None = None
    """Document tokens in a piece; default: the stage's ``context``, and at most that."""
    stride: Stride | None = None
    """Tokens between two window starts; default: the window, which means no overlap. Or by region of a
    document: ``{head: 2048, middle: 4096, tail: 2048}``; head and tail are its first and last two windows."""
    tail: Tail | None = None
    """What happens to the end of a document: ``keep`` (default), ``backfill``, ``drop`` or ``pad``."""
    min_tail: Amount | None = None
    """With ``backfill``: fewer fresh tokens are dropped and counted; default: a quarter of the window."""
    overlap_labels: bool | None = None
    """Whether tokens read again as overlap carry labels again; default false."""
    oversize: Oversize | None = None
    """Documents longer than the window: ``split`` (default), ``truncate`` or ``drop``; of a pool with
    ``max_tokens`` also ``route``: another view of its folder takes what is longer, whole."""
    offset: Literal[0, "random"] | None = None
    """Where the windows of a document start that is longer than one: at token 0 (default), or ``random``, at
    a place before the stride that hashes choose anew in every epoch; the tokens before it are a piece."""
    density: Density | None = None
    """Pieces that are kept of a document longer than a window: 1 (all, default), or a share by region:
    ``{middle: 0.5}``. The others are left out by keyed hashes and counted as ``thinned``."""
    duplicates: Duplicates | None = None
    """Windows that repeat what stands earlier in their document or group: ``keep`` (default), ``drop``, or
    drop those of which so much repeats: ``80%``. First and last windows and those in which a section begins
    stay; the others are counted as ``duplicate``. The pool must know what repeats (`recipe prepare
    --repeats`)."""
    specials: Specials | None = None
    """What BOS and EOS stand round: the ``document`` (default), or every ``window``."""
    align: Align | None = None
    """Where a document may be cut: anywhere (``none``, default), or at the end of a ``section``,
    ``paragraph``, ``sentence``, ``line`` or ``word``, or outside a ``number``."""
    align_within: Amount | None = None
    """Tokens that a cut may move back to such a place, less than the stride; default: a quarter of the
    window. Where there is none the cut stays, and is counted."""

    def over(self, under: SlicingConfig | None) -> SlicingConfig:
        """This config with what it leaves out taken from another."""
        return self if under is None else overlay(self, under)

    @property
    def marks(self) -> int:
        """Positions of a full window that its marks take."""
        return WINDOW_MARKS if self.specials == "window" else 0

    def strides(self, window: int) -> tuple[int, int, int]:
        """Strides in head, middle and tail."""
        stride = self.stride
        if stride is None or isinstance(stride, int):
            head = middle = tail = window if stride is None else stride
        else:
            head, middle, tail = (stride.get(region, window) for region in REGIONS)
        return head, middle, tail

    def resolved(self, context: int) -> Slicing:
        """The rule for a stage's context."""
        window = self.window if self.window is not None else context - self.marks
        head, middle, tail = strides = self.strides(window)
        within = 0
        if (align := self.align or "none") != "none":
            within = self.align_within if self.align_within is not None else window // 4
            within = min(within, min(strides) - 1)
        kept = tuple((self.density or {}).get(region, Fraction(1)) for region in REGIONS)
        return Slicing(
            window=window,
            stride=middle,
            tail=self.tail or "keep",
            min_tail=self.min_tail if self.min_tail is not None else window // 4,
            overlap_labels=bool(self.overlap_labels),
            oversize="split" if self.oversize in (None, "route") else self.oversize,
            strides=strides if head != middle or tail != middle else None,
            random_offset=self.offset == "random",
            density=(kept[0], kept[1], kept[2]) if set(kept) != {1} else None,
            duplicates=self.duplicates or None,
            specials=self.specials or "document",
            align=align,
            align_within=within,
        )


class Slicing(Model):
    """A slicing rule with every default filled in."""

    window: int
    """Document tokens in a piece."""
    stride: int
    """Tokens between two window starts."""
    tail: Tail
    min_tail: int
    overlap_labels: bool
    oversize: Oversize
    strides: tuple[int, int, int] | None
    random_offset: bool
    density: tuple[Fraction, Fraction, Fraction] | None
    duplicates: Fraction | None
    specials: Specials
    align: Align
    align_within: int
