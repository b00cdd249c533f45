"""The cases of memory_plan: networks with skip connections and branches, where the order of placing decides."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_TRIES = 1000  # one draw in about six is decided by what the case is about
_ROOM = 1.10  # the lab's text allows it
_GOOD = 1.04  # what placing by size reaches, in each of its usual forms


@case_source("memory_plan")
def networks(rng: Any) -> list[Case]:
    return [Case.split(_network(rng, decides), "slips") for decides in ("counting", "in place", "whole", "time")]


def _network(rng: Any, decides: str) -> dict[str, Any]:
    """One on which every way of counting differs, or one way of placing takes more than the arena may have."""
    for _ in range(_TRIES):
        case = _drawn(rng)
        lives = _lives(case)
        right, slips = _least(case, lives), _slips(case, lives)
        if decides == "counting" and len({right, *slips.values()}) <= len(slips):
            continue
        if _is_decided(case, lives, right, decides):
            return {**case, "slips": slips}
    raise AssertionError("no drawn network was decided by the order of placing; draw other sizes")


def _is_decided(case: Any, lives: Any, right: int, decides: str) -> bool:
    by_size, by_time = (sorted(lives, key=key) for key in (lambda one: -case["sizes"][one], lives.__getitem__))
    poor = [_arena(case, lives, by_time)]
    if decides == "in place":
        poor = [_arena(case, lives, by_size, in_place=False)]
    elif decides == "whole":
        poor = [_arena(case, lives, order, whole=True) for order in (by_size, by_time)]
    if min(poor) <= 1.02 * _ROOM * right:
        return False
    late_first = sorted(lives, key=lambda one: (-case["sizes"][one], -lives[one][0]))
    return max(_arena(case, lives, order) for order in (by_size, late_first)) <= _GOOD * right


def _drawn(rng: Any) -> dict[str, Any]:
    kernels: list[dict[str, Any]] = []
    sizes, late = {"x": _bytes(rng), "y": _bytes(rng)}, ["y"]
    outputs: list[str] = []

    def kernel(reads: list[str], size: int, *, in_place: bool = False) -> str:
        name = f"t{len(kernels)}"
        kernels.append({"reads": reads, "writes": name, "in_place": in_place})
        sizes[name] = size
        return name

    def block(name: str, kind: str) -> str:
        if kind == "residual":
            inner = kernel([kernel([name], sizes[name], in_place=True)], _bytes(rng))
            inner = kernel([kernel([inner], sizes[inner], in_place=True)], sizes[name])
            return kernel([inner, name], sizes[name], in_place=True)
        if kind == "branches":
            parts = [kernel([name], _bytes(rng)) for _ in range(int(rng.integers(2, 4)))]
            parts[0] = kernel([parts[0]], sizes[parts[0]], in_place=True)
            return kernel(parts, sum(sizes[one] for one in parts))
        if kind == "cast":
            return kernel([name], sizes[name] // 2, in_place=True)
        inner = kernel([name, *late], _bytes(rng))
        late.clear()
        return kernel([inner], sizes[inner], in_place=True)

    name = kernel(["x"], _bytes(rng))
    kinds = ["residual", "branches", "cast", "plain"]
    for kind in rng.permutation([*kinds, "plain", str(rng.choice(kinds))]):
        name = block(name, str(kind))
        if not outputs and len(kernels) > 6:
            outputs.append(kernel([name], sizes[name] // 4))
            outputs.append(kernel([name], sizes[name]))
            name = kernel([outputs[1]], sizes[name], in_place=True)
    outputs.append(kernel([name, "x"] if rng.random() < 0.5 else [name], 1000))
    return {"kernels": kernels, "outputs": outputs, "sizes": sizes, "align": int(rng.choice([256, 512]))}


def _bytes(rng: Any) -> int:
    return 2 * int(rng.integers(2_000, 30_000))


def _lives(case: Any) -> dict[str, tuple[int, int]]:
    made = {one["writes"]: at for at, one in enumerate(case["kernels"])}
    readers = {name: [at for at, one in enumerate(case["kernels"]) if name in one["reads"]] for name in case["sizes"]}
    end = len(case["kernels"]) - 1
    return {
        name: (made.get(name, 0), end if name in case["outputs"] else max([made.get(name, 0), *readers[name]]))
        for name in case["sizes"]
    }


def _under(case: Any, lives: Any, at: int) -> str | None:
    """The first tensor that kernel `at` may write over."""
    one = case["kernels"][at]
    for name in one["reads"] if one["in_place"] else []:
        if lives[name][1] == at and name not in case["outputs"] and case["sizes"][name] == case["sizes"][one["writes"]]:
            return str(name)
    return None


def _rounded(case: Any, name: str) -> int:
    return -(-int(case["sizes"][name]) // case["align"]) * int(case["align"])


def _needs(case: Any, lives: Any, *, in_place: bool = True) -> list[list[str]]:
    """The tensors that take bytes while each kernel runs."""
    found = []
    for at, one in enumerate(case["kernels"]):
        skipped = one["writes"] if in_place and _under(case, lives, at) else None
        found.append([name for name, (first, last) in lives.items() if first <= at <= last and name != skipped])
    return found


def _least(case: Any, lives: Any) -> int:
    return max(sum(_rounded(case, name) for name in names) for names in _needs(case, lives))


def _slips(case: Any, lives: Any) -> dict[str, int]:
    needs, align = _needs(case, lives), case["align"]
    own = [
        {*one["reads"], one["writes"]} - ({one["writes"]} if _under(case, lives, at) else set())
        for at, one in enumerate(case["kernels"])
    ]
    short = [[name for name in names if lives[name][1] > at or lives[name][0] == at] for at, names in enumerate(needs)]
    plain = max(sum(case["sizes"][name] for name in names) for names in needs)
    return {
        "as they are": plain,
        "rounded once": -(-plain // align) * align,
        "never in place": max(
            sum(_rounded(case, name) for name in names) for names in _needs(case, lives, in_place=False)
        ),
        "its own": max(sum(_rounded(case, name) for name in names) for names in own),
        "all": sum(_rounded(case, name) for name in lives),
        "without reads": max(sum(_rounded(case, name) for name in names) for names in short),
    }


def _arena(case: Any, lives: Any, order: list[str], *, in_place: bool = True, whole: bool = False) -> int:
    """The arena where tensors are placed in an order, lowest gap first; `whole`: free places are not divided."""
    block = {name: [name] for name in lives}
    for at, one in enumerate(case["kernels"]):
        under = _under(case, lives, at) if in_place else None
        if under:
            block[under].append(one["writes"])
            block[one["writes"]] = block[under]
    placed: list[tuple[int, int, int, int]] = []
    done: set[str] = set()
    for name in order:
        if name in done:
            continue
        done.update(block[name])
        first, last = min(lives[one][0] for one in block[name]), max(lives[one][1] for one in block[name])
        placed.append((*_gap(placed, _rounded(case, name), first, last, whole), first, last))
    return max(end for _, end, _, _ in placed)


def _gap(placed: Any, size: int, first: int, last: int, whole: bool) -> tuple[int, int]:
    if whole:
        for low, high in sorted({(low, high) for low, high, _, _ in placed}):
            mine = [one for one in placed if one[0] == low]
            if high - low >= size and all(since > last or until < first for _, _, since, until in mine):
                return low, high
        start = max([high for _, high, _, _ in placed], default=0)
        return start, start + size
    start = 0
    for low, high, since, until in sorted(placed):
        if since <= last and first <= until:
            if low - start >= size:
                break
            start = max(start, high)
    return start, start + size
