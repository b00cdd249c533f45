"""Micro-batches of a web service on virtual time: what is refused, what is given up, what runs when, by three rules.

A service has one model. Requests come and wait in a queue; what runs at once is a batch. No clock is read: the result
is exact, and the same on every computer.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from edl_labs.values import Value
from edl_labs.virtual.errors import VirtualServerError, shown
from edl_labs.virtual.server.replay import percentile

_MOST_DECISIONS = 100_000  # of a run: some hundred requests take a thousand, a rule that asks again for ever stops
ANSWERED, FULL, TIMED_OUT, UNANSWERED = "answered", "full", "timed out", "unanswered"


@dataclass(frozen=True)
class BatchLimits:
    """What a micro-batcher keeps to: the most in a batch and in the queue, and two times in seconds.

    A batch is waited for until its oldest request has waited `max_wait_s`; who has waited longer than `timeout_s` is
    given up.
    """

    max_batch: int = 16
    max_wait_s: float = 0.0
    max_queue: int = 64
    timeout_s: float = 1.0


class QueuedRequest(NamedTuple):
    """A waiting request: its number and its arrival."""

    number: int
    arrival_s: float


class BatchRules(NamedTuple):
    """Who is let in, who is given up, and what runs: three functions that read no clock.

    `accepts(queue, limits)` says whether another request may wait; `expired(now_s, queue, limits)` gives the numbers
    of those that waited too long; `due(now_s, queue, limits)` gives numbers of a batch that runs now, or a time until
    which to wait for more.
    """

    accepts: Callable[[list[QueuedRequest], BatchLimits], Any]
    expired: Callable[[float, list[QueuedRequest], BatchLimits], Any]
    due: Callable[[float, list[QueuedRequest], BatchLimits], Any]


@dataclass(frozen=True)
class ServedCall:
    """How a request ended: `answered`, `full` (refused), `timed out` or `unanswered`, and when."""

    arrival_s: float
    end_s: float
    outcome: str


class MicroBatch(NamedTuple):
    """When a batch began and ended, and the numbers of its requests."""

    start_s: float
    end_s: float
    numbers: tuple[int, ...]


class RefusedDecision(VirtualServerError):
    """A rule returned a decision that no service could carry out; `kind` names the problem in one word."""

    def __init__(self, kind: str, what: str, *, why: str, next: str) -> None:
        super().__init__(what, why=why, next=next)
        self.kind = kind


@dataclass(frozen=True, repr=False)
class ServiceRun(Value):
    """What became of the requests of a load, and the sizes of the batches that ran; modelled or measured."""

    DERIVED = ("answered_per_s", "refused_share", "mean_batch")

    calls: tuple[ServedCall, ...]
    batch_sizes: tuple[int, ...]

    @property
    def latencies_s(self) -> list[float]:
        """Seconds from arrival to answer of the answered requests."""
        return [one.end_s - one.arrival_s for one in self.calls if one.outcome == ANSWERED]

    def latency_s(self, share: float) -> float:
        """The smallest time that at least this share of the answered requests does not exceed."""
        return percentile(self.latencies_s, share)

    @property
    def answered_per_s(self) -> float:
        """Answers per second, from the first arrival to the last answer."""
        ends = [one.end_s for one in self.calls if one.outcome == ANSWERED]
        lasted_s = max(ends, default=0.0) - min((one.arrival_s for one in self.calls), default=0.0)
        return len(ends) / lasted_s if lasted_s > 0 else 0.0

    @property
    def refused_share(self) -> float:
        """The share of requests that received no answer from the model."""
        return 1 - len(self.latencies_s) / len(self.calls) if self.calls else 0.0

    @property
    def mean_batch(self) -> float:
        """Requests in a batch, on average."""
        return sum(self.batch_sizes) / len(self.batch_sizes) if self.batch_sizes else 0.0


class MicroBatchRun(NamedTuple):
    """A load served on virtual time: its calls and batches."""

    calls: tuple[ServedCall, ...]
    batches: tuple[MicroBatch, ...]

    @property
    def summary(self) -> ServiceRun:
        """The run as figures that a measured one has too."""
        return ServiceRun(self.calls, tuple(len(one.numbers) for one in self.batches))


def serve_micro_batches(
    arrivals_s: Sequence[float], limits: BatchLimits, rules: BatchRules, batch_s: Callable[[int], float]
) -> MicroBatchRun:
    """Serve requests that come at these times, where a batch of n takes `batch_s(n)` seconds.

    What comes at a moment is in the queue, or refused, before anything else is decided at it. While the model is idle
    and a request waits, `due` is asked at each arrival, at each end of a batch, and at the time that it gave.

    >>> rules = BatchRules(lambda queue, limits: True, lambda *now: [], lambda now_s, queue, limits: [queue[0].number])
    >>> run = serve_micro_batches([0.0, 0.5], BatchLimits(), rules, lambda n: 1.0)
    >>> [one.start_s for one in run.batches], run.summary.latency_s(1.0)
    ([0.0, 1.0], 1.5)
    """
    ends: dict[int, tuple[float, str]] = {}
    batches: list[MicroBatch] = []
    queue: list[QueuedRequest] = []
    coming, free_s, asked_again_s, now_s = 0, 0.0, math.inf, 0.0
    for _ in range(_MOST_DECISIONS):
        moments = [arrivals_s[coming]] if coming < len(arrivals_s) else []
        if queue:
            moments.append(free_s if free_s > now_s else asked_again_s)
        if not moments or min(moments) == math.inf:
            break
        now_s = min(moments)
        while coming < len(arrivals_s) and arrivals_s[coming] <= now_s:
            if rules.accepts(list(queue), limits):
                queue.append(QueuedRequest(coming, arrivals_s[coming]))
            else:
                ends[coming] = now_s, FULL
            coming += 1
        if free_s > now_s or not queue:
            continue
        for number in given_up(rules.expired(now_s, list(queue), limits), queue):
            ends[number] = now_s, TIMED_OUT
        queue = [one for one in queue if one.number not in ends]
        if not queue:
            continue
        chosen = batch_or_time(rules.due(now_s, list(queue), limits), now_s, queue, limits)
        if isinstance(chosen, float):
            asked_again_s = chosen
            continue
        free_s, asked_again_s = now_s + _positive(batch_s(len(chosen))), math.inf
        batches.append(MicroBatch(now_s, free_s, tuple(chosen)))
        ends |= dict.fromkeys(chosen, (free_s, ANSWERED))
        queue = [one for one in queue if one.number not in ends]
    waits_for_ever = math.inf, UNANSWERED
    calls = (ServedCall(at_s, *ends.get(number, waits_for_ever)) for number, at_s in enumerate(arrivals_s))
    return MicroBatchRun(tuple(calls), tuple(batches))


def _past_kind(until_s: float, now_s: float, queue: Sequence[QueuedRequest], limits: BatchLimits) -> str:
    """What a time that is not ahead is: the seconds left, the limit itself, the end of the wait, or another one."""
    ends_s = {one.arrival_s + limits.max_wait_s for one in queue}
    if until_s in ends_s:
        return "past"
    if until_s in {end_s - now_s for end_s in ends_s}:
        return "left"
    return "limit" if until_s == limits.max_wait_s else "early"


def _positive(took_s: float) -> float:
    if took_s > 0:
        return took_s
    raise VirtualServerError(
        f"the time of a batch is {shown(took_s)} s",
        why="a batch must take a positive time",
        next="return a number greater than 0",
    )


def given_up(numbers: Any, queue: Sequence[QueuedRequest]) -> list[int]:
    """The numbers that `expired` gave; RefusedDecision where they are none of the queue."""
    return _of_queue("expired", numbers, queue)


def batch_or_time(chosen: Any, now_s: float, queue: Sequence[QueuedRequest], limits: BatchLimits) -> list[int] | float:
    """What `due` gave: the numbers of a batch, or the time until which to wait; RefusedDecision for anything else."""
    has_items = hasattr(chosen, "__iter__") and getattr(chosen, "ndim", 1) > 0  # an array of one number is a time
    if hasattr(chosen, "__float__") and not has_items:
        until_s = float(chosen)
        if until_s > now_s:
            return until_s
        raise RefusedDecision(
            _past_kind(until_s, now_s, queue, limits),
            f"due() waits until {until_s:g} s, but it is already {now_s:g} s",
            why="the server would call due() again immediately, and repeat this forever",
            next="what should happen at the exact moment when the wait ends?",
        )
    numbers = _of_queue("due", chosen, queue)
    if not numbers:
        raise RefusedDecision(
            "empty",
            "due() returned an empty batch",
            why="nothing would run, and the server would not know when to call due() again",
            next="return the time until which to wait",
        )
    if len(numbers) > limits.max_batch:
        raise RefusedDecision(
            "large",
            f"due() returned a batch of {len(numbers)} requests",
            why=f"max_batch is {limits.max_batch}",
            next="leave the other requests in the queue for the next batch",
        )
    return numbers


def _of_queue(rule: str, numbers: Any, queue: Sequence[QueuedRequest]) -> list[int]:
    try:
        found = [_number(one) for one in numbers]
    except TypeError:
        raise RefusedDecision(
            "form",
            f"{rule}() returned {shown(numbers)}",
            why="a batch must be a list of the numbers of its requests",
            next="return [one.number for one in queue], for example",
        ) from None
    waiting = {one.number for one in queue}
    for at, number in enumerate(found):
        if number not in waiting or number in found[:at]:
            raise RefusedDecision(
                "unknown",
                f"{rule} returned {number}"
                + (" twice" if number in waiting else ", but no waiting request has this number"),
                why=f"the number of the first waiting request is {queue[0].number}",
                next="return [one.number for one in queue], not positions in the queue",
            )
    return found


def _number(one: Any) -> int:
    """The number of a request, or a whole number in another form."""
    if isinstance(one, QueuedRequest):
        return one.number
    return int(one) if isinstance(one, float) and one.is_integer() else operator.index(one)
