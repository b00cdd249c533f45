"""Data that is not like the real thing: constant or used-up inputs, results that are not computed or not used."""

from __future__ import annotations

import asyncio
import collections.abc
import concurrent.futures
import io
import operator
import sys
import types
from collections.abc import Iterator
from typing import Any

from edl_labs.bench.detectors.detector import Detector
from edl_labs.bench.timing.blocks import ArgumentPool
from edl_labs.bench.timing.reachable_objects import drops_a_value

_ENOUGH = 16  # smaller arrays (scalars, shapes, small weights) are constant by right
_NOTHING = object()


class ConstantInputs(Detector):
    """The inputs hold one value throughout."""

    kind = "constant_inputs"
    what = "the inputs hold one constant value: {detail}"
    why = (
        "constant data can be faster: less power is drawn (a bf16 product of zeros ran 13 % faster on one "
        "GPU), and branches, denormals and sparsity behave unlike real data"
    )
    next = "measure with data like the real thing, for example torch.randn"

    def before(self) -> str:
        if self.look.feed is None:
            self.look.off[self.kind] = "no inputs= were given"
            return ""
        return constant(self.look.feed)


def constant(feed: ArgumentPool) -> str:
    """Which inputs hold one value throughout, in words; '' where at least one set of inputs is fine."""
    found = [[_constant(value) for value in _arrays(arguments)] for arguments in feed.pool[:4]]
    if not found or not found[0]:
        return ""
    always = [words for words in zip(*found, strict=False) if all(words)]
    if not always or len(always) < len(found[0]):
        return _zeros(always)
    return always[0][0]


def used_up(sets: list[tuple[Any, ...]]) -> str:
    """The kind of a builtin iterator among these arguments that has nothing left to give, or ''.

    Only where Python does not tell is an item asked for; iterators of other kinds may start anew and are left alone.
    """
    return next((type(item).__name__ for item in _leaves(sets) if _is_used_up(item)), "")


def _is_used_up(value: Any) -> bool:
    if not isinstance(value, Iterator) or type(value).__module__ not in ("builtins", "itertools"):
        return False
    if isinstance(value, types.GeneratorType):
        return value.gi_frame is None
    left = operator.length_hint(value, -1)
    if left >= 0 or type(value).__name__ == "callable_iterator":
        return left == 0  # to ask iter(queue.get, None) for an item may take for ever
    try:
        return next(value, _NOTHING) is _NOTHING
    except Exception:
        return False


def _zeros(always: list[tuple[str, ...]]) -> str:
    # A constant operand beside a real one can be meant (a bias, a mask); zeros make the other one pointless.
    return next((words[0] for words in always if words[0].startswith("all zeros")), "")


def _arrays(value: Any) -> list[Any]:
    return list(filter(_is_floating, _leaves(value)))


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, (list, tuple, dict)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _leaves(item)
    else:
        yield value


def _is_floating(value: Any) -> bool:
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if torch is not None and isinstance(value, torch.Tensor):
        return bool(value.is_floating_point()) and value.numel() >= _ENOUGH and value.device.type != "meta"
    if numpy is not None and isinstance(value, numpy.ndarray):
        return value.dtype.kind == "f" and value.size >= _ENOUGH
    return False


def _constant(value: Any) -> str:
    torch = sys.modules.get("torch")
    flat = value.detach().reshape(-1) if torch is not None and isinstance(value, torch.Tensor) else value.reshape(-1)
    first = flat[0]
    if not bool((flat[:4096] == first).all()) or not bool((flat == first).all()):
        return ""
    shape = "×".join(map(str, value.shape))
    return (
        f"all zeros in an array of {shape}" if float(first) == 0 else f"{float(first):g} throughout an array of {shape}"
    )


class LazyResult(Detector):
    """What is returned is a promise or a recipe."""

    kind = "lazy_result"
    what = "the result is not computed yet when the call returns"
    why = "{detail}: only the making of a recipe was timed"
    next = "consume it inside the function: list(...), .result(), a call"

    def after_call(self, result: Any) -> str:
        why = lazy(result)
        self.look.awaits = dispose(result) or self.look.awaits
        return why


class ResultUnused(Detector):
    """A value is computed and dropped."""

    kind = "result_unused"
    what = "nothing uses the result"
    why = "{detail}: a compiler may leave such work out, and memory is freed in another order than in real use"
    next = "return the result from the function"

    def after_call(self, result: Any) -> str:
        if result is not None:
            return ""
        watch = self.look.torch
        pure = watch is not None and watch.computed and not (watch.changed or watch.backward or watch.reads)
        dropped = pure and watch is not None and not watch.survivors()
        return drops_a_value(self.look.fn) or ("tensors were computed, and dropped at once" if dropped else "")


def lazy(result: Any) -> str:
    """Why `result` is not computed yet, or ''."""
    kind = type(result).__name__
    if isinstance(result, (concurrent.futures.Future, asyncio.Future)):
        return "" if result.done() else f"it returned a {kind} that is not done"
    if isinstance(result, (types.CoroutineType, collections.abc.AsyncIterator)):
        return f"it returned a {kind}, which nobody awaited"
    if isinstance(result, collections.abc.Iterator) and not isinstance(result, io.IOBase):
        return f"it returned a {kind}, which computes when it is read"
    if isinstance(result, (types.FunctionType, types.MethodType)):
        return "it returned a function, which nobody called"
    if str(getattr(result, "device", "")) == "meta":
        return "it returned a tensor on the meta device, which has a shape and no data"
    if hasattr(result, "__dask_graph__") or kind.startswith("Lazy"):
        return f"it returned a {kind}, which computes on demand"
    return ""


def dispose(result: Any) -> bool:
    """Ends a coroutine that nobody awaits, which would warn when it is freed; whether it was one."""
    if not isinstance(result, types.CoroutineType):
        return False
    result.close()
    return True
