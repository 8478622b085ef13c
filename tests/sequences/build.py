"""Rules and documents for tests of sequences: lengths alone, or a small pool on disk."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from hypothesis import strategies as st
from numpy.typing import NDArray

from recipe.config import Rule
from recipe.maths.draws import draw
from recipe.sequences.duplicates import repeating
from recipe.sequences.pieces import HAS_BOS, HAS_EOS, OVERSIZE, REASONS, TAILS, Documents
from recipe.sequences.slicing import Sliced, cutting_of, heads_of, slice_documents, thinned
from recipe.sequences.windows import Cutting, Reading
from tests.sequences.edges import edges, may_cut
from tests.sequences.reference import Choices, Doc


def rule(context: int, *, window: int | None = None, stride: int | None = None, **more: Any) -> Rule:
    """A rule with the product's defaults."""
    size = window if window is not None else context
    defaults: dict[str, Any] = {
        "tail": "keep",
        "min_tail": size // 4,
        "overlap_labels": False,
        "oversize": "split",
        "method": "best_fit",
        "attention": "piece",
        "positions": "restart",
        "cross_labels": False,
        "labels": "shifted",
    }
    return Rule(
        context=context, window=size, stride=stride if stride is not None else size, **defaults | more
    )


def cutting(rule: Rule) -> Cutting:
    """The rule as compiled loops take it."""
    return cutting_of(rule)


def measured(docs: list[Doc]) -> Documents:
    """Lengths and marks of documents."""
    return Documents(
        np.array([len(doc.tokens) for doc in docs], np.int64),
        np.array([doc.bos is not None for doc in docs], bool),
        np.array([doc.eos is not None for doc in docs], bool),
    )


OFFSETS, DENSITIES = 11, 12
"""Keys of the draws of documents that are cut by themselves."""


def reading(docs: list[Doc], rule: Rule, kind: str = "int64") -> Reading | None:
    """The texts of documents, as the compiled loop reads them."""
    if rule.align == "none":
        return None
    texts = [np.array(doc.tokens, kind) for doc in docs]
    _HELD.append(texts)
    where = [text.__array_interface__["data"][0] for text in texts]
    places = np.cumsum([0, *map(len, texts)])[: len(texts)].astype(np.int64)
    return Reading(np.empty(0, kind), np.array(where, np.uint64), places, edges().of(rule.align))


_HELD: list[list[Any]] = []


REPEATED = [[5, 15], [20, 30], [35, 45]]
"""What repeats of all documents one behind another, every 45 tokens; sections begin every 37."""
SPANS = (np.arange(0, 900, 45)[:, None, None] + np.array(REPEATED)).reshape(-1, 2)
SECTIONS = np.arange(37, 900, 37)


def _starts(docs: list[Doc]) -> NDArray[np.int64]:
    return np.cumsum([0, *(len(doc.tokens) for doc in docs)])[: len(docs)].astype(np.int64)


def cut(docs: list[Doc], rule: Rule, kind: str = "int64") -> Sliced:
    """Documents cut by a rule, with their offsets and densities."""
    documents, numbers = measured(docs), np.arange(len(docs))
    heads = heads_of(documents, numbers, cutting(rule), OFFSETS) if rule.random_offset else None
    sliced = slice_documents(documents, cutting(rule), heads, reading(docs, rule, kind))
    if rule.duplicates is not None:
        gone = repeating(sliced.pieces, _starts(docs), (SPANS, SECTIONS), rule.duplicates)
        lost = (sliced.pieces.stop - sliced.pieces.fresh)[gone].sum()
        sliced.dropped[REASONS.index("duplicate")] = lost
        sliced = sliced._replace(pieces=sliced.pieces.take(~gone))
    if rule.density is not None:
        kept, lost = thinned(sliced.pieces, (documents, numbers), (cutting(rule), rule.density), DENSITIES)
        sliced.dropped[REASONS.index("thinned")] = lost
        sliced = sliced._replace(pieces=kept)
    return sliced


