"""``recipe pools refingerprint``: a pool's fingerprint from its contents, beside the one its card states."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from rich.console import RenderableType
from rich.text import Text

from recipe.cli.options import MOST, add_json, add_yes, here, number, whole
from recipe.cli.output import confirm, no_write, print_json, print_tables, say
from recipe.errors import RecipeError
from recipe.pools.beside import REMADE
from recipe.pools.refingerprint import LOST, WHOLE, Known, Refingerprint, refingerprint, write_anew
from recipe.report.tables import table
from recipe.text.lost_cards import known_by
from recipe.text.tokenizers import load_tokenizer

EXAMPLE = """\
Examples:
  recipe pools refingerprint pools/web
  recipe pools refingerprint pools/web --write --tokenizer tokenizers/ours
  recipe pools refingerprint pools/ids --write --vocab-size 50257 --eos 50256

Every file is read and hashed. 0: the contents are what the card states; 1: they are not, or the card cannot
be read. --write writes the card of the contents: after a card was lost, with the fingerprint that it had; of
changed contents with another one, after showing old and new, as another pool, which no run has read. Files
that do not agree with each other (tokens and the hashes of documents, say) are never written down as right.
"""
_SHOWN = 20
_SAID = (
    "vocab_size", "token_dtype", "tokenizer_name", "tokenizer", "bos", "eos", "num_documents", "num_units",
    "body_tokens", "special_tokens", "shuffled", "seed", "dropped", "source", "about",
)  # fmt: skip
"""Of a card, what is shown before it is written anew."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the pool, and what is known of one without its card."""
    parser.epilog = EXAMPLE
    parser.add_argument("pool", type=here, metavar="POOL", help="folder of the pool")
    parser.add_argument("--write", action="store_true", help="write the card of the contents, after asking")
    known = parser.add_argument_group("what a lost or damaged card does not tell")
    known.add_argument("--tokenizer", metavar="bytes|PATH", help="the one that made the pool")
    known.add_argument("--eos", metavar="TOKEN|ID", help="its end mark, where that is not clear")
    known.add_argument(
        "--vocab-size", type=number(1, MOST, amounts=True), metavar="N", help="ids, without a tokenizer"
    )
    known.add_argument("--bos", type=whole, metavar="ID", help="begin mark, without a tokenizer")
    add_yes(parser)
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Compare, and write anew what was asked for; 1 where the card is not what the contents say."""
    found = refingerprint(args.pool, _known(args))
    wanted = args.write and not found.is_current and not found.findings
    if not args.json:
        print_tables(_shown(found))
    if wanted and not confirm(_question(found), yes=args.yes):
        if args.json:
            print_json({**found.to_plain(), "written": False})
        return no_write(dry_run=False)
    if wanted:
        write_anew(found)
        say(f"{args.pool}: card.json is written anew, fingerprint {found.found}", quiet=args.json)
    if args.json:
        print_json({**found.to_plain(), "written": wanted})
    elif args.write and found.findings:
        say("nothing was written: the files do not agree with each other; prepare the pool again")
    return 0 if wanted or (found.is_current and not found.findings) else 1


def _known(args: argparse.Namespace) -> Known | None:
    if args.tokenizer is not None:
        if args.vocab_size is not None or args.bos is not None:
            raise RecipeError.single(
                "pools refingerprint", "--tokenizer", given="--vocab-size or --bos beside it",
                expected="one of them", fix="leave the others out: the tokenizer says how many ids there are",
            )  # fmt: skip
        eos = None if args.tokenizer == "bytes" else args.eos
        return known_by(args.pool, load_tokenizer(args.tokenizer, eos=eos))
    if args.vocab_size is None:
        return None
    if args.eos is not None and not args.eos.isdecimal():
        raise RecipeError.single(
            "pools refingerprint", "--eos", given=args.eos, expected="an id, without a tokenizer",
            fix="write its number, or name the tokenizer with --tokenizer",
        )  # fmt: skip
    eos = None if args.eos is None else int(args.eos)
    source = {REMADE: "the card was lost; of the contents alone"}
    return Known(vocab_size=args.vocab_size, eos=eos, bos=args.bos, source=source)


def _question(found: Refingerprint) -> str:
    if found.stated is None:
        return f"write a card for {found.path} with fingerprint {found.found[:16]}…?"
    if found.same:
        return f"write the card of {found.path} anew? its fingerprint stays"
    return (
        f"{found.path} is another pool than its card states: {found.stated[:16]}… becomes "
        f"{found.found[:16]}…, and runs that read the old one refuse it. Write that?"
    )


def _shown(found: Refingerprint) -> Iterator[RenderableType]:
    rows = [("stated", found.stated or "none that can be read"), ("of the contents", found.found)]
    yield table(f"{found.path}: the card is {found.card}", ("fingerprint", ""), rows, caption=_verdict(found))
    if found.differences:
        cells = [(what, _short(old), _short(new)) for what, old, new in found.differences[:_SHOWN]]
        more = len(found.differences) - _SHOWN
        caption = f"and {more:,} more" if more > 0 else ""
        yield table("what the card states otherwise", ("what", "stated", "found"), cells, caption=caption)
    if found.card != WHOLE:
        yield table("the card of the contents", ("what", ""), _card_rows(found))
    for one in found.findings:
        yield Text(f"{one.check}: {one.where}\n  expected {one.expected}\n  found    {one.observed}")


def _card_rows(found: Refingerprint) -> list[tuple[str, str]]:
    plain = found.made.to_plain()
    return [(name, _short(plain[name])) for name in _SAID if name in plain]


def _verdict(found: Refingerprint) -> str:
    if found.findings:
        return "the files of the pool do not agree with each other"
    if found.card == LOST:
        return "what the card said is not known; the contents agree with each other"
    if found.same and found.is_current:
        return "the contents are what the card states"
    if found.same and not found.are_hashes_there:
        return "the same pool; hashes.npy is lost or damaged: --write makes it anew"
    if found.same:
        return "the same pool: what differs does not enter the fingerprint"
    return "another pool than the card states"


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:59]}…"
