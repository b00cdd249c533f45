"""Whether a call is fast because its data is still in the cache: timed once more with the cache cleared."""

from __future__ import annotations

from statistics import median

from edl_labs.bench.detectors.detector import Detector
from edl_labs.bench.detectors.other_threads import queued_s
from edl_labs.bench.timing.blocks import Runner
from edl_labs.bench.timing.cache_flush import llc_bytes, make_flush
from edl_labs.bench.timing.warmup import BlockPlan
from edl_labs.clock import is_asynchronous
from edl_labs.units import byte_count, percent

_MATTERS = 0.3  # a third more is beyond what one cleared cache adds by chance
_CODE_S = 20e-6  # fetching the interpreter's code again
_LEAST_BYTE_PER_S = 2e9  # below what one core of any machine of the last decade reads from memory
_TIMES = 3  # the least that has a median which one burst cannot move
# Smaller inputs lie in the first-level caches of any real program, and an emptied one costs more in code than in data.
_LEAST_BYTES = 128 << 10


class CacheResident(Detector):
    """The same data is served by the cache in each call."""

    kind = "cache_resident"
    what = "the inputs stay in the cache from call to call"
    why = "{detail}; real data arrives from memory"
    next = "give inputs= a factory, so that they are rotated, or measure with cold=True, if real data will be cold"

    def before(self) -> str:
        if self.look.feed is None and self.look.virtual is None:
            self.look.off[self.kind] = "no inputs= were given"
        return ""

    def when_warm(self, runner: Runner, plan: BlockPlan) -> str:
        look = self.look
        if look.cold or plan.call_s > look.budget_s / 40:
            return ""
        if look.virtual is not None and is_asynchronous(look.clock):
            call_bytes = pool_bytes = look.virtual.moved_bytes
        elif look.feed is None:
            return ""
        else:
            call_bytes, pool_bytes = look.feed.nbytes, look.feed.nbytes * len(look.feed.pool)
        why = resident(runner, plan, call_bytes=call_bytes, pool_bytes=pool_bytes, budget_s=look.budget_s)
        if why is None:
            look.off[self.kind] = "clearing the cache takes longer than this budget allows"
        return why or ""


def resident(runner: Runner, plan: BlockPlan, *, call_bytes: int, pool_bytes: int, budget_s: float) -> str | None:
    """Why data is served by the cache, '' where it is not, None where there was no time to find out."""
    if call_bytes < _LEAST_BYTES or pool_bytes > llc_bytes(runner.clock):
        return ""
    if not runner.asynchronous and call_bytes < _LEAST_BYTE_PER_S * plan.call_s:
        return ""  # at this rate memory keeps up, cached or not
    now = runner.clock.now_s
    flush = make_flush(runner.clock)
    start, queued = now(), queued_s()
    flush()
    took = now() - start - (queued_s() - queued)
    if took * (_TIMES + 1) > budget_s / 4 and not runner.asynchronous:
        return None
    warm, cold = [], []
    for _ in range(_TIMES):
        runner.block_s(1)
        warm.append(runner.block_s(1))
        flush()
        cold.append(runner.block_s(1))
    extra = median(cold) - median(warm)
    # A cleared cache holds no code either: fetching the interpreter's again takes some microseconds of its own.
    code_s = 0.0 if runner.asynchronous else _CODE_S
    if extra - code_s <= _MATTERS * plan.call_s:
        return ""
    slower = percent((extra - code_s) / plan.call_s, digits=2)
    return f"{byte_count(call_bytes)} a call fit the cache, and with the cache cleared a call takes {slower} longer"
