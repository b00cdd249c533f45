"""What a function says without being called: the objects it reaches, their device's clock, what its code calls."""

from __future__ import annotations

import dis
import functools
import os
import sys
import types
from collections.abc import Iterable, Iterator
from itertools import pairwise
from types import MemberDescriptorType
from typing import Any

from edl_labs.clock import AcceleratorClock, Clock, HostClock, is_modelled

_DEPTH = 4  # function, closure, object, its parts, theirs
_MOST = 5000  # looked through in some milliseconds
_DROPPED = {"BINARY_OP", "BINARY_SUBSCR", "COMPARE_OP", "UNARY_NEGATIVE", "BINARY_SLICE"}
_LOADS_ATTRIBUTE = ("LOAD_ATTR", "LOAD_METHOD")
_COMPUTES = ("BINARY_OP", "UNARY", "COMPARE", "CONTAINS", "STORE_SUBSCR")
# Functions and attributes of numpy, torch and Python that give other shapes and strides, or what has the type already.
_VIEWS = """
T mT H real imag view reshape transpose permute swapaxes swapdims moveaxis movedim ravel flatten squeeze unsqueeze
expand_dims expand expand_as broadcast_to broadcast_arrays sliding_window_view as_strided diagonal unfold split
array_split hsplit vsplit dsplit chunk unbind narrow select detach data asarray ascontiguousarray atleast_1d
atleast_2d fliplr flipud flip rot90 rollaxis memoryview cast toreadonly slice shape size ndim dtype len lib
stride_tricks newaxis numpy from_numpy as_tensor contiguous float double half to type_as frombuffer view_as
"""
_VIEW_NAMES = set(_VIEWS.split())
_COMPILERS = {("torch", "compile"), ("jit", "script"), ("jit", "trace")}


def reachable(*roots: Any) -> Iterator[Any]:
    """Objects that `roots` (functions, arguments, containers) refer to, each once, at most four steps away."""
    seen: set[int] = set()
    level = list(roots)
    for _ in range(_DEPTH + 1):
        following: list[Any] = []
        for item in level:
            if id(item) in seen or len(seen) >= _MOST:
                continue
            seen.add(id(item))
            yield item
            following += _children(item)
        level = following


def _names(code: types.CodeType) -> set[str]:
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _names(constant)
    return names


def _children(item: Any) -> list[Any]:
    if isinstance(item, types.MethodType):
        return [item.__self__, item.__func__]
    if isinstance(item, types.FunctionType):
        return [] if _is_library(item) else _of_function(item)
    if isinstance(item, functools.partial):
        return [item.func, *item.args, *item.keywords.values()]
    if isinstance(item, (list, tuple, set, frozenset)):
        return list(item)[:200]
    if isinstance(item, dict):
        return list(item.values())[:200]
    return _of_object(item)


def _of_function(fn: types.FunctionType) -> list[Any]:
    found = _closed_over(fn)
    found += [fn.__globals__[name] for name in _names(fn.__code__) if name in fn.__globals__]
    found += list(fn.__defaults__ or ()) + list((fn.__kwdefaults__ or {}).values())
    wrapped = getattr(fn, "__wrapped__", None)
    return [*found, wrapped] if wrapped is not None else found


def _closed_over(fn: types.FunctionType) -> list[Any]:
    found: list[Any] = []
    for cell in fn.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a cell that is not filled yet
            continue
    return found


def _of_object(item: Any) -> list[Any]:
    # Modules, classes and built-in things lead everywhere; plain objects and torch modules lead to their own parts.
    if isinstance(item, (types.ModuleType, type, str, bytes, int, float, types.BuiltinFunctionType)):
        return []
    parts = getattr(item, "__dict__", None)
    return list(parts.values())[:200] if isinstance(parts, dict) else []


def _is_library(fn: types.FunctionType) -> bool:
    module = fn.__module__ or ""
    return module.partition(".")[0] in {"torch", "numpy", "builtins", "edl_labs"} and not module.startswith(
        "edl_labs.exercises"
    )


def clock_in_use(fn: Any, inputs: Any = None) -> Clock:
    """The clock of the device that `fn` or its inputs refer to: a VirtualGPU's, an accelerator's, or the host's."""
    items = list(reachable(fn, inputs))
    gpu = virtual_gpu(items)
    if gpu is not None:
        return gpu.clock
    device = accelerator_of(items)
    return HostClock() if device is None else AcceleratorClock(device)


def virtual_gpu(items: list[Any]) -> Any:
    """The VirtualGPU among `items`, or that a buffer, a stream or a clock among them belongs to; None without one."""
    owners = (owner for item in items for owner in (item, _part(item, "gpu")))
    return next(filter(_is_modelled_gpu, owners), None)


