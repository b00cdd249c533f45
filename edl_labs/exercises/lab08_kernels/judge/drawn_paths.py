"""The cases of warp_paths: blocks of whole warps and of others, and paths that can be sorted into warps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest
from edl_labs.virtual.warp import LANES

_NAMES = ("short", "middle", "long", "longest")


@case_source("warp_paths")
def branches(rng: Any) -> list[Case]:
    cases = [
        _case(rng, 48, 200, can_be_sorted=False),
        _case(rng, 128, 512, can_be_sorted=True),
        _case(rng, 16 * int(rng.integers(5, 9)) + 8, 300, can_be_sorted=False),
        _case(rng, 64, 384, can_be_sorted=True, twins=True),
        _case(rng, 40, 150, can_be_sorted=False, twins=True),
    ]
    return [Case.split(one, "slips") for one in cases]


def _case(rng: Any, block: int, count: int, *, can_be_sorted: bool, twins: bool = False) -> dict[str, Any]:
    """Runs of equal paths, so that some warps have one of them, and others several; twins have equal lengths."""
    lengths = {name: int(length) for name, length in zip(_NAMES, rng.permutation(range(3, 40))[:4], strict=True)}
    if twins:
        lengths["long"] = lengths["middle"]
    paths: list[str] = []
    if can_be_sorted:
        for name in _NAMES:
            paths += [name] * (count // 4)
        paths = [paths[at] for at in rng.permutation(count)]
    while len(paths) < count:
        paths += [str(rng.choice(_NAMES))] * int(rng.integers(1, 40))
    if not can_be_sorted:
        paths = _alone(_alone(paths, LANES - 1, 0, LANES), LANES, LANES, block)
    case = {"paths": paths[:count], "lengths": lengths, "block": block, "can_be_sorted": can_be_sorted}
    return {**case, "slips": _slips(case)}


def _alone(paths: list[str], at: int, first: int, stop: int) -> list[str]:
    """The paths with one that nobody else has at an end of a warp: who leaves that thread out counts too few."""
    other = next(name for name in _NAMES if name != paths[at])
    return [other if first <= i < stop and i != at and name == paths[at] else name for i, name in enumerate(paths)]


def _per_warp(case: Any, count: Callable[[list[str]], int], *, within: int = 0, lanes: int = LANES) -> int:
    """The sum over warps of what `count` makes of their threads' paths; warps begin anew with each block."""
    paths, block = case["paths"], within or case["block"]
    parts = [paths[at : at + block] for at in range(0, len(paths), block)]
    return sum(count(part[at : at + lanes]) for part in parts for at in range(0, len(part), lanes))


def _by_block(case: Any, block: int) -> int:
    """Instructions where every warp issues all paths of its block."""
    paths = case["paths"]
    blocks = [paths[at : at + block] for at in range(0, len(paths), block)]
    return sum(sum(case["lengths"][name] for name in set(mine)) * -(-len(mine) // LANES) for mine in blocks)


def _slips(case: Any) -> dict[str, str]:
    """Of each slip, the digest of its count."""
    warps = _per_warp(case, lambda part: 1)

    def of(names: Any) -> list[int]:
        return [case["lengths"][name] for name in names]

    found = {
        "longest": _per_warp(case, lambda part: max(of(part))),
        "every thread": _per_warp(case, lambda part: sum(of(part))),
        "shortest": _per_warp(case, lambda part: min(of(part))),
        "across blocks": _per_warp(case, lambda part: sum(of(set(part))), within=LANES),
        "by block": _by_block(case, case["block"]),
        "by list": warps * sum(of(set(case["paths"]))),
        "half warps": _per_warp(case, lambda part: sum(of(set(part))), lanes=LANES // 2),
        "times lanes": _per_warp(case, lambda part: len(part) * sum(of(set(part)))),
        "lengths for paths": _per_warp(case, lambda part: sum(set(of(part)))),
    }
    return {name: digest([count]) for name, count in found.items()}
