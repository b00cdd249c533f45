"""micro_batch: the three rules of a service that batches, judged by what they do to drawn requests on virtual time."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar, NamedTuple

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import seconds
from edl_labs.virtual.server import BatchLimits, BatchRules, RefusedDecision, serve_micro_batches
from edl_labs.virtual.server.batching_rules import FULL, TIMED_OUT

_REFUSED, _GIVEN_UP, _BATCH = range(3)  # what may happen at one moment, in the order in which it does
_PROBLEMS = {
    "past": ("due() returned a time that is not in the future",
             "due() would be called again at the same moment, forever",
             "what should happen at the exact moment when the wait ends?"),
    "left": ("due() returned the seconds that remain, not a point in time",
             "it must return a time on the clock of `now_s`",
             "return the moment when the wait ends: to which request's arrival do you add what?"),
    "limit": ("due() returned `max_wait_s`, not a point in time", "it must return a time on the clock of `now_s`",
              "return the moment when the wait ends: to which request's arrival do you add what?"),
    "early": ("due() returned a time that is not in the future",
              "this time is neither later than `now_s` nor the end of a wait",
              "return the moment when the wait of the oldest request ends, on the clock of `now_s`"),
    "empty": ("due() returned an empty batch", "no request would run, and it would be unknown when to call due() again",
              "return a batch with requests, or the time until which to wait"),
    "large": ("one of your batches has more than `max_batch` requests",
              "the model accepts at most `max_batch` requests",
              "leave the others in the queue for the next batch"),
    "unknown": ("a result names a request that is not waiting, or names one twice",
                "a result may name only requests that are in the queue, and each only once",
                "return the `number` of each request, not its place in the queue"),
    "form": ("your functions do not return the numbers of requests as a list",
             "expired() must return a list; due() must return a list or a time in seconds",
             "return, for example, [one.number for one in queue]"),
}  # fmt: skip


@exercise("micro_batch")
class MicroBatch(Exercise):
    """Whom a service refuses, whom it gives up, and when which batch runs.

    `accepts(queue, limits)`, `expired(now_s, queue, limits)` and `due(now_s, queue, limits)` serve a load on virtual
    time. The evidence is what became of it; all times are multiples of 1/8 s, so that sums are exact.
    """

    answers = "all"

    answer_form: ClassVar[Any] = {
        "problem": "",
        "refused": [0],
        "given_up": [0],
        "given_up_s": [0.0],
        "starts_s": [0.0],
        "batches": [[0]],
    }

    def probe(self, student: Any, given: Any) -> Any:
        limits = BatchLimits(**given["limits"])
        rules = BatchRules(student.accepts, student.expired, student.due)
        try:
            run = serve_micro_batches(given["arrivals_s"], limits, rules, lambda size: took_s(given, size))
        except RefusedDecision as refused:
            empty: dict[str, Any] = {key: [] for key in ("refused", "given_up", "given_up_s", "starts_s", "batches")}
            return {"problem": refused.kind, **empty}
        late = sorted((one.end_s, number) for number, one in enumerate(run.calls) if one.outcome == TIMED_OUT)
        return {
            "problem": "",
            "refused": [number for number, one in enumerate(run.calls) if one.outcome == FULL],
            "given_up": [number for _, number in late],
            "given_up_s": [at_s for at_s, _ in late],
            "starts_s": [one.start_s for one in run.batches],
            "batches": [list(one.numbers) for one in run.batches],
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if got["problem"]:
            what, why, then = _PROBLEMS.get(got["problem"], _PROBLEMS["form"])
            raise Wrong(what, why=why, next=then)
        mine, right = _events(case, got), _events(case, want)
        if mine == right:
            return
        at = next((at for at, pair in enumerate(zip(mine, right, strict=False)) if pair[0] != pair[1]), None)
        at = min(len(mine), len(right)) if at is None else at
        own, due = (events[at] if at < len(events) else None for events in (mine, right))
        if own is not None and due is not None and own[:2] == due[:2]:
            raise _other_members(own, due)
        if due is None or (own is not None and own < due):
            assert own is not None  # one of them is an event: the two lists differ here
            raise _too_early(case, own)
        raise _too_late(case, due, mine)

    def format_answer(self, case: Any, got: Any) -> str:
        """What became of the load."""
        if got["problem"]:
            return ""
        lines = [f"{at:g} s {_said(kind, numbers)}" for at, kind, numbers in _events(case, got)]
        return "; ".join(lines) or "nothing happens"

    def format_case(self, case: Any) -> str:
        """The limits, the model, and who comes when."""
        limits = ", ".join(f"{name} {value:g}" for name, value in case["limits"].items())
        came = ", ".join(f"{at_s:g}" for at_s in case["arrivals_s"])
        return (
            f"{limits}; a batch of n takes {case['base_s']:g} + {case['each_s']:g} n seconds; "
            f"requests 0 to {len(case['arrivals_s']) - 1} arrive at {came} s"
        )


class _Event(NamedTuple):
    at_s: float
    kind: int
    numbers: tuple[int, ...]


def took_s(case: Any, size: int) -> float:
    """Seconds of a batch."""
    return float(case["base_s"] + case["each_s"] * size)


def _events(case: Any, got: Any) -> list[_Event]:
    """What happened, in its order; a number that is none of the load's has no arrival, and comes first."""
    came = dict(enumerate(case["arrivals_s"]))
    found = [_Event(came.get(number, -1.0), _REFUSED, (number,)) for number in got["refused"]]
    found += _paired(_GIVEN_UP, got["given_up_s"], ([number] for number in got["given_up"]))
    found += _paired(_BATCH, got["starts_s"], got["batches"])
    return sorted(found)


