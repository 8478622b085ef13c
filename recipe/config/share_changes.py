"""Shares of a stage changed by name: what is asked for changes, the rest stays.

Parts are exact and in one unit: of the whole, weights, or tokens. A group whose part changes keeps the
proportions inside, whether the stage states the group or its pools apart; where a pool is asked for alone,
the pools of its group are stated apart from then on.

Faults are raised as `problem` does, at the name.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from recipe.config.group import GroupConfig
from recipe.config.problems import Fault, nearest, problem

Parts = Mapping[str, Fraction]
"""What every stated name has, a pool or a group."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ground:
    """What names stand for, and how amounts are written."""

    pools: Sequence[str]
    groups: Mapping[str, GroupConfig]
    text: Callable[[Fraction], str]
    faulty: Collection[str] = ()
    """Groups of which it is not known what they stand for."""

    def members(self, name: str) -> list[str]:
        """The pools that a name stands for."""
        if name in self.faulty:
            return []
        return list(self.groups[name].pools) if name in self.groups else [name]

    def within(self, name: str, members: Iterable[str]) -> bool:
        """Whether all that a name stands for is among some pools."""
        return set(self.members(name)) <= set(members)


def name_faults(asked: Iterable[str], ground: Ground) -> Iterator[Fault]:
    """Faults of names that nobody has, and of pools that are asked for twice, alone and in a group."""
    holders: dict[str, str] = {}
    for name in asked:
        known = [*ground.pools, *ground.groups, *ground.faulty]
        if name not in known:
            expected = f"a pool or group of the recipe: {', '.join(known)}"
            fix = nearest(name, known, f"add the pool with +pools.{name}={{path: FOLDER}}, or leave it out")
            yield Fault((name,), name, expected, fix)
            continue
        if twice := [pool for pool in ground.members(name) if pool in holders]:
            other = holders[twice[0]]
            fix = f"change {name} or {other}, or each of their pools by its own name"
            yield Fault((name,), f"{twice[0]} in {other} and in {name}", "each pool under one name", fix)
        holders |= dict.fromkeys(ground.members(name), name)


def part_of(parts: Parts, name: str, ground: Ground) -> Fraction:
    """What a pool or group has, whatever it is stated as."""
    members = ground.members(name)
    apart = _apart(parts, members, ground)
    return total(part for other, part in apart.items() if ground.within(other, members))


def with_part(parts: Parts, name: str, part: Fraction, ground: Ground) -> Parts:
    """The parts with one name's changed; what it stands for is scaled pro rata."""
    members = ground.members(name)
    apart = _apart(parts, members, ground)
    inside = [other for other in apart if ground.within(other, members)]
    if len(inside) < 2:
        return {**apart, (inside[0] if inside else name): part}
    if held := total(apart[other] for other in inside):
        return {**apart, **{other: apart[other] * part / held for other in inside}}
    if part == 0:
        return apart
    shares = ground.groups[name].within.shares
    if shares is None or not set(inside) <= set(shares):
        given, expected = f"{ground.text(part)}, where its pools have nothing", "shares in force to scale"
        fix = f"give {', '.join(inside)} a share each, by their own names"
        raise problem(name, given=given, expected=expected, fix=fix)
    return {**apart, **{pool: part * share for pool, share in shares.items()}}


def balanced(before: Parts, asked: Parts, pool: str, ground: Ground) -> Parts:
    """What is asked for, with the difference taken from one pool, or given to it: the sum stays.

    Args:
        before: the parts as they were.
        asked: the parts with what was asked for.
        pool: one that was not asked for.
        ground: what names stand for.
    """
    held = part_of(asked, pool, ground)
    more = total(asked.values()) - total(before.values())
    if more > held:
        given = f"{ground.text(held)}, of which {ground.text(more)} is to be taken"
        fix = f"ask for {ground.text(more - held)} less, or take it from a pool that has more"
        raise problem(pool, given=given, expected=f"at most {ground.text(held)} to take from it", fix=fix)
    return with_part(asked, pool, held - more, ground)


def total(parts: Iterable[Fraction]) -> Fraction:
    """Their sum."""
    return sum(parts, Fraction(0))


def _apart(parts: Parts, members: Sequence[str], ground: Ground) -> dict[str, Fraction]:
    """The parts, the pools of a group stated apart where it holds some of the members and more."""
    result = dict[str, Fraction]()
    for name, part in parts.items():
        if ground.within(name, members) or set(ground.members(name)).isdisjoint(members):
            result[name] = part
            continue
        shares = ground.groups[name].within.shares
        if shares is None:
            given = f"a pool of {name}, whose shares inside are {ground.groups[name].within.kind}"
            fix = f"give the group explicit shares first: groups.{name}.within"
            raise problem(members[0], given=given, expected="a group whose shares are numbers", fix=fix)
        result |= {pool: part * share for pool, share in shares.items()}
    return result
