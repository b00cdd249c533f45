"""Later calls that do less than the first: what is remembered, in order already, or used up."""

from __future__ import annotations

import functools
import io
import queue
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Sized
from itertools import pairwise
from typing import Any

from edl_labs.bench.detectors.array_values import MOST_ARRAYS, SAMPLE, arrays_in, flat_values, given, is_array
from edl_labs.bench.detectors.detector import TOO_LONG, Detector, Look
from edl_labs.bench.detectors.inputs_and_results import is_used_up
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.reachable_objects import constants, own_functions, reachable
from edl_labs.bench.timing.warmup import BlockPlan

_SCALARS = (float, int, complex, str, bytes)
_CONTAINERS = (list, tuple, dict, set, frozenset)
_SMALL_INT = 256  # the interpreter has one object for each of these


class Remembered(Detector):
    """The result comes from a cache."""

    kind = "remembered"
    what = "the result is cached from an earlier call"
    why = "{detail}; what was timed is the lookup, not the work"
    next = (
        "call the uncached function (function.__wrapped__), clear the cache in each call, or pass a factory as inputs="
    )

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._first: Callable[[Any], bool] = lambda result: False
        self._arrays: list[weakref.ref[Any]] = []
        self._at_first: dict[int, tuple[int, int]] = {}
        self._hits: dict[int, tuple[int, int]] = {}
        self._works = False

    def before(self) -> str:
        self._at_first = self._asked()
        return ""

    def after_call(self, result: Any) -> str:
        if self.look.calls == 1:
            self._first = same_as(result)
            self._arrays = [weakref.ref(array) for array in arrays_in([result])]
            self._hits = self._asked()
        return ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        look = self.look
        if not finished:
            look.off[self.kind] = TOO_LONG
            return ""
        if name := self._hit():
            # Arrays made anew are worked out with what the cache has: a mask, a window, a table.
            self._works = bool(self._arrays) and not self._gives_arrays_of(look.repeat())
            if not (self._works or (look.feed and look.feed.rotates)):
                return f"{name} is cached"
        if look.torch is not None and look.torch.changed:
            return ""
        before = {id(item) for item in look.items}
        result = look.repeat()
        if not self._first(result) or id(result) in before or _is_constant(look.fn, result):
            return ""
        kept = any(item is result for item in reachable(look.fn)) and not self._taken_from_data(result)
        again = kept and not rewritten(result, look.repeat)
        return "each call returns the same object that the first call created" if again else ""

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        name = self._hit()
        return f"{name} is cached, and later calls find their result in the cache" if name else ""

    def _gives_arrays_of(self, result: Any) -> bool:
        first = [reference() for reference in self._arrays]
        return any(array is one for array in arrays_in([result]) for one in first)

    def _taken_from_data(self, result: Any) -> bool:
        """Whether it is one of many items of a list that was there before: the first, the largest."""
        lists = (item for item in self.look.items if isinstance(item, list) and len(item) >= _LONG)
        return any(value is result for values in lists for value in values)

    def _hit(self) -> str:
        """The name of a cache of the user's own that has known most answers since the first call."""
        now = {} if self._works else self._asked()
        for item in self._caches() if now else ():
            hits, misses = self._hits.get(id(item), (0, 0))
            if now[id(item)][0] - hits > now[id(item)][1] - misses and not self._is_table(id(item)):
                return str(getattr(item, "__name__", "a function"))
        return ""

    def _is_table(self, cache: int) -> bool:
        """Whether it was filled before the first call, which asked it many times: a table that is part of the work."""
        before, first = self._at_first.get(cache, (0, 0)), self._hits.get(cache, (0, 0))
        return first[0] - before[0] > 1 and first[1] == before[1]

    def _asked(self) -> dict[int, tuple[int, int]]:
        return {id(item): (item.cache_info().hits, item.cache_info().misses) for item in self._caches()}

    def _caches(self) -> list[Any]:
        items = [item for one in self.look.items for item in (one, *_methods(one))]
        return [item for item in items if isinstance(item, functools._lru_cache_wrapper) and own_functions([item])]


