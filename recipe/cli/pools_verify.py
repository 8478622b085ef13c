"""``recipe pools verify``: whether pools are what they were written as, and what comes back as text."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from recipe.cli.file_words import add_file_words, open_worded
from recipe.cli.options import add_json, check_sources, number, sample_of, whole
from recipe.cli.output import print_json, progress
from recipe.config.places import place
from recipe.errors import RecipeError, counted
from recipe.pools.card import CARD_NAME
from recipe.pools.finding import Finding
from recipe.pools.opening import OWN_FILES
from recipe.pools.pool import Pool
from recipe.pools.soundness import SAMPLE, check_soundness
from recipe.run.tracing.round_trips import FATES, LOST, OTHERWISE, RoundTrips, round_trips
from recipe.text.pool_texts import maker_of

DOCUMENTS = 1000
EXAMPLE = """\
Examples:
  recipe pools verify pools/web pools/code
  recipe pools verify pools/web --full --json
  recipe pools verify pools/web --sample 5% --seed 7
  recipe pools verify pools/web --tokenizer tokenizers/ours --sources texts
  recipe pools verify megatron/part_00 --eos 0

Files beside the tokens are hashed whole up to 64 MiB each, of token files a share (1 %, or --sample). --full
reads everything: every file's hash; offsets, indices, units and document table against each other and against
the tokens, document by document; ids that occur once; counts that add up. A byte that was changed anywhere is
named with its file. With the tokenizer: whether decode(encode(text)) is the text, or the tokenizer's own
normalisation of it.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pools and how much of them is read."""
    parser.epilog = EXAMPLE
    parser.add_argument(
        "pools", nargs="+", type=place, metavar="POOL", help="folder or URL of a pool; repeatable"
    )
    depth = parser.add_mutually_exclusive_group()
    depth.add_argument("--full", action="store_true", help="read every byte and every document")
    depth.add_argument(
        "--sample",
        type=sample_of,
        metavar="N|SHARE",
        help="blocks to hash, or a share of them (default: 1%%)",
    )
    parser.add_argument("--seed", type=whole, default=0, metavar="N", help="of the sample")
    parser.add_argument(
        "--tokenizer", metavar="bytes|PATH", help="the pools': also look what comes back as text"
    )
    parser.add_argument(
        "--sources",
        action="append",
        default=[],
        metavar="DIR|URL",
        help="where the texts are, to be compared (--tokenizer default then: bytes); repeatable",
    )
    parser.add_argument(
        "--texts",
        type=number(1, amounts=True),
        default=DOCUMENTS,
        metavar="N",
        help=f"documents to look at with the tokenizer (default: {DOCUMENTS:,}; all with --full)",
    )
    add_file_words(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Verify; 1 where anything was found."""
    check_sources("recipe pools verify", args.sources)
    told = [_verified(path, args) for path in args.pools]
    ok = not any(one["findings"] for one in told)
    if args.json:
        print_json({"ok": ok, "pools": told})
    else:
        print("\n".join(line for one in told for line in _lines(one)))
    return 0 if ok else 1


def _verified(path: Path, args: argparse.Namespace) -> dict[str, Any]:
    """What was found in one pool."""
    try:
        pool = open_worded(str(path), args)
    except RecipeError as error:
        if not any((path / name).exists() for name in (CARD_NAME, *OWN_FILES)):
            raise
        found = [Finding("pool", one.where, one.expected, str(one.given)) for one in error.problems]
        return _told(path, None, found, [], None)
    with pool:
        notes: list[str] = []
        trips: RoundTrips | None = None
        try:
            found, notes = _checked(pool, args)
            trips = _trips(pool, args) if not found and _with_texts(args) else None
        except RecipeError as error:
            if _with_texts(args) and error.problems[0].where == "tokenizer":
                raise
            found = [Finding("file", one.where, one.expected, str(one.given)) for one in error.problems]
        if trips is not None and trips.documents.get(LOST):
            lost = ", ".join(map(repr, trips.examples[LOST]))
            found.append(Finding("text", str(path), "tokens that give the text back", f"documents {lost} …"))
        if trips is not None and pool.card.tokenizer is None and _is_another(trips):
            given = f"{trips.documents[OTHERWISE]:,} of {trips.looked_at:,} documents give other tokens"
            expected = f"tokens of {args.tokenizer}: the pool does not say its tokenizer"
            found.append(Finding("tokenizer", str(path), expected, f"{given}: this is not its tokenizer"))
        return _told(path, pool, found, notes, trips)


def _with_texts(args: argparse.Namespace) -> bool:
    """Whether texts are looked at: who names sources wants them compared."""
    return args.tokenizer is not None or bool(args.sources)


def _is_another(trips: RoundTrips) -> bool:
    """Whether most documents are not what the tokenizer makes of their text."""
    return trips.documents.get(OTHERWISE, 0) * 2 > trips.looked_at


def _checked(pool: Pool, args: argparse.Namespace) -> tuple[list[Finding], list[str]]:
    with progress(quiet=args.json) as bars:
        task = bars.add_task(f"{pool.name}: documents", total=pool.num_documents, note="", visible=args.full)
        return check_soundness(
            pool, full=args.full, sample=SAMPLE if args.sample is None else args.sample, seed=args.seed,
            tell=lambda done, total: bars.update(task, completed=done),
        )  # fmt: skip


def _told(
    path: Path, pool: Pool | None, found: list[Finding], notes: list[str], trips: RoundTrips | None
) -> dict[str, Any]:
    return {
        "path": str(path),
        "ok": not found,
        "fingerprint": None if pool is None else pool.fingerprint,
        "documents": None if pool is None else pool.num_documents,
        "erased": None if pool is None else int(pool.holds(pool.erased).sum()),
        "tokens": None if pool is None else pool.num_tokens,
        "findings": [asdict(one) for one in found],
        "notes": notes,
        "round_trips": None if trips is None else trips.to_plain(),
    }


def _trips(pool: Pool, args: argparse.Namespace) -> RoundTrips:
    count = None if args.full else args.texts
    return round_trips(pool, maker_of(pool, args.tokenizer, "--tokenizer"), count, args.seed, args.sources)


def _lines(told: dict[str, Any]) -> Iterator[str]:
    findings, trips = told["findings"], told["round_trips"]
    verdict = "nothing wrong was found" if not findings else counted(len(findings), "finding")
    size = "" if told["documents"] is None else f", {_size(told)}"
    yield f"{told['path']}: {verdict}{size}"
    for one in findings:
        yield f"  {one['check']}: {one['where']}"
        yield f"    expected  {one['expected']}\n    found     {one['observed']}"
    yield from (f"  note: {note}" for note in told["notes"])
    for fate, count in (trips or {"documents": {}})["documents"].items():
        shown = ", ".join(map(repr, trips["examples"].get(fate, ())))
        these = f" ({shown})" if shown else ""
        yield f"  {count:,} of {counted(trips['looked_at'], 'document')}: {FATES[fate]}{these}"


def _size(told: dict[str, Any]) -> str:
    """Documents and stored tokens, end marks among them; erased ones are zeros that keep their place."""
    documents = counted(told["documents"], "document")
    erased = f" (of them erased: {told['erased']:,})" if told["erased"] else ""
    return f"{documents}{erased}, {counted(told['tokens'], 'token')} with end marks"
