"""Rules and documents for tests of sequences: lengths alone, or a small pool on disk."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from recipe.config import Rule
from recipe.sequences.slicing import (
    HAS_BOS,
    HAS_EOS,
    OVERSIZE,
    TAILS,
    Cutting,
    Documents,
    cutting_of,
    slice_documents,
)
from tests.sequences.reference import Doc


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


def spans(n: int, rule: Rule, **marks: int) -> list[tuple[int, int, int]]:
    """(start, stop, fresh) of the pieces of one document of ``n`` tokens."""
    pieces, _ = slice_documents(measured([Doc(list(range(n)), **marks)]), cutting(rule))
    return list(zip(pieces.start.tolist(), pieces.stop.tolist(), pieces.fresh.tolist(), strict=True))


def dropped(n: int, rule: Rule) -> list[int]:
    """Tokens that one document loses: tail, short, oversize."""
    return slice_documents(measured([Doc(list(range(n)))]), cutting(rule))[1].tolist()


def marked(flags: int) -> tuple[bool, bool]:
    """Whether a piece gives BOS and EOS a position."""
    return bool(flags & HAS_BOS), bool(flags & HAS_EOS)


@st.composite
def rules(draw: st.DrawFn, methods: tuple[str, ...] = ("best_fit", "none")) -> Rule:
    """Any rule of a small context."""
    context = draw(st.integers(3, 20))
    method = draw(st.sampled_from(methods))
    joined = method == "concat"
    window = context if joined else draw(st.integers(2, context))
    return rule(
        context,
        window=window,
        stride=draw(st.integers(1, window)),
        tail=draw(st.sampled_from(("keep", "drop") if joined else TAILS)),
        min_tail=draw(st.integers(0, window)),
        oversize="split" if joined else draw(st.sampled_from(OVERSIZE)),
        overlap_labels=draw(st.booleans()),
        cross_labels=draw(st.booleans()),
        method=method,
        labels=draw(st.sampled_from(["shifted", "inputs"])),
    )


@st.composite
def texts(draw: st.DrawFn, max_size: int = 8) -> list[Doc]:
    """Documents with and without marks, as imported pools mix them; some are empty."""
    bos, eos = (
        draw(st.sampled_from([(None,), (2,), (None, 2)])),
        draw(st.sampled_from([(None,), (1,), (None, 1)])),
    )
    one = st.tuples(st.integers(0, 60), st.sampled_from(bos), st.sampled_from(eos))
    return [Doc(list(range(10, 10 + n)), b, e) for n, b, e in draw(st.lists(one, max_size=max_size))]
