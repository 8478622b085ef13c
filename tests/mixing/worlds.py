"""Random recipes over a bank of pools that is written once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from hypothesis import assume
from hypothesis import strategies as st

from recipe.errors import RecipeError
from tests.mixing.build import BOS, EOS, World, world, write
from tests.mixing.reference import Source
from tests.pools.megatron_files import write_pair
from tests.sequences.reference import Doc, Need

PARTS = ("keep", "drop", "50%", "10%")
SHAPES = ("short", "mixed", "long", "one")
MARKS = ((False, False), (True, False), (False, True), (True, True))


class Bank:
    """Pools of every shape, with every choice of marks, with and without groups."""

    def __init__(self, root: Path, sources: dict[str, Source], keys: dict[str, dict[str, int]]) -> None:
        """``keys``: what a recipe has to say of a pool besides its path."""
        self.root, self.sources, self.keys = root, sources, keys
        fronts = {name: [len(doc.lead) for doc in source.docs] for name, source in sources.items()}
        self.leads = {name: max(found, default=0) for name, found in fronts.items()}
        """The most special tokens in front of a document of each pool, where there are more than BOS."""
        marked = {name: source.docs[0] for name, source in sources.items()}
        self.marked = {
            name: doc.bos is not None and doc.eos is not None
            for name, doc in marked.items()
            if name not in keys
        }

    def __repr__(self) -> str:
        return "Bank()"


def write_bank(root: Path) -> Bank:
    """Thirteen pools of our own and two imported pairs; ids do not overlap between pools."""
    rng, sources, first = Random(7), {}, 10
    extra = Random(9)
    for s, shape in enumerate(SHAPES):
        for m in range(3):
            eos, bos = MARKS[(s + m) % 4]
            lengths = _lengths(shape, rng)
            groups = _groups(len(lengths), rng) if (s + m) % 2 else None
            name = f"{shape}{m}"
            more: dict[str, Any] = {}
            if groups and m == 1:
                more["leads"] = _leads(groups, extra, 1 if bos else 2)
            if groups and s:
                more["needs"] = _needs(lengths, groups, extra)
            source = write(
                root / name, lengths, eos=eos, bos=bos, groups=groups, first=first, part_tokens=150, **more
            )
            first += sum(lengths)
            sources[name] = source
    chances = Random(8)
    lengths = [*_lengths("long", chances), *_lengths("mixed", chances)]
    more = {"period": 11, "repeats": 3, "part_tokens": 90, "groups": _groups(len(lengths), chances)}
    sources["twice"] = write(root / "twice", lengths, eos=True, bos=True, first=4000, **more)
    keys = {}
    for code, name in ((3, "pair16"), (5, "pair64")):
        lengths = _lengths("mixed", rng)
        sources[name], keys[name] = _pair(root / name, lengths, (code, first), rng), {"eos": EOS, "bos": BOS}
        first += sum(lengths)
    return Bank(root, sources, keys)


def _pair(prefix: Path, lengths: list[int], tokens: tuple[int, int], rng: Random) -> Source:
    """A Megatron pair of a token width, whose documents have marks or not."""
    (code, at), docs = tokens, []
    for length in lengths:
        bos, eos = rng.choice([None, BOS]), rng.choice([None, EOS])
        docs.append(Doc(list(range(at, at + length)), bos, eos))
        at += length
    stored = [[m for m in (d.bos, *d.tokens, d.eos) if m is not None] for d in docs]
    write_pair(prefix, [[document] for document in stored], code)
    return Source(docs, [[number] for number in range(len(docs))])


def _lengths(shape: str, rng: Random) -> list[int]:
    if shape == "one":
        return [rng.randint(20, 40)]
    low, high, most = {"short": (0, 7, 14), "mixed": (1, 40, 12), "long": (25, 80, 5)}[shape]
    return [rng.randint(low, high) for _ in range(rng.randint(most // 2, most))]


def _groups(num: int, rng: Random) -> list[int]:
    groups, group = [], 0
    for _ in range(num):
        groups.append(group)
        group += rng.random() < 0.6
    return groups


def _leads(groups: list[int], rng: Random, most: int) -> list[list[int]]:
    """Special tokens in front of documents of groups, and of no other."""
    return [[7, 8][: rng.randint(1, most)] if groups.count(group) > 1 else [] for group in groups]


def _needs(lengths: list[int], groups: list[int], rng: Random) -> list[tuple[list[int], list[Need]]]:
    """Sections of documents, about three each, of which some need another one of their unit."""
    cuts = [sorted({0, *(rng.randrange(n) for _ in range(2))}) if n else [] for n in lengths]
    found: list[list[Need]] = [[] for _ in lengths]
    for number, starts in enumerate(cuts):
        unit = [k for k, group in enumerate(groups) if group == groups[number] and cuts[k]]
        for start, stop in zip(starts, [*starts[1:], lengths[number]], strict=False):
            other = rng.choice(unit)
            first = rng.choice(cuts[other])
            last = min([c for c in cuts[other] if c > first], default=lengths[other])
            if rng.random() < 0.5 and (other, first) != (number, start):
                found[number].append(Need(start, stop, other - number, first, last))
    return list(zip(cuts, found, strict=True))


@contextmanager
def passed_over() -> Iterator[None]:
    """A case in which a pool gives nothing at all is passed over; any other refusal is a failure."""
    try:
        yield
    except RecipeError as error:
        if "gives 0 sequences" not in str(error):
            raise
        assume(False)


@dataclass(frozen=True, repr=False)
class Case:
    """A recipe and what its pools hold."""

    world: World
    sources: dict[str, Source]
    plain: dict[str, Any]

    def __repr__(self) -> str:
        return f"Case({self.plain})"


def draw_case(
    draw: Any,
    bank: Bank,
    *,
    stages: int = 3,
    policies: tuple[str, ...] = ("repeat",),
    distinct: bool = False,
) -> Case:
    """A recipe of one to four pools; everything that hypothesis can make smaller is drawn.

    ``distinct``: of pools in which no token stands twice.
    """
    able = [name for name, source in bank.sources.items() if not (distinct and source.repeats)]
    chosen = draw(st.lists(st.sampled_from(sorted(able)), min_size=1, max_size=4, unique=True))
    names = [f"p{i}" for i in range(len(chosen))]
    pools = {
        name: {"path": path, **bank.keys.get(path, {})} | draw_pool(draw, policies)
        for name, path in zip(names, chosen, strict=True)
    }
    plain = {
        "seed": draw(st.sampled_from([0, 1, 2, 2**63 - 1])),
        "count": draw(st.sampled_from(["body", "fresh", "labels", "positions"])),
        "labels": draw(st.sampled_from(["shifted", "inputs"])),
    }
    planned = [draw_stage(draw, names) for _ in range(draw(st.integers(1, stages)))]
    for later in planned[1:]:
        if draw(st.booleans()):
            most = 9 if "steps" in later else 100
            later["quota_ramp"] = {"over": draw(st.integers(1, most)), "steps": draw(st.integers(1, 5))}
    _transform(draw, bank, pools, planned)
    _wrap(draw, bank, pools, planned)
    _told_once(draw, bank, pools, planned)
    made = world(bank.root, pools, planned, **plain)
    sources = {name: bank.sources[path] for name, path in zip(names, chosen, strict=True)}
    return Case(made, sources, {"pools": pools, "stages": planned, **plain})


def _transform(draw: Any, bank: Bank, pools: dict[str, dict[str, Any]], stages: list[dict[str, Any]]) -> None:
    """Fill some pools in the middle, where every stage allows it."""
    room = min(stage["context"] for stage in stages) - 3
    packings = [stage["packing"] for stage in stages]
    if room < 2 or any(p["method"] == "concat" or p["cross_labels"] for p in packings):
        return
    for pool in pools.values():
        if bank.leads[pool["path"]] < room and draw(st.booleans()):
            portion = st.sampled_from(["0%", "50%", "100%"])
            fim = {"rate": draw(portion), "spm": draw(portion), "prefix": 4, "middle": 5, "suffix": 6}
            pool["transform"] = {"fim": fim}
            window = draw(st.integers(2, room))
            stride = draw(st.sampled_from([window, window, max(1, window - 1)]))
            pool["slicing"] = {"window": window, "stride": stride, "min_tail": draw(st.integers(0, window))}


def _wrap(draw: Any, bank: Bank, pools: dict[str, dict[str, Any]], stages: list[dict[str, Any]]) -> None:
    """Put marks round every window of some pools that have both, where every stage allows it."""
    room = min(stage["context"] for stage in stages) - 2
    for pool in pools.values():
        mine = room - 3 * ("transform" in pool)
        is_marked = ("eos" in pool or bank.marked[pool["path"]]) and not bank.leads[pool["path"]]
        joined = any(s["packing"]["method"] == "concat" or "eos_keep" in s["packing"] for s in stages)
        if mine >= 2 and is_marked and not joined and draw(st.booleans()):
            window = draw(st.integers(2, mine))
            rule = {"window": window, "stride": max(1, window - 1), "min_tail": 1, "specials": "window"}
            pool["slicing"] = {**rule, "tail": draw(st.sampled_from(["keep", "backfill"]))}


def _told_once(draw: Any, bank: Bank, pools: dict[str, dict[str, Any]], stages: list[dict[str, Any]]) -> None:
    """Leave out what repeats, where a pool knows it and every stage allows it."""
    joined = any(stage["packing"]["method"] == "concat" for stage in stages)
    for pool in pools.values():
        if bank.sources[pool["path"]].repeats and not joined:
            pool["slicing"] = {**(pool["slicing"] or {}), "duplicates": draw(st.sampled_from(PARTS))}


def draw_pool(draw: Any, policies: tuple[str, ...]) -> dict[str, Any]:
    """Keys of a pool."""
    return {
        "block_units": draw(st.sampled_from([1, 2, 3, 64])),
        "max_epochs": draw(st.integers(1, 2)),
        "on_exhausted": draw(st.sampled_from(policies)),
        "slicing": draw(
            st.sampled_from([None, None, {"tail": "drop"}, {"stride": 2, "overlap_labels": True}])
        ),
    }


def draw_stage(draw: Any, names: list[str]) -> dict[str, Any]:
    """A stage over some pools."""
    context = draw(st.integers(3, 20))
    weights = draw(st.lists(st.integers(0, 5), min_size=len(names), max_size=len(names)))
    weights[draw(st.integers(0, len(names) - 1))] += 1
    method = draw(st.sampled_from(["best_fit", "concat", "none"]))
    packing = {
        "method": method,
        "attention": draw(st.sampled_from(["piece", "group", "sequence"])),
        "positions": draw(st.sampled_from(["restart", "continue"])),
        "cross_labels": draw(st.booleans()),
    }
    if draw(st.booleans()):
        packing["eos_keep"] = draw(st.sampled_from(["50%", "0%"]))
    if method == "best_fit":
        packing["shuffle_fit"] = draw(st.booleans())
    packing["document_multiple"] = 1
    if method != "concat" and packing["attention"] != "sequence" and not packing["cross_labels"]:
        divisors = [n for n in range(1, context + 1) if context % n == 0]
        packing["document_multiple"] = draw(st.sampled_from(divisors))
    batch, key = draw(st.integers(1, 4)), draw(st.sampled_from([0, 0, 40, 300]))
    return {
        "context": context,
        "batch": {"ramp": {0: batch, key: batch + 1}} if key else {"sequences": batch + 1},
        "weights": dict(zip(names, weights, strict=True)),
        "slicing": _slicing(draw, context, method),
        "packing": packing,
        "chunk": (batch + 1) * context * draw(st.integers(1, 3)) + draw(st.integers(0, 5)),
        **draw(st.sampled_from([{"steps": 3}, {"steps": 7}, {"tokens": 100}, {"tokens": 333}])),
    }


def _slicing(draw: Any, context: int, method: str) -> dict[str, Any]:
    window = context if method == "concat" else draw(st.integers(2, context))
    rule: dict[str, Any] = {
        "window": window,
        "stride": draw(st.integers(1, window)),
        "overlap_labels": draw(st.booleans()),
        "tail": draw(st.sampled_from(["keep", "drop"])),
    }
    if method == "concat":
        return rule
    rule["tail"] = draw(st.sampled_from(["keep", "backfill", "drop", "pad"]))
    rule["min_tail"] = draw(st.integers(0, window))
    rule["oversize"] = draw(st.sampled_from(["split", "split", "truncate", "drop"]))
    rule["offset"] = draw(st.sampled_from([0, "random"]))
    rule["align"] = draw(st.sampled_from(["none", "number", "word", "sentence", "line", "paragraph"]))
    if draw(st.booleans()):
        rule["density"] = {"head": "1/2", "middle": 0.25}
    if draw(st.booleans()):
        rule["stride"] = {"head": draw(st.integers(1, window)), "middle": rule["stride"]}
    return rule
