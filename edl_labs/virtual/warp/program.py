"""The form of a VirtualWarp's program: what may stand in it, checked field by field before anything is replayed.

    {"op": "array", "name": "src", "shape": [64, 48], "dtype": "float32", "offset_bytes": 0}
    {"op": "launch", "kernel": "copy", "grid": [4, 1, 1], "block": [32, 1, 1], "shared": [[[32, 33], "float32"]],
     "lines": [2, 3], "paths": [[["load", 0, 0], ["store", 1, 1, 0]]], "threads": [0, 0, ...], "places": [0, 0, 1, ...]}

A path is what one thread does, step by step: its name, the place in the kernel's text (`lines` has the line of each),
and what it needs: the array of an access (0, 1, ... global; -1, -2, ... shared), then where values come from: the
number of a value that the thread has (a whole number), or a constant (a float). `threads` has the path of each thread
in order, `places` the element of each access, thread after thread.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from edl_labs.virtual.errors import shown
from edl_labs.virtual.program import Entry, ProgramForm
from edl_labs.virtual.quantities import MAX_NAME

ITEMSIZES = {"int8": 1, "float16": 2, "float32": 4, "int32": 4, "float64": 8, "float2": 8, "float4": 16}
MAX_BLOCK_THREADS = 1024  # CUDA C++ Programming Guide, technical specifications
MAX_SHARED_BYTES = 48 * 1024  # static, of a block (the same table)
MAX_LAUNCHED = 1 << 17  # threads: each is recorded, and takes some 20 µs
MAX_ELEMENTS = 1 << 22  # of an array: far more than that many threads touch
_MOST_LINE = 1_000_000  # no kernel's text is longer

ACCESSES = ("load", "store", "atomic_add")
SHUFFLES = ("shfl", "shfl_down", "shfl_xor")
BARRIERS = ("syncthreads", "syncwarp")
ARITHMETIC = ("+", "-", "*", "/")
# How many fields follow a step's name and place, and how many of the last ones are values.
_STEPS = {
    "load": (1, 0), "store": (2, 1), "atomic_add": (2, 1), "syncthreads": (0, 0), "syncwarp": (0, 0),
    **dict.fromkeys(SHUFFLES, (2, 1)), **dict.fromkeys(ARITHMETIC, (2, 2)),
}  # fmt: skip
_FIELDS = {
    "array": ("name", "shape", "dtype", "offset_bytes"),
    "launch": ("kernel", "grid", "block", "shared", "lines", "paths", "threads", "places"),
}
FORM = ProgramForm("VirtualWarp", "gpu.program", _FIELDS)


def elements_of(shape: Sequence[int]) -> int:
    """The elements of a shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def gives_value(step: Sequence[Any]) -> bool:
    """Whether a step leaves a value in its thread."""
    return step[0] not in ("store", *BARRIERS)


def checked_entry(index: int, raw: object, arrays: Sequence[Entry]) -> Entry:
    """An operation whose every field is what it has to be, given the arrays before it; ReplayError otherwise."""
    name = FORM.name_of(index, raw)
    entry = cast(Entry, raw)
    if set(entry) != {"op", *_FIELDS[name]}:
        raise FORM.malformed(index, f"is a {name} with other fields than {', '.join(_FIELDS[name])}")
    problem = _array_problem(entry, arrays) if name == "array" else _launch_problem(entry, arrays)
    if problem:
        raise FORM.malformed(index, f"is a {name} {problem}")
    return entry


def steps_of(entry: Entry) -> int:
    """How many steps a replay of this operation does, checked or not."""
    if entry["op"] == "array":
        return 1
    lengths = [len(path) for path in entry["paths"]]
    return sum(lengths[path] for path in entry["threads"])


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_shape(value: object, *, fields: tuple[int, ...] = (1, 2, 3)) -> bool:
    whole = type(value) is list and len(value) in fields and all(_is_whole(one, 1, MAX_ELEMENTS) for one in value)
    return whole and elements_of(cast(list[int], value)) <= MAX_ELEMENTS


def _is_dtype(value: object) -> bool:
    return type(value) is str and value in ITEMSIZES


