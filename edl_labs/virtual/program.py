"""The form of a recorded program: which operations there are, and what each must hold. It trusts nothing."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import groupby
from typing import Any

from edl_labs.virtual.buffers import DEVICE, MAX_REGIONS, PAGEABLE, PINNED
from edl_labs.virtual.errors import ReplayError, shown
from edl_labs.virtual.quantities import MAX_BYTES, MAX_FLOPS, MAX_NAME

Entry = dict[str, Any]
_Check = Callable[[object], bool]


def _number(highest: float) -> _Check:
    return lambda value: type(value) in (int, float) and _within(value, highest)


def _within(value: Any, highest: float) -> bool:
    # Comparing first keeps a huge integer from being turned into a float.
    return 0 <= value <= highest and math.isfinite(value)


def _whole(highest: int, lowest: int = 0) -> _Check:
    return lambda value: type(value) is int and lowest <= value <= highest


def _text(value: object) -> bool:
    return type(value) is str and 0 < len(value) <= MAX_NAME


def _flag(value: object) -> bool:
    return type(value) is bool


def _region(value: object) -> bool:
    return type(value) is list and len(value) == 3 and all(map(_whole(MAX_BYTES), value))


def _regions(value: object) -> bool:
    return type(value) is list and len(value) <= MAX_REGIONS and all(map(_region, value))


def _place(value: object) -> bool:
    return type(value) is str and value in (DEVICE, PINNED, PAGEABLE)


def _anything(value: object) -> bool:
    return True


_INDEX, _SECONDS = _whole(10**9), _number(1e6)

# Required fields, then optional ones. A value that is a reading may be anything: it only has to equal the replayed one.
_FORMS: dict[str, tuple[dict[str, _Check], dict[str, _Check]]] = {
    "alloc": ({"buffer": _INDEX, "bytes": _whole(MAX_BYTES, 1), "where": _place, "name": _text}, {}),
    "free": ({"buffer": _INDEX}, {}),
    "stream": ({"stream": _INDEX}, {}),
    "event": ({"event": _INDEX, "timing": _flag}, {}),
    "launch": (
        {"name": _text, "stream": _INDEX},
        {
            "duration_s": _SECONDS,
            "flops": _number(MAX_FLOPS),
            "moved_bytes": _whole(MAX_BYTES),
            "dtype": _text,
            "reads": _regions,
            "writes": _regions,
            "elementwise": _flag,
            "times": _whole(10**9, 1),
        },
    ),
    "copy": ({"dst": _region, "src": _region, "stream": _INDEX, "non_blocking": _flag}, {}),
    "item": ({"src": _region, "stream": _INDEX, "value": _anything}, {}),
    "host_work": ({"duration_s": _SECONDS}, {"reads": _regions, "writes": _regions}),
    "record": ({"event": _INDEX, "stream": _INDEX}, {}),
    "wait": ({"event": _INDEX, "stream": _INDEX}, {}),
    "synchronize": ({}, {}),
    "sync_stream": ({"stream": _INDEX}, {}),
    "sync_event": ({"event": _INDEX}, {}),
    "query_stream": ({"stream": _INDEX, "value": _anything}, {}),
    "query_event": ({"event": _INDEX, "value": _anything}, {}),
    "elapsed_time": ({"start": _INDEX, "end": _INDEX, "value": _anything}, {}),
    "now": ({"value": _anything}, {}),
}


def check_entry(index: int, entry: object) -> Entry:
    """`entry`, if it has the form of an operation; ReplayError, saying which field is wrong, if not."""
    if type(entry) is not dict:
        raise malformed(index, f"is {shown(entry)}, not a dict with its fields")
    name = entry.get("op")
    if type(name) is not str or name not in _FORMS:
        raise malformed(index, f"has the name {shown(name)}, which no operation has")
    required, optional = _FORMS[name]
    for field, value in entry.items():
        if field == "op" and type(field) is str:
            continue
        check = (required.get(field) or optional.get(field)) if type(field) is str else None
        if check is None:
            raise malformed(index, f"is a {name} with a field {shown(field)}, which it does not have")
        if not check(value):
            raise malformed(index, f"is a {name} whose {field} cannot be {shown(value)}")
    missing = [field for field in required if field not in entry]
    if missing:
        raise malformed(index, f"is a {name} without its {missing[0]}")
    return entry


def malformed(index: int, problem: str) -> ReplayError:
    """The error for an operation that is none."""
    return ReplayError(
        f"operation {index} of the program {problem}",
        why="only what a VirtualGPU recorded can be replayed",
        next="return gpu.program as it is, without editing it",
    )


def compact(program: list[Entry]) -> list[Entry]:
    """The same program with runs of equal launches written once, with `times`: smaller evidence, replayed alike.

    >>> compact([{"op": "launch", "name": "k", "stream": 0, "duration_s": 1e-6}] * 3)
    [{'op': 'launch', 'name': 'k', 'stream': 0, 'duration_s': 1e-06, 'times': 3}]
    """
    short: list[Entry] = []
    for entry, run in groupby(program):
        times = len(list(run))
        if entry.get("op") == "launch" and "times" not in entry and times > 1:
            short.append({**entry, "times": times})
        else:
            short.extend([entry] * times)
    return short
