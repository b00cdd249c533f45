"""Values with which processors compute at another speed, or to no purpose: denormals, infinities, NaN."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

from edl_labs.bench.detectors.detector import Detector, Look
from edl_labs.bench.timing.processor_state import State
from edl_labs.bench.timing.reachable_objects import reachable
from edl_labs.bench.timing.warmup import BlockPlan

SAMPLE = 4096  # of an array: a share of a thousandth shows in it
MOST_ARRAYS = 64  # a model's first layers tell as much as all of them


class Denormals(Detector):
    """Values are too small for the processor's fast path."""

    kind = "denormals"
    what = "the data contains denormal numbers"
    why = "{detail}; processors are many times slower with such values than with ordinary ones"
    next = "measure with values of ordinary size, or call torch.set_flush_denormal(True) if your real runs do"

    def after_call(self, result: Any) -> str:
        return _share_text([result]) if self.look.calls == 2 else ""

    def after_calls(self, call: Callable[[], object], *, finished: bool) -> str:
        # Not before the calls: a buffer that they fill holds anything until then.
        return self._found()

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        return self._found()

    def _found(self) -> str:
        return _share_text([*given(self.look), *reachable(self.look.fn)])


def _share_text(items: list[Any]) -> str:
    for array in arrays_in(items):
        values = _floats(array)
        if values is None or values.dtype.itemsize < 4:
            continue  # fp16 is computed in fp32 or by units that take its denormals in their stride
        sizes = abs(values)
        tiny = sys.modules["numpy"].finfo(values.dtype).tiny
        share = float(((sizes > 0) & (sizes < tiny)).mean())
        if share > _DENORMAL_SHARE and not (hasattr(array, "is_leaf") and _flushes()):
            return f"{share:.0%} of an array of {'×'.join(map(str, array.shape))} {values.dtype} are below {tiny:.2g}"
    return ""


_DENORMAL_SHARE = 0.01  # a hundredth, each a hundred times as slow, doubles the time


def _flushes() -> bool:
    torch = sys.modules["torch"]
    return float(torch.tensor([1e-40]).mul(0.5)) == 0


class Diverged(Detector):
    """Calls compute with infinities or NaN that were not present in the first call."""

    kind = "diverged"
    what = "the values have become infinite or NaN"
    why = (
        "{detail}: branches, exceptions and early exits differ from those of real values, and the result means nothing"
    )
    next = "start each call from the same values (copy the state inside), or lower the learning rate"

    def __init__(self, look: Look) -> None:
        super().__init__(look)
        self._by_design = False

    def before(self) -> str:
        self._by_design = bool(self._state())
        return ""

    def after_call(self, result: Any) -> str:
        if self.look.calls == 1:
            self._by_design = self._by_design or bool(_broken([result]) or self._state())
        # Other inputs may lead to other values; what has diverged stays so with the first ones, too.
        return "" if self._by_design or not _broken([result]) else _broken([self.look.repeat()])

    def after(self, *, plan: BlockPlan, blocks: int, state: State | None) -> str:
        if self._by_design or not self._state():
            return ""
        self.look.repeat()
        return self._state()

    def _state(self) -> str:
        return _broken([*given(self.look), *reachable(self.look.fn)])


def _broken(items: list[Any]) -> str:
    for item in items:
        if isinstance(item, float) and (math.isnan(item) or item == math.inf):
            return f"a number is {item}"
    for array in arrays_in(items):
        values = _floats(array)
        # Minus infinity masks positions by right.
        if values is not None and bool(((values != values) | (values == math.inf)).any()):
            return f"an array of {'×'.join(map(str, array.shape))} holds NaN or inf"
    return ""


def arrays_in(items: list[Any]) -> Iterator[Any]:
    """Arrays and tensors on the processor among `items` and in the containers and models among them."""
    torch, found = sys.modules.get("torch"), 0
    waiting = list(items)
    while waiting and found < MOST_ARRAYS:
        item = waiting.pop(0)
        if isinstance(item, (list, tuple)):
            waiting += [one for one in item[:MOST_ARRAYS] if not isinstance(one, (float, int, str, bytes))]
        elif isinstance(item, dict):
            waiting += [
                one for one in list(item.values())[:MOST_ARRAYS] if not isinstance(one, (float, int, str, bytes))
            ]
        elif torch is not None and isinstance(item, torch.nn.Module):
            waiting += list(item.parameters())[:MOST_ARRAYS]
        elif is_array(item):
            found += 1
            yield item


def is_array(item: Any) -> bool:
    """Whether it is an array of numpy or a tensor of torch."""
    torch, numpy = sys.modules.get("torch"), sys.modules.get("numpy")
    if numpy is not None and isinstance(item, numpy.ndarray):
        return True
    return torch is not None and isinstance(item, torch.Tensor)


def flat_values(item: Any, *, whole: bool = False) -> Any:
    """A view of an array's values as numpy has them, or None: on a device, sparse, of a type that numpy has not."""
    numpy = sys.modules.get("numpy")
    if numpy is None:
        return None
    if not isinstance(item, numpy.ndarray):
        try:
            if item.device.type != "cpu":
                return None
            item = item.detach().numpy()
        except (TypeError, RuntimeError, AttributeError):
            return None
    if item.dtype.kind not in "fiub" or not item.flags.c_contiguous:
        return None
    return item.reshape(-1)


def _floats(item: Any) -> Any:
    """Some thousand of an array's floats, or None."""
    flat = flat_values(item)
    if flat is None or flat.dtype.kind != "f" or not len(flat):
        return None
    return flat[:: max(1, len(flat) // SAMPLE)]


def given(look: Look) -> list[Any]:
    """The arguments of the first call."""
    return [value for arguments in (look.feed.pool[:1] if look.feed else []) for value in arguments]
