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
from edl_labs.virtual.program import Entry, OperationKind, Program, from_case, one_of, text, whole
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


def elements_of(shape: Sequence[int]) -> int:
    """The elements of a shape."""
    count = 1
    for extent in shape:
        count *= extent
    return count


def gives_value(step: Sequence[Any]) -> bool:
    """Whether a step leaves a value in its thread."""
    return step[0] not in ("store", *BARRIERS)


def _is_whole(value: object, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _is_shape(value: object, *, fields: tuple[int, ...] = (1, 2, 3)) -> bool:
    whole = type(value) is list and len(value) in fields and all(_is_whole(one, 1, MAX_ELEMENTS) for one in value)
    return whole and elements_of(cast(list[int], value)) <= MAX_ELEMENTS


_is_dtype = one_of(*ITEMSIZES)


def _is_three(value: object) -> bool:
    return _is_shape(value, fields=(3,))


def _are_lines(value: object) -> bool:
    return type(value) is list and all(_is_whole(one, -_MOST_LINE, _MOST_LINE) for one in value)


def _is_list(value: object) -> bool:
    return type(value) is list


def _array_misfit(engine: Any, entry: Entry) -> str:
    if any(entry["name"] == memory.name for memory in engine.arrays):
        return f"with the name {shown(entry['name'])}, which another array already has"
    return (
        "at an offset that is not a multiple of its element size"
        if entry["offset_bytes"] % ITEMSIZES[entry["dtype"]]
        else ""
    )


def _launch_misfit(engine: Any, entry: Entry) -> str:
    threads = elements_of(entry["block"])
    count = elements_of(entry["grid"]) * threads
    if threads > MAX_BLOCK_THREADS or count > MAX_LAUNCHED:
        return "of too many threads"
    problem = _shared_problem(entry["shared"])
    if problem:
        return problem
    paths, sizes = entry["paths"], [memory.size for memory in engine.arrays]
    shared = [elements_of(one[0]) for one in entry["shared"]]
    for path in paths:
        problem = _path_problem(path, len(entry["lines"]), sizes, shared)
        if problem:
            return problem
    whose = entry["threads"]
    if len(whose) != count or not all(_is_whole(one, 0, len(paths) - 1) for one in whose):
        return "in which not every thread has exactly one path"
    return _places_problem(entry, sizes, shared)


def _shared_problem(shared: Any) -> str:
    held = 0
    for one in shared:
        if type(one) is not list or len(one) != 2 or not _is_shape(one[0]) or not _is_dtype(one[1]):
            return "with a shared array without a valid shape or dtype"
        held += elements_of(one[0]) * ITEMSIZES[one[1]]
    return "with more shared memory than a block can have" if held > MAX_SHARED_BYTES else ""


def _path_problem(path: Any, lines: int, sizes: list[int], shared: list[int]) -> str:
    if type(path) is not list:
        return "with an invalid path"
    values = 0
    for step in path:
        if type(step) is not list or len(step) < 2 or type(step[0]) is not str or step[0] not in _STEPS:
            return f"with the invalid step {shown(step)}"
        fields, sources = _STEPS[step[0]]
        if len(step) != 2 + fields or not _is_whole(step[1], 0, lines - 1):
            return f"with a {step[0]} that has invalid fields"
        if step[0] in ACCESSES and not _is_whole(step[2], -len(shared), len(sizes) - 1):
            return f"with a {step[0]} of an array that does not exist"
        if step[0] in SHUFFLES and not _is_whole(step[2], 0, 31):
            return "with a shuffle that reaches beyond the warp"
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
    if len(places) != sum(len(touched[path]) for path in entry["threads"]):
        return "in which not every access has exactly one element"
    for path in entry["threads"]:
        for size in touched[path]:
            if not _is_whole(places[at], 0, size - 1):
                return "with an access beyond the end of its array"
            at += 1
    return ""


def _steps(engine: Any, entry: Entry) -> int:
    """How many steps a replay of this launch does."""
    lengths = [len(path) for path in entry["paths"]]
    return sum(lengths[path] for path in entry["threads"])


OPERATIONS: dict[str, OperationKind] = {
    "array": OperationKind(
        {"name": text, **from_case({"shape": _is_shape, "dtype": _is_dtype, "offset_bytes": whole(255)})},
        lambda engine, entry: engine.add_array(entry),
        misfit=_array_misfit,
    ),
    "launch": OperationKind(
        {
            "kernel": lambda value: type(value) is str and len(value) <= MAX_NAME,
            "grid": _is_three,
            "block": _is_three,
            "shared": _is_list,
            "lines": _are_lines,
            "paths": _is_list,
            "threads": _is_list,
            "places": _is_list,
        },
        lambda engine, entry: engine.launch(entry),
        misfit=_launch_misfit,
        charge=_steps,
    ),
}
PROGRAM = Program("VirtualWarp", "gpu.program", OPERATIONS)

__all__ = [
    "ACCESSES",
    "ARITHMETIC",
    "BARRIERS",
    "ITEMSIZES",
    "MAX_BLOCK_THREADS",
    "MAX_ELEMENTS",
    "MAX_LAUNCHED",
    "MAX_SHARED_BYTES",
    "PROGRAM",
    "SHUFFLES",
    "elements_of",
    "gives_value",
]
