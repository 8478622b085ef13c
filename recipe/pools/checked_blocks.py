"""The tokens of a pool as bytes, read block by block, each compared with its hash before it is used."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator

from recipe.errors import Problem, RecipeError
from recipe.pools.blocks import block_digest
from recipe.pools.origins import read_tokens
from recipe.pools.pool import Pool
from recipe.pools.verify import block_digests, hashed_blocks


class CheckedBlocks:
    """Bytes of an own pool, all its token files taken as one."""

    def __init__(self, pool: Pool) -> None:
        """Of a pool.

        Raises:
            RecipeError: the hashes of its blocks are not those that its card states.
        """
        self.pool = pool
        digests, findings = block_digests(pool.layout.folder, pool.card)
        if digests is None or findings:
            raise RecipeError(
                f"pool {pool.name}",
                [Problem(one.where, one.observed, one.expected, _FIX) for one in findings],
            )
        self._blocks = list(hashed_blocks(pool.card, digests))
        self._starts = [block.base + block.start for block in self._blocks]
        self._held: tuple[int, bytes] = (-1, b"")

    def digests_of(self, part: int) -> list[str]:
        """Hashes of the blocks of a part, hexadecimal."""
        name = self.pool.layout.part_names[part]
        return [block.digest.hex() for block in self._blocks if block.part == name]

    def between(self, start: int, stop: int) -> Iterator[memoryview]:
        """Bytes ``start`` to ``stop`` of the pool, a block or less at a time.

        Raises:
            RecipeError: a block that is not what it was.
        """
        index = bisect_right(self._starts, start) - 1
        while start < stop:
            data, base = self._block(index), self._starts[index]
            end = min(stop, base + len(data))
            yield memoryview(data)[start - base : end - base]
            start, index = end, index + 1

    def _block(self, index: int) -> bytes:
        if self._held[0] != index:
            block = self._blocks[index]
            first, last = block.base + block.start, block.base + block.stop
            data = read_tokens(self.pool.layout.folder, self.pool.card, first, last)
            if block_digest(data) != block.digest:
                where = str(self.pool.layout.folder / block.where)
                raise RecipeError.single(
                    f"pool {self.pool.name}", where, given="other contents",
                    expected=f"contents with hash {block.digest.hex()}", fix=_FIX,
                )  # fmt: skip
            self._held = (index, data)
        return self._held[1]


_FIX = "copy the pool again from where it is whole: `recipe pools verify` names every fault"