def _paired(kind: int, times_s: Iterable[float], members: Iterable[list[int]]) -> list[_Event]:
    return [_Event(at_s, kind, tuple(numbers)) for at_s, numbers in zip(times_s, members, strict=False)]


def _said(kind: int, numbers: tuple[int, ...]) -> str:
    listed = ", ".join(map(str, numbers))
    return f"{('refused:', 'given up:', 'batch of requests')[kind]} {listed}"


def _other_members(own: _Event, due: _Event) -> Wrong:
    why = f'at {seconds(own.at_s)}, got "{_said(own.kind, own.numbers)}", expected "{_said(due.kind, due.numbers)}"'
    if own.kind == _BATCH and set(own.numbers) < set(due.numbers):
        then = "how many requests are waiting, and how many may run together?"
        return Wrong("one of your batches leaves out requests that it has room for", why=why, next=then)
    if own.kind == _BATCH:
        then = "take the first requests of the queue, which is in the order of arrival"
        return Wrong("one of your batches does not consist of the oldest requests", why=why, next=then)
    return Wrong("your rules refuse or give up the wrong request", why=why, next="return each request's own number")


def _too_early(case: Any, own: _Event) -> Wrong:
    why, limits = f'at {seconds(own.at_s)}, your rules gave "{_said(own.kind, own.numbers)}"', case["limits"]
    if own.kind == _REFUSED:
        then = "how many requests are already waiting, and how many may wait?"
        why += f"; `max_queue` is {limits['max_queue']}"
        return Wrong("your rules refuse a request while the queue has room", why=why, next=then)
    oldest = min(own.numbers, default=-1)
    if oldest not in range(len(case["arrivals_s"])):
        return Wrong(
            "your rules serve a request that never arrived",
            why=why,
            next="use the numbers of the requests in the queue",
        )
    waited = f"request {oldest} has waited {seconds(own.at_s - case['arrivals_s'][oldest])}"
    if own.kind == _GIVEN_UP:
        why += f"; {waited}, but `timeout_s` is {limits['timeout_s']:g}"
        then = "which requests have waited longer than `timeout_s`?"
        return Wrong("your rules give up a request too early", why=why, next=then)
    why += f"; {waited}; `max_wait_s` is {limits['max_wait_s']:g} and `max_batch` is {limits['max_batch']}"
    then = "is the batch full, or has its oldest request waited for `max_wait_s`?"
    return Wrong("one of your batches starts too early", why=why, next=then)


def _too_late(case: Any, due: _Event, mine: list[_Event]) -> Wrong:
    why, limits = f'at {seconds(due.at_s)}, expected "{_said(due.kind, due.numbers)}"', case["limits"]
    if due.kind == _REFUSED:
        why += f"; `max_queue` is {limits['max_queue']}"
        return Wrong(
            "your rules let more than `max_queue` requests wait",
            why=why,
            next="count the requests that are already waiting",
        )
    if due.kind == _GIVEN_UP:
        waited_s = due.at_s - case["arrivals_s"][due.numbers[0]]
        why += f"; this request has waited {seconds(waited_s)}, but `timeout_s` is {limits['timeout_s']:g}"
        then = "give up this request: its client no longer waits, so running it would waste a place in the batch"
        return Wrong("your rules do not give up a request that has waited too long", why=why, next=then)
    later = [one.at_s for one in mine if one.kind == _BATCH and due.numbers[0] in one.numbers]
    if not later:
        why += f"; your rules never run request {due.numbers[0]}"
        then = "run a batch even if it is not full: which request's wait decides when?"
        return Wrong("your rules let requests wait forever", why=why, next=then)
    why += f"; your rules run request {due.numbers[0]} at {seconds(later[0])}; `max_wait_s` is {limits['max_wait_s']:g}"
    then = "which request's arrival counts, and how many requests make a batch full?"
    return Wrong("one of your batches starts too late", why=why, next=then)
