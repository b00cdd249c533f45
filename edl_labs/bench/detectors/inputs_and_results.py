"""Data that is not like the real thing: constant or used-up inputs, results that are not computed or not used."""

from __future__ import annotations

import asyncio
import collections.abc
import concurrent.futures
import io
import operator
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

from edl_labs.bench.detectors.detector import Detector
from edl_labs.bench.timing.blocks import ArgumentPool
from edl_labs.bench.timing.reachable_objects import drops_a_value, only_views

_ENOUGH = 16  # smaller arrays (scalars, shapes, small weights) are constant by right
_NOTHING = object()


class ConstantInputs(Detector):
    """All values of the inputs are the same."""

    kind = "constant_inputs"
    what = "the inputs are constant: {detail}"
    why = (
        "constant data can be faster: it draws less power (a bf16 product of zeros ran 13 % faster on one "
        "GPU), and branches, denormals and sparsity behave unlike real data"
    )
    next = "measure with realistic data, for example from torch.randn"

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

    An item is taken only where Python does not say; iterators of other kinds may start anew and are left alone.
    """
    return next((type(item).__name__ for item in _leaves(sets) if is_used_up(item)), "")


def is_used_up(value: Any, *, ask: bool = True) -> bool:
    """Whether a builtin iterator has nothing left; without `ask`, only where Python says so without taking an item."""
    if not isinstance(value, Iterator) or type(value).__module__ not in ("builtins", "itertools"):
        return False
    if isinstance(value, types.GeneratorType):
        return value.gi_frame is None
    left = operator.length_hint(value, -1)
    if left >= 0 or type(value).__name__ == "callable_iterator":
        return left == 0  # to ask iter(queue.get, None) for an item may take for ever
    if not ask:
        return False
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
        f"all zeros in an array of {shape}"
        if float(first) == 0
        else f"every value is {float(first):g} in an array of {shape}"
    )


class LazyResult(Detector):
    """The returned object has not been computed yet."""

    kind = "lazy_result"
    what = "the result has not been computed yet when the call returns"
    why = "{detail}, so only the creation of this object was timed"
    next = "consume it inside the function, with list(...), .result() or a call"

    def after_call(self, result: Any) -> str:
        why = lazy(result)
        self.look.awaits = dispose(result) or self.look.awaits
        return why


class ResultUnused(Detector):
    """A value is computed but not used."""

    kind = "result_unused"
    what = "nothing uses the result"
    why = "{detail}; a compiler may omit such work, and memory is freed in a different order than in real use"
    next = "return the result from the function"

    def after_call(self, result: Any) -> str:
        if result is not None:
            return ""
        watch = self.look.torch
        pure = watch is not None and watch.computed and not (watch.changed or watch.backward or watch.reads)
        dropped = pure and watch is not None and not watch.survivors()
        return drops_a_value(self.look.fn) or ("tensors were computed and immediately dropped" if dropped else "")


class NothingComputed(Detector):
    """The result is the input itself, or another view of it."""

    kind = "nothing_computed"
    what = "the call computes nothing"
    why = "{detail}; the call only computed a shape and strides, and the next operation will read the data"
    next = "force the computation inside the function (.clone(), .contiguous(), np.ascontiguousarray, bytes(...))"

    def after_call(self, result: Any) -> str:
        look = self.look
        values = [value for value in _leaves(result) if value is not None]
        if look.calls == 1 or not values:
            return ""
        known = list(_leaves([*look.items, *(look.feed.pool if look.feed else [])]))
        watch = look.torch
        if watch is not None and all(isinstance(value, sys.modules["torch"].Tensor) for value in values):
            places = set(map(_storage, known))
            cut = not (watch.computed or watch.changed or watch.backward) and set(map(_storage, values)) <= places
        else:
            cut = all(_shares(value, known) for value in values)
        # A kernel of one's own may write into what is given back, unseen: the code must show that none is called.
        return self._text(values) if cut and only_views((look.fn,)) else ""

    def _text(self, values: list[Any]) -> str:
        same = any(value is item for value in values for item in self.look.items)
        return "it returns the input itself" if same else "its result is a view of data that already existed"


def _storage(value: Any) -> int:
    torch = sys.modules.get("torch")
    if torch is None or not isinstance(value, torch.Tensor):
        return 0
    try:
        return int(value.untyped_storage()._cdata)
    except (RuntimeError, NotImplementedError):  # sparse and modelled tensors have none
        return 0


def _shares(value: Any, known: list[Any]) -> bool:
    numpy = sys.modules.get("numpy")
    if isinstance(value, memoryview):
        return True
    if numpy is None or not isinstance(value, numpy.ndarray):
        return False
    return any(isinstance(one, numpy.ndarray) and numpy.may_share_memory(value, one) for one in known)


class GraphUnused(Detector):
    """An autograd graph is built that no backward pass will use."""

    kind = "graph_unused"
    what = "each call builds an autograd graph that nothing uses"
    why = "{detail}; storing activations for a backward pass that never runs costs time and memory"
    next = "run it under torch.inference_mode() or torch.no_grad()"

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        look = self.look
        watch, torch = look.torch, sys.modules.get("torch")
        if torch is None or watch is None or not watch.graph or watch.backward or look.tensors_kept():
            return ""
        if not watch.gives_graph:
            return "the result does not depend on the graph" if watch.gives_result else ""
        modules = [item for item in look.items if isinstance(item, torch.nn.Module)]
        inference = bool(modules) and not any(module.training for module in modules)
        return "the model is in eval mode, but gradients are enabled" if inference else ""


def lazy(result: Any) -> str:
    """Why `result` is not computed yet, or ''."""
    kind = type(result).__name__
    if isinstance(result, (concurrent.futures.Future, asyncio.Future)):
        return "" if result.done() else f"it returned a {kind} that is not finished"
    if isinstance(result, (types.CoroutineType, collections.abc.AsyncIterator)):
        return f"it returned a {kind}, which was never awaited"
    if isinstance(result, collections.abc.Iterator) and not isinstance(result, io.IOBase):
        return f"it returned a {kind}, which computes only when it is read"
    if isinstance(result, (types.FunctionType, types.MethodType)):
        return "it returned a function, which was never called"
    if str(getattr(result, "device", "")) == "meta":
        return "it returned a tensor on the meta device, which has a shape but no data"
    if hasattr(result, "__dask_graph__") or kind.startswith("Lazy"):
        return f"it returned a {kind}, which computes only on demand"
    return ""


def dispose(result: Any) -> bool:
    """Ends a coroutine that is never awaited, which would warn when it is freed; whether it was one."""
    if not isinstance(result, types.CoroutineType):
        return False
    result.close()
    return True
