"""The cases of guards: functions and their calls, each with what known slips would answer, as digests."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab08c_compilers.compiled_calls import LINES
from edl_labs.exercises.slip_digests import digest

FREE = "free"
LIMIT = 8  # torch._dynamo.config.recompile_limit
BREAKS = tuple(LINES[at] for at in (2, 3, 5, 8))
_DTYPES = ("float32", "float64", "bfloat16", "float16", "int32")
_ALL = ("x", "scale", "shift", "verbose")
_NO_BREAK = tuple(line for line in LINES if line not in BREAKS)

# Of each slip, what the rules below leave out or do otherwise.
SLIPS: dict[str, dict[str, Any]] = {
    "nothing is free": {"frees": ()},
    "numbers by value": {"frees": ("x",)},
    "floats by value": {"frees": ("x", "shift")},
    "numbers free at once": {"numbers_free_at_once": True},
    "flag is a number": {"flag_is_a_number": True},
    "flag missing": {"ignores": "flag"},
    "dtype missing": {"ignores": "dtype"},
    "rank missing": {"ignores": "rank"},
    "layout missing": {"ignores": "layout"},
    "sizes never free": {"frees": ("scale", "shift")},
    "sizes free at once": {"sizes_free_at_once": True},
    "all sizes free": {"all_sizes_free": True},
    "one is a size": {"one_is_a_size": True},
    "free within the range": {"within_the_range": True},
    "one version a kind": {"one_a_kind": True},
    "rank frees nothing": {"rank_frees_nothing": True},
    "seen of a dtype": {"seen_of_a_dtype": True},
    "last one seen": {"last_one_seen": True},
    "old versions freed": {"frees_old": True},
    "newest version alone": {"newest_alone": True},
    "no limit": {"limit": 10**6},
    "another limit": {"limit": LIMIT + 1},
    "a version less": {"limit": LIMIT - 1},
    "limit before hits": {"limit_first": True},
    "eager is a recompile": {"limit_word": "recompile"},
    "break at every call": {"break_when_hit": True},
    "condition ignored": {"ignores_conditions": True},
    "no breaks": {"breaks": ()},
    "item() does not break the graph": {"breaks": tuple(one for one in BREAKS if ".item()" not in one)},
    "float() does not break the graph": {"breaks": tuple(one for one in BREAKS if "float(" not in one)},
    "print() does not break the graph": {"breaks": tuple(one for one in BREAKS if "print(" not in one)},
    "if is no break": {"breaks": tuple(one for one in BREAKS if not one.startswith("if"))},
    "every if is a break": {"breaks": (*BREAKS, *(one for one in LINES if one.startswith("if")))},
    "where is a break": {"breaks": (*BREAKS, *(one for one in LINES if "where(" in one))},
}


class Rules:
    """torch.compile's cache of one function, as the text states it; keywords make it a known slip's."""

    def __init__(self, lines: list[dict[str, Any]], **slip: Any) -> None:
        self.lines, self.slip = lines, slip
        self.versions: list[dict[str, Any]] = []
        self.seen: dict[Any, Any] = {}
        self.shapes: list[list[int]] = []  # of the calls that made versions

    def call(self, args: dict[str, Any]) -> str:
        """The decision on one call."""
        slip = self.slip
        breaks = any(
            line["code"] in slip.get("breaks", BREAKS)
            and (line["only_if"] is None or slip.get("ignores_conditions") or args[line["only_if"]])
            for line in self.lines
        )
        full = len(self.versions) >= slip.get("limit", LIMIT)
        if full and slip.get("limit_first"):
            return "eager"
        known = self.versions[-1:] if slip.get("newest_alone") else self.versions
        if any(all(self._fits(version[name], args[name]) for name in args) for version in known):
            return "break" if breaks and slip.get("break_when_hit") else "hit"
        if full:
            return str(slip.get("limit_word", "eager"))
        version = {name: self._guard(name, value) for name, value in args.items()}
        if slip.get("one_a_kind"):
            self.versions = [one for one in self.versions if _kind(one) != _kind(version)]
        if slip.get("frees_old"):
            self._free_numbers_like(version)
        self.versions.append(version)
        return "break" if breaks else "recompile"

    def _free_numbers_like(self, version: dict[str, Any]) -> None:
        for name, guard in version.items():
            if guard == FREE:
                for old in self.versions:
                    old[name] = FREE

    def _fits(self, guard: Any, value: Any) -> bool:
        if not isinstance(value, dict):
            return bool(guard in (FREE, value))
        sizes, known = value["sizes"], guard["sizes"]
        ignored = self.slip.get("ignores")
        if ignored != "rank" and len(sizes) != len(known):
            return False
        lowest = 1 if self.slip.get("one_is_a_size") else 2
        if any(k not in (FREE, s) or (k == FREE and s < lowest) for k, s in zip(known, sizes, strict=False)):
            return False
        if self.slip.get("within_the_range") and not self._is_between(guard, sizes):
            return False
        return all(part == ignored or guard[part] == value[part] for part in ("dtype", "layout"))

    def _is_between(self, guard: Any, sizes: list[int]) -> bool:
        """Whether each free size lies between two that were seen when the version was made."""
        columns = zip(sizes, guard["sizes"], *guard["seen"], strict=True)
        return all(k != FREE or min(seen) <= s <= max(seen) for s, k, *seen in columns)

    def _guard(self, name: str, value: Any) -> Any:
        if self.slip.get("within_the_range") and isinstance(value, dict):
            self.shapes.append(value["sizes"])
            seen = [one for one in self.shapes if len(one) == len(value["sizes"])]
            return {**value, "sizes": self._sizes(name, value["sizes"]), "seen": seen}
        if isinstance(value, dict):
            key = (name, value["dtype"]) if self.slip.get("seen_of_a_dtype") else name
            return {**value, "sizes": self._sizes(key, value["sizes"])}
        if isinstance(value, bool) and not self.slip.get("flag_is_a_number"):
            return FREE if self.slip.get("ignores") == "flag" else value
        before = self.seen.get(name, value)
        self.seen[name] = value if before == value else FREE
        if self.slip.get("last_one_seen"):
            self.seen[name] = value
            return value if before == value else FREE
        if self.slip.get("numbers_free_at_once"):
            return FREE
        return self.seen[name] if name in self.slip.get("frees", _ALL) else value

    def _sizes(self, key: Any, sizes: list[int]) -> list[Any]:
        """The sizes that a version is for; None is seen of an argument whose rank has changed: all is free."""
        slip, before = self.slip, self.seen.get(key, sizes)
        if before is not None and len(before) != len(sizes):
            before = sizes if slip.get("rank_frees_nothing") else None
        merged: list[Any] = [FREE] * len(sizes)
        if before is not None:
            merged = [s if s == b else FREE for s, b in zip(sizes, before, strict=True)]
            if slip.get("all_sizes_free") and FREE in merged:
                merged = [FREE] * len(sizes)
        self.seen[key] = list(sizes) if slip.get("last_one_seen") else None if before is None else merged
        if slip.get("sizes_free_at_once"):
            merged = [FREE] * len(sizes)
        if "x" not in slip.get("frees", _ALL):
            return list(sizes)
        special = () if slip.get("one_is_a_size") else (1,)
        return [s if s in special else m for s, m in zip(sizes, merged, strict=True)]


def _kind(version: dict[str, Any]) -> tuple[Any, ...]:
    """What some make the key of a dict of versions."""
    x = version["x"]
    return x["dtype"], len(x["sizes"]), x["layout"], version["verbose"]


def decisions(lines: list[dict[str, Any]], calls: list[dict[str, Any]], **slip: Any) -> list[str]:
    """The right decisions on `calls`, or those of a slip."""
    rules = Rules(lines, **slip)
    return [rules.call(args) for args in calls]


@case_source("guards")
def functions_and_calls(rng: Any) -> list[Case]:
    return [Case.split(_case(rng, *made), "slips") for made in _drawn(rng)]


def _case(rng: Any, lines: list[dict[str, Any]], calls: list[dict[str, Any]]) -> dict[str, Any]:
    slips = {name: digest(decisions(lines, calls, **slip)) for name, slip in SLIPS.items()}
    return {"lines": lines, "calls": calls, "slips": slips}


def _drawn(rng: Any) -> Iterator[tuple[list[dict[str, Any]], list[dict[str, Any]]]]:
    # Lines that look like breaks and are none are not all in the same functions.
    with_if, with_where = (_lines(rng, without=one) for one in ("where(", "if "))
    yield _with(rng, with_where, str(rng.choice(list(BREAKS))), "verbose"), _everything(rng)
    yield with_if, _of_sizes(rng)
    yield with_where, _of_dtypes(rng)
    yield with_if, _of_numbers(rng)
    yield with_where, _of_ranks(rng)
    yield with_if, _of_versions(rng)
    plain = [line for line in with_if if line in with_where]
    for line in BREAKS:
        only_if = "verbose" if rng.random() < 0.5 else None
        yield _with(rng, plain, line, only_if), _of_flags(rng)


def _lines(rng: Any, *, without: str) -> list[dict[str, Any]]:
    """Lines that stay in the graph, in an order, but for those with a text in them."""
    kept = [line for line in _NO_BREAK if without not in line]
    return [{"code": kept[at], "only_if": None} for at in rng.permutation(len(kept))]


def _with(rng: Any, lines: list[dict[str, Any]], code: str, only_if: str | None) -> list[dict[str, Any]]:
    at = int(rng.integers(0, len(lines) + 1))
    return [*lines[:at], {"code": code, "only_if": only_if}, *lines[at:]]


def _call(sizes: list[int], **changed: Any) -> dict[str, Any]:
    x = {part: changed.pop(part, given) for part, given in (("dtype", "float32"), ("layout", "contiguous"))}
    return {"x": {"sizes": sizes, **x}, "scale": 0.5, "shift": 3, "verbose": False, **changed}


def _some(rng: Any, count: int, *, low: int = 2, high: int = 33) -> list[int]:
    """So many different sizes."""
    return [int(one) for one in rng.choice(range(low, high), size=count, replace=False)]


def _floats(rng: Any, count: int) -> list[float]:
    return [int(one) / 8 for one in rng.choice(range(2, 40), size=count, replace=False)]


def _of_sizes(rng: Any) -> list[dict[str, Any]]:
    """Sizes that change, one of 1 in each place twice, and 2, the least that a free size takes."""
    a, b, c, d = _some(rng, 4, low=3)
    m, n, o = _some(rng, 3, low=3)
    rows = [[a, m], [b, m], [c, m], [1, m], [2, m], [2, n], [a, o], [1, m], [1, n], [1, o], [c, 1], [d, 1], [a, m]]
    return [_call(row) for row in rows]


def _of_dtypes(rng: Any) -> list[dict[str, Any]]:
    a, b, c = _some(rng, 3)
    m = _some(rng, 1)[0]
    one, two, three = (str(one) for one in rng.choice(_DTYPES[:4], size=3, replace=False))
    return [
        _call([a, m], dtype=one),
        _call([a, m], dtype=two),
        _call([a, m], dtype=one),
        _call([b, m], dtype=one),
        _call([c, m], dtype=two),
        _call([a, m], dtype=one, layout="transposed"),
        _call([c, m], dtype=one, layout="transposed"),
        _call([b, m], dtype=two),
        _call([c, m], dtype=three),
        _call([a, m], dtype=three),
        # A number changes together with the type and layout: it is free in the new version, and not in older ones.
        _call([a, m], dtype=two, layout="transposed", shift=5),
        _call([a, m], dtype=three, shift=7),
    ]


def _of_numbers(rng: Any) -> list[dict[str, Any]]:
    sizes = _some(rng, 2)
    floats, shifts = _floats(rng, 4), _some(rng, 3)
    pairs = [(0, 0), (0, 0), (1, 0), (2, 0), (0, 0), (3, 1), (2, 2), (1, 1), (3, 0)]
    return [_call(list(sizes), scale=floats[f], shift=shifts[s]) for f, s in pairs]


def _of_ranks(rng: Any) -> list[dict[str, Any]]:
    a, b, c, d = _some(rng, 4)
    rows = [[a, b], [a, b, c], [a, b], [c, b], [d, a], [a, b, d], [d], [c], [d, c, a]]
    return [_call(row) for row in rows]


def _of_flags(rng: Any) -> list[dict[str, Any]]:
    a, b, c, d = _some(rng, 4)
    m = _some(rng, 1)[0]
    flags = [False, True, True, False, True, False, True]
    if rng.random() < 0.5:
        flags = [not one for one in flags]
    return [_call([n, m], verbose=flag) for n, flag in zip((a, a, a, b, c, d, d), flags, strict=True)]


def _of_versions(rng: Any) -> list[dict[str, Any]]:
    """More versions than are kept; then some that are known, and some that are not."""
    sizes = _some(rng, 2)
    order = [_DTYPES[at] for at in rng.permutation(len(_DTYPES))]
    calls = [_call(list(sizes), dtype=dtype, verbose=flag) for dtype in order for flag in (False, True)]
    again = [_call(list(sizes), dtype=order[0]), _call(list(sizes), dtype=order[2], verbose=True)]
    return [*calls, *again, _call(list(sizes), dtype=order[4])]


def _everything(rng: Any) -> list[dict[str, Any]]:
    a, b, c, d = _some(rng, 4)
    m, n = _some(rng, 2)
    f, g, h = _floats(rng, 3)
    return [
        _call([a, m], scale=f),
        _call([a, m], scale=g),
        _call([a, m], scale=h),
        _call([b, m], scale=f, verbose=True),
        _call([c, m], scale=h, verbose=True),
        _call([c, m], scale=h),
        _call([d, m], scale=h),
        _call([d, m], scale=f, dtype="float64"),
        _call([b, n], scale=f, dtype="float64"),
        _call([1, m], scale=g),
        _call([d, n], scale=g, layout="transposed"),
        _call([a, m], scale=h),
    ]
