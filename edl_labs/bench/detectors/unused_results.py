"""Results that are not computed, or that nothing uses."""

from __future__ import annotations

import asyncio
import collections.abc
import concurrent.futures
import io
import types
from typing import Any

from edl_labs.bench.detectors.called_code import drops_a_value
from edl_labs.bench.detectors.detector import Detector


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