def choices(docs: list[Doc], rule: Rule) -> Choices:
    """What hashes and texts decide of the same documents, in plain words."""
    starts = _starts(docs).tolist()

    def repeated(document: int, token: int) -> bool:
        place = (starts[document] + token) % 45
        return any(first <= place < stop for first, stop in REPEATED)

    return Choices(
        repeated=repeated,
        section=lambda document, token: (starts[document] + token) % 37 == 0,
        offset=lambda document, token: draw(OFFSETS, (document, token), 1),
        density=lambda document, token: draw(DENSITIES, (document, token), 1),
        permitted=lambda document, place: may_cut(docs[document].tokens, place, rule.align),
    )


def spans(n: int, rule: Rule, **marks: int) -> list[tuple[int, int, int]]:
    """(start, stop, fresh) of the pieces of one document of ``n`` tokens."""
    pieces = cut([Doc(list(range(n)), **marks)], rule).pieces
    return list(zip(pieces.start.tolist(), pieces.stop.tolist(), pieces.fresh.tolist(), strict=True))


def dropped(n: int, rule: Rule) -> list[int]:
    """Tokens that one document loses, by reason."""
    return cut([Doc(list(range(n)))], rule).dropped.tolist()


def marked(flags: int) -> tuple[bool, bool]:
    """Whether a piece gives BOS and EOS a position."""
    return bool(flags & HAS_BOS), bool(flags & HAS_EOS)


@st.composite
def rules(draw: st.DrawFn, methods: tuple[str, ...] = ("best_fit", "none")) -> Rule:
    """Any rule of a small context: every option at once."""
    context = draw(st.integers(3, 20))
    method = draw(st.sampled_from(methods))
    joined = method == "concat"
    options = {} if joined else draw(slicings(context))
    marks = 2 if options.get("specials") == "window" else 0
    window = context if joined else draw(st.integers(min(2, context - marks), context - marks))
    if (given := options.pop("strides", None)) is not None:
        options["strides"] = tuple(min(stride, window) for stride in given)
    stride = options["strides"][1] if "strides" in options else draw(st.integers(1, window))
    if options.get("align", "none") != "none":
        least = min(options.get("strides", (stride,)))
        options["align_within"] = draw(st.integers(0, least - 1))
    return rule(
        context,
        window=window,
        stride=stride,
        tail=draw(st.sampled_from(("keep", "drop") if joined else TAILS)),
        min_tail=draw(st.integers(0, window)),
        oversize="split" if joined else draw(st.sampled_from(OVERSIZE)),
        overlap_labels=draw(st.booleans()),
        cross_labels=draw(st.booleans()),
        method=method,
        labels=draw(st.sampled_from(["shifted", "inputs"])),
        attention=draw(st.sampled_from(["piece", "group", "sequence"])),
        eos_keep=Fraction(1) if marks else draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(0)])),
        shuffle_fit=draw(st.booleans()),
        **options,
    )


@st.composite
def slicings(draw: st.DrawFn, context: int) -> dict[str, Any]:
    """Options of slicing that documents joined before they are cut do not have."""
    number, parts = st.integers(1, context), st.sampled_from([Fraction(0), Fraction(1, 3), Fraction(1)])
    options: dict[str, Any] = {"random_offset": draw(st.booleans())}
    if draw(st.booleans()):
        options["density"] = draw(st.tuples(parts, parts, parts))
    options["duplicates"] = draw(st.sampled_from([None, None, Fraction(1), Fraction(1, 2), Fraction(1, 7)]))
    if draw(st.booleans()):
        options["strides"] = draw(st.tuples(number, number, number))
    options["align"] = draw(st.sampled_from(["none", "number", "word", "sentence", "line", "paragraph"]))
    options["specials"] = draw(st.sampled_from(["document", "window"]))
    return options


@st.composite
def texts(draw: st.DrawFn, max_size: int = 8) -> list[Doc]:
    """Documents with and without marks, as imported pools mix them; some are empty."""
    bos, eos = (
        draw(st.sampled_from([(None,), (2,), (None, 2)])),
        draw(st.sampled_from([(None,), (1,), (None, 1)])),
    )
    one = st.tuples(st.integers(0, 60), st.sampled_from(bos), st.sampled_from(eos))
    return [Doc(list(range(10, 10 + n)), b, e) for n, b, e in draw(st.lists(one, max_size=max_size))]