def _array_problem(entry: Entry, arrays: Sequence[Entry]) -> str:
    if type(entry["name"]) is not str or not 0 < len(entry["name"]) <= MAX_NAME:
        return "without a name"
    if any(entry["name"] == one["name"] for one in arrays):
        return f"with the name {shown(entry['name'])}, which another one has"
    if not _is_shape(entry["shape"]) or not _is_dtype(entry["dtype"]):
        return "of no shape or no dtype"
    if not _is_whole(entry["offset_bytes"], 0, 255) or entry["offset_bytes"] % ITEMSIZES[entry["dtype"]]:
        return "at an offset that its elements cannot have"
    return ""


def _launch_problem(entry: Entry, arrays: Sequence[Entry]) -> str:
    if type(entry["kernel"]) is not str or len(entry["kernel"]) > MAX_NAME:
        return "of a kernel without a name"
    if not _is_shape(entry["grid"], fields=(3,)) or not _is_shape(entry["block"], fields=(3,)):
        return "without grid or block"
    threads = elements_of(entry["block"])
    count = elements_of(entry["grid"]) * threads
    if threads > MAX_BLOCK_THREADS or count > MAX_LAUNCHED:
        return "of more threads than there can be"
    lines, paths = entry["lines"], entry["paths"]
    if type(lines) is not list or not all(_is_whole(one, -_MOST_LINE, _MOST_LINE) for one in lines):
        return "without the lines of its steps"
    problem = _shared_problem(entry["shared"])
    if problem or type(paths) is not list:
        return problem or "without paths"
    sizes = [elements_of(one["shape"]) for one in arrays]
    shared = [elements_of(one[0]) for one in entry["shared"]]
    for path in paths:
        problem = _path_problem(path, len(lines), sizes, shared)
        if problem:
            return problem
    whose = entry["threads"]
    if type(whose) is not list or len(whose) != count or not all(_is_whole(one, 0, len(paths) - 1) for one in whose):
        return "whose threads have not one path each"
    return _places_problem(entry, sizes, shared)


def _shared_problem(shared: Any) -> str:
    if type(shared) is not list:
        return "without its shared arrays"
    held = 0
    for one in shared:
        if type(one) is not list or len(one) != 2 or not _is_shape(one[0]) or not _is_dtype(one[1]):
            return "with a shared array of no shape or no dtype"
        held += elements_of(one[0]) * ITEMSIZES[one[1]]
    return "with more shared memory than a block has" if held > MAX_SHARED_BYTES else ""


def _path_problem(path: Any, lines: int, sizes: list[int], shared: list[int]) -> str:
    if type(path) is not list:
        return "with a path that is none"
    values = 0
    for step in path:
        if type(step) is not list or len(step) < 2 or type(step[0]) is not str or step[0] not in _STEPS:
            return f"with a step {shown(step)}"
        fields, sources = _STEPS[step[0]]
        if len(step) != 2 + fields or not _is_whole(step[1], 0, lines - 1):
            return f"with a {step[0]} of other fields"
        if step[0] in ACCESSES and not _is_whole(step[2], -len(shared), len(sizes) - 1):
            return f"with a {step[0]} of an array that is not there"
        if step[0] in SHUFFLES and not _is_whole(step[2], 0, 31):
            return "with a shuffle beyond the warp"
        for source in step[len(step) - sources :]:
            if type(source) is not float and not _is_whole(source, 0, values - 1):
                return f"with a {step[0]} of a value that its thread does not have"
        values += gives_value(step)
    return ""


def _places_problem(entry: Entry, sizes: list[int], shared: list[int]) -> str:
    touched = [
        [sizes[step[2]] if step[2] >= 0 else shared[-1 - step[2]] for step in path if step[0] in ACCESSES]
        for path in entry["paths"]
    ]
    places, at = entry["places"], 0
    if type(places) is not list or len(places) != sum(len(touched[path]) for path in entry["threads"]):
        return "whose accesses have not one element each"
    for path in entry["threads"]:
        for size in touched[path]:
            if not _is_whole(places[at], 0, size - 1):
                return "with an access beyond its array"
            at += 1
    return ""


__all__ = [
    "ACCESSES",
    "ARITHMETIC",
    "BARRIERS",
    "FORM",
    "ITEMSIZES",
    "MAX_BLOCK_THREADS",
    "MAX_ELEMENTS",
    "MAX_LAUNCHED",
    "MAX_SHARED_BYTES",
    "SHUFFLES",
    "checked_entry",
    "elements_of",
    "gives_value",
    "steps_of",
]