def _methods(item: Any) -> list[Any]:
    kind = type(item)
    parts = (types.FunctionType, types.ModuleType, type, *_SCALARS, *_CONTAINERS)
    if isinstance(item, parts) or kind.__module__.partition(".")[0] in ("torch", "numpy", "builtins"):
        return []
    return list(vars(kind).values())


def same_as(result: Any) -> Callable[[Any], bool]:
    """Whether another result is the very object that this one was; memory of arrays is not held by asking."""
    if result is None or isinstance(result, (bool, type, types.FunctionType, types.ModuleType)):
        return lambda other: False
    if isinstance(result, (str, bytes, *_CONTAINERS)) and len(result) < 2:
        return lambda other: False
    if isinstance(result, int) and abs(result) <= _SMALL_INT:
        return lambda other: False
    if isinstance(result, _CONTAINERS) and any(True for _ in arrays_in([result])):
        return lambda other: False
    if isinstance(result, (*_SCALARS, *_CONTAINERS)):
        return lambda other: other is result
    if not is_array(result):
        return lambda other: False
    reference = weakref.ref(result)
    return lambda other: other is not None and reference() is other


def _is_constant(fn: Any, result: Any) -> bool:
    return any(value is result for one in own_functions(reachable(fn)) for value in constants(one.__code__))


def rewritten(result: Any, call: Callable[[], object]) -> bool:
    """Whether a call writes into `result`, an array: one value is changed, and put back where a call does not."""
    flat = flat_values(result)
    if flat is None or not len(flat):
        return False
    kept = flat[0].copy()
    try:
        flat[0] = _another(kept)
    except (ValueError, TypeError, RuntimeError):  # memory that nobody may write
        return False
    changed = flat[0].copy()
    try:
        call()
        return bool(flat[0] != changed)
    finally:
        if flat[0] == changed:
            flat[0] = kept


def _another(value: Any) -> Any:
    """A value of the same type that differs from this one, and as little as its type allows."""
    numpy = sys.modules["numpy"]
    if value.dtype.kind == "b":
        return not value
    if value.dtype.kind in "iu":
        return value ^ value.dtype.type(1)
    # Next to nothing are denormals, which a processor may take for 0.
    return numpy.nextafter(value, value.dtype.type(0)) if abs(value) > 1e-4 and numpy.isfinite(value) else 1


class SortedAlready(Detector):
    """The call sorts data that is already sorted."""

    kind = "sorted_already"
    what = "the data is already sorted before the call"
    why = "{detail}; sorted data makes sorting and branch prediction easy, and real data takes many times as long"
    next = "sort a fresh copy in each call (sorted(x), x.copy()), and pass inputs= in random order"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._orders: list[tuple[Any, Any, bool]] = []

    def before(self) -> str:
        look = self.look
        sorts = _names_of(look.fn) & _SORTS
        lists = [item for item in (*look.items, *given(look)) if _is_sequence(item)]
        self._orders = [(item, _order(item), in_order(item)) for item in lists[:MOST_ARRAYS]]
        # A table in order, beside other data or looked up by place, is not what is sorted.
        own = [done for item, _, done in self._orders if any(item is one for one in given(look))]
        if not sorts or not self._orders or (not own and _names_of(look.fn) & _LOOKUPS):
            return ""
        return (
            f"{min(sorts)} receives data that is already sorted"
            if all(own or (done for *_, done in self._orders))
            else ""
        )

    def after_call(self, result: Any) -> str:
        if self.look.calls == 1:
            for item, order, done in self._orders:
                if not done and (in_order(item) or _reordered(order, _order(item))):
                    return self._put_in_order(item)
        return ""

    def _put_in_order(self, item: Any) -> str:
        # What is shuffled or rotated by each call changes again; order that stays was made by the first call.
        if in_order(item):
            return "the first call sorted it, and later calls find it sorted"
        self._waiting = (item, _order(item))
        return ""

    _waiting: tuple[Any, Any] | None = None

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        stays = self._waiting is not None and _order(self._waiting[0]) == self._waiting[1] and self.look.calls > 1
        return "the first call sorted it, and later calls find it sorted" if stays else ""


