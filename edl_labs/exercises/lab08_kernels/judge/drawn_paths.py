"""The cases of warp_paths: blocks of whole warps and of others, and paths that can be sorted into warps."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import draws

_NAMES = ("short", "middle", "long", "longest")


@draws("warp_paths")
def branches(rng: Any) -> list[Any]:
    return [
        _case(rng, 48, 200, can_be_sorted=False),
        _case(rng, 128, 512, can_be_sorted=True),
        _case(rng, 16 * int(rng.integers(5, 9)) + 8, 300, can_be_sorted=False),
        _case(rng, 64, 384, can_be_sorted=True),
        _case(rng, 40, 150, can_be_sorted=False),
    ]


def _case(rng: Any, block: int, count: int, *, can_be_sorted: bool) -> dict[str, Any]:
    """Runs of equal paths, so that some warps have one of them, and others several."""
    lengths = {name: int(length) for name, length in zip(_NAMES, rng.permutation(range(3, 40))[:4], strict=True)}
    paths: list[str] = []
    if can_be_sorted:
        for name in _NAMES:
            paths += [name] * (count // 4)
        paths = [paths[at] for at in rng.permutation(count)]
    while len(paths) < count:
        paths += [str(rng.choice(_NAMES))] * int(rng.integers(1, 40))
    return {"paths": paths[:count], "lengths": lengths, "block": block, "can_be_sorted": can_be_sorted}