def _is_modelled_gpu(item: Any) -> bool:
    clock = _part(item, "clock")
    # Other modelled machines have clocks too, and launch nothing.
    return clock is not None and is_modelled(clock) and callable(getattr(type(item), "launch", None))


def _part(item: Any, name: str) -> Any:
    """An attribute or a slot of `item`, found without running code of its class."""
    parts = getattr(item, "__dict__", None)
    if isinstance(parts, dict) and name in parts:
        return parts[name]
    return getattr(item, name, None) if isinstance(getattr(type(item), name, None), MemberDescriptorType) else None


def accelerator_of(items: list[Any]) -> str | None:
    """The accelerator on which a tensor among `items` lies, or that this process already uses; None for neither."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    for item in items:
        if isinstance(item, torch.Tensor) and item.device.type not in ("cpu", "meta"):
            return str(item.device)
    current = torch.accelerator.current_accelerator(check_available=True)
    in_use = current is not None and (current.type != "cuda" or torch.cuda.is_initialized())
    return str(current.type) if in_use else None


def drops_a_value(fn: Any) -> str:
    """The operator whose value the code of `fn` drops on a line of its own, or ''."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return ""
    before = None
    for step in dis.get_instructions(code):
        if step.opname == "POP_TOP" and before is not None and before.opname in _DROPPED:
            return "it computes a value and drops it"
        if step.opname != "CACHE":
            before = step
    return ""


def calls_by_name(roots: tuple[Any, ...], name: str) -> bool:
    """Whether code that `roots` can reach calls something called `name` as an attribute."""
    return any(step.argval == name for _, step in _attribute_steps(roots))


def compiles(roots: tuple[Any, ...]) -> bool:
    """Whether code that `roots` can reach calls torch.compile, torch.jit.script or torch.jit.trace."""
    return any((before.argval, step.argval) in _COMPILERS for before, step in _attribute_steps(roots))


def _attribute_steps(roots: tuple[Any, ...]) -> list[tuple[dis.Instruction, dis.Instruction]]:
    found = []
    for item in reachable(*roots):
        if isinstance(item, types.FunctionType) and not _foreign(item):
            found += _steps(item.__code__)
    return found


def _steps(code: types.CodeType) -> list[tuple[dis.Instruction, dis.Instruction]]:
    steps = list(dis.get_instructions(code))
    pairs = [(a, b) for a, b in pairwise(steps) if b.opname in ("LOAD_ATTR", "LOAD_METHOD")]
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            pairs += _steps(constant)
    return pairs


def own_functions(items: Iterable[Any]) -> list[types.FunctionType]:
    """The functions of the user's own among `items`, and behind what wraps them (a cache, a decorator)."""
    plain = (getattr(item, "__wrapped__", item) if callable(item) else item for item in items)
    return [item for item in plain if isinstance(item, types.FunctionType) and not _foreign(item)]


def constants(code: types.CodeType) -> Iterator[Any]:
    """The values that stand in a function's code, and in the functions and tuples in it."""
    for constant in code.co_consts:
        yield constant
        if isinstance(constant, types.CodeType):
            yield from constants(constant)
        elif isinstance(constant, tuple):
            yield from constant


def only_views(roots: tuple[Any, ...]) -> bool:
    """Whether code that `roots` can reach does no more than cut and turn data: no arithmetic, no other function."""
    own = own_functions(reachable(*roots))
    builtin = [root for root in roots if not isinstance(root, types.FunctionType)]
    named = all(str(getattr(root, "__name__", "")) in _VIEW_NAMES for root in builtin)
    return named and bool(own or builtin) and all(map(_cuts, own))


def _cuts(fn: types.FunctionType) -> bool:
    loaded = {str(step.argval) for step in dis.get_instructions(fn.__code__) if step.opname in _LOADS_ATTRIBUTE}
    called = {name for name in fn.__code__.co_names if name not in loaded}
    known = {name for name in called if isinstance(fn.__globals__.get(name), (types.ModuleType, types.FunctionType))}
    computes = any(step.opname.startswith(_COMPUTES) for step in dis.get_instructions(fn.__code__))
    inner = any(isinstance(constant, types.CodeType) for constant in fn.__code__.co_consts)
    kernels = any(callable(value) and not isinstance(value, types.FunctionType) for value in _closed_over(fn))
    plain = {name for name in called - known if name in fn.__globals__ and not callable(fn.__globals__[name])}
    return not (computes or inner or kernels) and loaded | (called - known - plain) <= _VIEW_NAMES


def _foreign(fn: types.FunctionType) -> bool:
    # Code of installed packages may synchronise for reasons of its own that the caller cannot take out.
    file = fn.__code__.co_filename
    return "site-packages" in file or file.startswith(sys.base_prefix + os.sep + "lib") or "dist-packages" in file