_SORTS = {"sort", "sorted", "argsort", "msort", "lexsort", "sort_values", "heapify", "unique", "partition", "nsmallest"}
_LOOKUPS = {"searchsorted", "digitize", "bucketize", "interp", "bisect", "bisect_left", "bisect_right", "insort"}
_LONG = 32  # shorter data is sorted by insertion, in any order
_MOST_LONG = 100_000  # looked through in some milliseconds


def _names_of(fn: Any) -> set[str]:
    names = {str(getattr(fn, "__name__", ""))}
    for one in own_functions(reachable(fn)):
        names |= _code_names(one.__code__)
    return names


def _code_names(code: types.CodeType) -> set[str]:
    inner = (constant for constant in code.co_consts if isinstance(constant, types.CodeType))
    return set(code.co_names).union(*map(_code_names, inner))


def _is_sequence(item: Any) -> bool:
    if isinstance(item, list):
        return _LONG <= len(item) <= _MOST_LONG and isinstance(item[0], (int, float, str))
    return is_array(item) and item.ndim == 1 and len(item) >= _LONG


def _order(item: Any) -> Any:
    return tuple(map(id, item)) if isinstance(item, list) else None


def _reordered(before: Any, after: Any) -> bool:
    return before is not None and before != after and len(before) == len(after) and sorted(before) == sorted(after)


def in_order(item: Any) -> bool:
    """Whether a list or an array of one dimension rises throughout, or falls; not where all values are one."""
    if isinstance(item, list):
        try:
            up = all(a <= b for a, b in pairwise(item))
            down = not up and all(a >= b for a, b in pairwise(item))
        except TypeError:
            return False
        return (up or down) and item[0] != item[-1]
    flat = flat_values(item, whole=True)
    if flat is None or not len(flat):
        return False
    later, earlier = flat[1:SAMPLE], flat[: len(flat[1:SAMPLE])]
    return bool(flat[0] != flat[-1]) and bool((later >= earlier).all() or (later <= earlier).all())


class UsedUp(Detector):
    """Later calls have nothing left to do."""

    kind = "used_up"
    what = "the first call uses up something that all calls share"
    why = "{detail}, so later calls have nothing to do while they are timed"
    next = "create the iterator, open the file or fill the queue inside the function"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._open: list[Any] = []
        self._something = False
        self._computed = 0
        self._nothing = 0

    def before(self) -> str:
        self._open = [item for item in self.look.items if _is_consumable(item) and not _is_empty(item)]
        return ""

    def after_call(self, result: Any) -> str:
        look = self.look
        computed = look.torch.computed if look.torch else 0
        if look.calls == 1:
            self._something, self._computed = _is_something(result), computed
            return ""
        self._nothing += (self._something and not _is_something(result)) or bool(self._computed and not computed)
        for item in self._open:
            if self._nothing == look.calls - 1 and (_is_empty(item) or not isinstance(item, Sized)):
                return f"after the first call, nothing is left in a {type(item).__name__}"
            if isinstance(item, Iterator) and _is_empty(item):
                return f"after the first call, nothing is left in a {type(item).__name__}"
        return ""


def _is_consumable(item: Any) -> bool:
    if isinstance(item, (Iterator, io.IOBase, queue.Queue, queue.SimpleQueue)):
        return True
    return isinstance(item, (list, dict, set)) or type(item).__name__ == "deque"


def _is_empty(item: Any) -> bool:
    if isinstance(item, (queue.Queue, queue.SimpleQueue)):
        return item.qsize() == 0
    if isinstance(item, Iterator) and not isinstance(item, io.IOBase):
        return is_used_up(item, ask=False)
    return isinstance(item, Sized) and len(item) == 0


def _is_something(result: Any) -> bool:
    if isinstance(result, Sized) and not is_array(result):
        return len(result) > 0
    return isinstance(result, (int, float)) and result != 0
