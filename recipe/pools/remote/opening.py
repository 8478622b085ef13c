"""Opening a pool that lies in a store: one listing, its card, and nothing else until it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path

from recipe.config.places import StorePath, place
from recipe.errors import Problem, RecipeError
from recipe.pools.card import BOUNDARIES, CARD_NAME, Card, Marks, read_card
from recipe.pools.opening import check_marks, check_sizes, own_pool, own_sizes
from recipe.pools.pool import Pool
from recipe.pools.remote.asking import Object, ask, changed, listed
from recipe.pools.remote.copied import copied_from
from recipe.pools.remote.folder import StoredFolder, mirror_of, split
from recipe.pools.remote.loop import run
from recipe.pools.remote.store import Stamp, is_missing, store_of


def open_in_store(url: StorePath, name: str, declared: Marks, *, tokens: bool = True) -> Pool:
    """The pool at a URL, under the name the recipe gives it.

    Args:
        url: of its folder.
        name: of the pool in the recipe.
        declared: the eos and bos that the recipe states.
        tokens: whether its token files have to be there.

    Raises:
        RecipeError: no pool, one that lacks files or has others than its card says, or a store that cannot
            be reached.
    """
    stamps = _listing(url, name)
    if CARD_NAME not in stamps:
        raise _no_card(url, name, stamps)
    scheme, path = split(url)
    data = run(ask(Object(name, store_of(scheme), f"{path}/{CARD_NAME}", stamps[CARD_NAME])))
    folder = mirror_of(url, data)
    try:
        card = read_card(folder)
    except RecipeError as error:
        raise _at(error, folder, url) from error
    check_marks(url, name, card, declared)
    sizes = own_sizes(card) if tokens else {f: card.files[f].bytes for f in BOUNDARIES if f in card.files}
    check_sizes(url, sizes, {file: stamp.size for file, stamp in stamps.items()})
    remote = StoredFolder(name, url, stamps, folder, _hashes(card))
    pool = own_pool(copied_from(remote, folder), name, card, declared, remote)
    pool.path = url
    pool.layout = replace(pool.layout, reopen=partial(_reopened, stamps=stamps))
    return pool


def _reopened(
    path: Path, name: str, declared: Marks, fingerprint: str, *, stamps: Mapping[str, Stamp]
) -> Pool:
    """The pool that was pickled, on the other side: the same card, and the same versions of its files.

    Raises:
        RecipeError: another pool is there now, or another version of a file.
    """
    url = place(path)
    assert isinstance(url, StorePath)
    pool = open_in_store(url, name, declared)
    remote = pool.layout.remote
    assert remote is not None
    if pool.fingerprint != fingerprint:
        raise RecipeError.single(
            f"pool {name}", str(path), given=f"a pool with fingerprint {pool.fingerprint}",
            expected=fingerprint, fix="put the pool back that was opened before",
        )  # fmt: skip
    for file in own_sizes(pool.card):
        if (now := remote.stamps[file]) != stamps.get(file):
            raise changed(replace(remote.object(file), stamp=stamps.get(file)), now)
    return pool


def _listing(url: StorePath, name: str) -> Mapping[str, Stamp]:
    scheme, path = split(url)
    store = store_of(scheme)
    try:
        return run(listed(store, path))
    except Exception as error:  # each store's package has exceptions of its own
        if is_missing(error):
            return {}
        words = f"{type(error).__name__}: {' '.join(str(error).split()):.300}"
        raise RecipeError.single(
            f"pool {name}", str(url), given=words, expected="a folder that can be listed",
            fix="check the address of the store (for S3: AWS_ENDPOINT_URL), the pool's path and credentials",
        ) from error  # fmt: skip


def _hashes(card: Card) -> dict[str, str]:
    hashes = {name: record.hash for name, record in card.files.items()}
    return hashes | {f"{part.name}.idx": part.index_hash for part in card.parts}


def _no_card(url: StorePath, name: str, stamps: Mapping[str, Stamp]) -> RecipeError:
    pairs = sorted(file for file in stamps if file.endswith(".idx"))
    if pairs:
        given = f"Megatron pairs without a card ({', '.join(pairs[:3])}{' …' if len(pairs) > 3 else ''})"
        fix = (
            "copy the pairs to this machine and name the folder; or upload a pool that was prepared from them"
        )
    elif stamps:
        given, fix = f"a folder without {CARD_NAME}", "upload it again in full: the card is written last"
    else:
        given, fix = "nothing", "correct the pool's path, or upload the pool there"
    return RecipeError.single(
        f"pool {name}", str(url), given=given, expected=f"the folder of a pool, with its {CARD_NAME}", fix=fix
    )


def _at(error: RecipeError, folder: Path, url: StorePath) -> RecipeError:
    """An error that names the URL in place of the copy here."""

    def at(text: object) -> str:
        return str(text).replace(str(folder), str(url))

    problems = [Problem(at(p.where), at(p.given), p.expected, p.fix) for p in error.problems]
    return RecipeError(at(error.title), problems)
