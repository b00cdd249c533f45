"""batcher: requests for one answer, batched so that 99 of 100 are in time; and how many servers a demand needs."""

from __future__ import annotations

import math
from collections.abc import Callable
from statistics import fmean, median
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.checks.plain_forms import whole
from edl_labs.errors import Wrong
from edl_labs.exercises.input_guard import asked_twice, explained_by_changes
from edl_labs.exercises.lab09b_serving.served_loads import (
    both_futures,
    foreseen,
    judged_futures,
    load_of,
    machine_of,
    passing,
    steps_of,
)
from edl_labs.units import counted, seconds
from edl_labs.virtual.server import ServerReplay, serve_batches

SHARE = 0.99  # of the requests, promised in the text
_LATEST = 3  # of 239, so that two of them are beyond the 99 of 100
_PADDED = 2.0  # times the tokens that were asked: then most of the work is padding


@exercise("batcher")
class Batcher(Exercise):
    """A batching policy that keeps its limit for 99 of 100 requests, by night and by day, and servers for a demand.

    `servers_for(demand_per_s, limit_s, runs)` gives a number, `next_batch(now_s, queue, service, limit_s)` numbers of
    requests. The evidence is the number, and what the policy decides on two loads that part at some moment.
    """

    answers = ("servers", "load", "fork")

    answer_form: ClassVar[Any] = {"servers": 0, "load": "", "fork": "", "changed": []}

    def probe(self, student: Any, given: Any) -> Any:
        machine, limit_s = machine_of(given), given["limit_s"]
        asked = given["demand_per_s"], given["kept_s"]
        servers, changed = asked_twice(lambda guard: student.servers_for(*asked, guard("runs", given["runs"])))

        def policy(now_s: float, queue: list[Any]) -> Any:
            chosen = student.next_batch(now_s, queue, machine, limit_s)
            return whole(chosen) if isinstance(chosen, list) else chosen

        decided = both_futures(given, lambda server: serve_batches(server, policy))
        return {"servers": servers, **decided, "changed": changed}

    def public_want(self, case: Any, want: Any) -> Any:
        """The number of servers: the reference's decisions would be a policy to copy."""
        return {"servers": want["servers"], "load": "", "fork": "", "changed": []}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        run = judged_futures(case, got)
        if run.unfinished:
            raise _left(run)
        late_s = run.latency_s(SHARE)
        if late_s > case["limit_s"]:
            raise _late(case, run, late_s)
        with explained_by_changes(got["changed"]):
            if got["servers"] != want["servers"]:
                raise _miscounted(case, got["servers"], want["servers"])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Decisions that foresee; where only numbers of servers are wrong, the rule that gives all of them."""
        peeks = foreseen(cases, got)
        if peeks is not None:
            return peeks
        if all(a["servers"] == b["servers"] for a, b in zip(got, want, strict=True)):
            return None
        if any(_is_late(case, one) for case, one in zip(cases, got, strict=True)):
            return None
        for rule, what, why, then in _MISCOUNTED:
            if all(rule(case) == one["servers"] for case, one in zip(cases, got, strict=True)):
                return Wrong(what, why=why, next=then)
        return None

    def format_answer(self, case: Any, got: Any) -> str:
        """What the policy reached."""
        try:
            run = judged_futures(case, got)
        except Wrong:
            return f"{got['servers']} servers"
        late = "infinite" if run.unfinished else seconds(run.latency_s(SHARE))
        return (
            f"{got['servers']} servers; p50 {seconds(run.latency_s(0.5))}, p99 {late}, "
            f"{len(run.requests) / max(1, run.steps):.1f} requests a batch"
        )

    def format_case(self, case: Any) -> str:
        """The service, the load, and the demand."""
        machine, load = machine_of(case), load_of(case, "load")
        lengths = sorted(one.prompt_tokens for one in load)
        rate = len(load) / load[-1].arrival_s
        offered = ", ".join(f"{one['per_s']:g}" for one in case["runs"])
        return (
            f"{case['kind']}: {len(load)} requests, {rate:.3g} a second, of {lengths[0]} to {lengths[-1]} tokens, half "
            f"of them below {lengths[len(lengths) // 2]}; up to {machine.most_sequences} in a batch, limit "
            f"{seconds(case['limit_s'])}; servers for {case['demand_per_s']:g} a second within "
            f"{seconds(case['kept_s'])}, measured at {offered} a second"
        )


def _left(run: ServerReplay) -> Wrong:
    """What to say of those who are never served: the last ones, or others."""
    left = [one for one in run.requests if one.finish_s is None]
    why = f"{counted(len(left), 'request')} of {len(run.requests)} are still waiting after the last arrival"
    lengths = [one.prompt_tokens for one in left]
    served = [one.prompt_tokens for one in run.requests if one.finish_s is not None]
    if not served or max(served) >= min(lengths):
        return Wrong("requests wait for ever", why=why, next="a batch need not be full")
    why += f"; the first of them is number {left[0].number}, their prompts have {min(lengths)} to {max(lengths)} tokens"
    return Wrong("some requests are never chosen", why=why, next="what has to happen for queue[0] to run?")


def _is_late(case: Any, got: Any) -> bool:
    try:
        return judged_futures(case, got).latency_s(SHARE) > case["limit_s"]
    except Wrong:
        return True


def _late(case: Any, run: ServerReplay, late_s: float) -> Wrong:
    """What keeps the last of a hundred waiting, from the batches and their order."""
    batches = [batch for batch in steps_of(run) if batch]
    mean_s = fmean(one.latency_s for one in run.requests)
    reached = f"p99 is {seconds(late_s)}, the limit {seconds(case['limit_s'])}"
    idle_s = _idle_while_waiting(run)
    if idle_s > 0.2 * mean_s:
        why = f"{reached}; on average a request waits {seconds(idle_s)} while the device does nothing"
        then = "the next batch fills while this one runs: what does waiting for more win?"
        return Wrong("the device idles while requests wait", why=why, next=then)
    if len(run.requests) / len(batches) < 1.05:
        why = f"{reached}; {counted(len(batches), 'batch')} for {len(run.requests)} requests"
        return Wrong("requests are served one by one", why=why, next="the weights are read for a whole batch at once")
    prompts = [one.prompt_tokens for one in run.requests]
    padded = sum(len(batch) * max(prompts[n] for n in batch) for batch in batches) / sum(prompts)
    starved = _starved(run, prompts, f"{reached}, the mean {seconds(mean_s)}")
    if starved is not None:
        return starved
    if padded > _PADDED:
        why = f"{reached}; with padding {padded:.1f} times the tokens that were asked for are computed"
        then = "a batch is as long as its longest prompt: which requests go well together?"
        return Wrong("long prompts hold up the short ones in their batch", why=why, next=then)
    largest = max(map(len, batches))
    # Where fewer wait than the batches have, nobody could have made them larger.
    queue = fmean(moment.waiting for moment in run.moments)
    if largest < run.machine.most_sequences and run.utilisation > 0.9 and queue > largest:
        why = f"{reached}; no batch has more than {largest}, and {run.machine.most_sequences} are allowed"
        return Wrong(
            "batches stay small while the queue grows", why=why, next="what costs a further request of that length?"
        )
    latest = sorted(run.requests, key=lambda one: one.latency_s)[-_LATEST:]
    passed = fmean(len(passing(run)[one.number]) for one in latest)
    why = (
        f"{reached}, the mean {seconds(mean_s)}; the {_LATEST} latest have prompts of "
        f"{min(one.prompt_tokens for one in latest)} to {max(one.prompt_tokens for one in latest)} tokens, and "
        f"{passed:.0f} who came later go before each"
    )
    then = "who goes before them, and how long may that go on?"
    pairs = [(one.number, other) for one in latest for other in passing(run)[one.number]]
    if pairs and sum(prompts[other] < prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        return Wrong("the latest are long prompts, passed by shorter ones", why=why, next=then)
    return Wrong("too many requests are late", why=why, next=then)


def _idle_while_waiting(run: ServerReplay) -> float:
    """Seconds that a request spends, on average, while nothing runs."""
    idle, began_s, ends = [], 0.0, []
    for entry in run.program:
        if "value" in entry:
            if entry["op"] == "wait":
                idle.append((began_s, entry["value"]))
            began_s = entry["value"]
            ends.append(began_s)
    total = 0.0
    for one in run.requests:
        total += sum(max(0.0, min(b, one.finish_s or b) - max(a, one.arrival_s)) for a, b in idle)
    return total / len(run.requests)


def _starved(run: ServerReplay, prompts: list[int], reached: str) -> Wrong | None:
    """What to say where the late ones are passed by more than a batch of others; None where they are not."""
    late = sorted(run.requests, key=lambda one: one.latency_s)[-max(3, len(prompts) // 50) :]
    passed = passing(run)
    pairs = [(one.number, other) for one in late for other in passed[one.number]]
    if len(pairs) <= len(late) * run.machine.most_sequences:
        return None
    told = f"{len(pairs) / len(late):.0f} others who came later go before each of the latest"
    if sum(prompts[other] < prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        then = "a mean is good where a few wait for very long: who has to go next for the last of a hundred?"
        why = f"{reached}; {told}, nearly all of them shorter"
        return Wrong("the mean is short because long prompts are left waiting", why=why, next=then)
    if sum(prompts[other] > prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        why = f"{reached}; {told}, nearly all of them longer"
        return Wrong("short prompts are left waiting behind long ones", why=why, next="queue[0] came first")
    what = "those who wait longest are passed by those who came last"
    return Wrong(what, why=f"{reached}; {told}", next="queue[0] came first")


def _largest_kept(case: Any, statistic: Callable[[list[float]], float]) -> float:
    kept = [one["per_s"] for one in case["runs"] if statistic(one["latencies_s"]) <= case["kept_s"]]
    return max(kept, default=math.nan)


def _servers_by(statistic: Callable[[list[float]], float]) -> Callable[[Any], int]:
    def counted_by(case: Any) -> int:
        load = _largest_kept(case, statistic)
        return 0 if math.isnan(load) else math.ceil(case["demand_per_s"] / load)

    return counted_by


def _one_too_late(latencies_s: list[float]) -> float:
    """What stands at int(0.99 n) of the sorted ones, counted from 0: of 100 the last."""
    return sorted(latencies_s)[int(SHARE * len(latencies_s))]


_P99 = "the last of a hundred has to be in time"
_MISCOUNTED: tuple[tuple[Callable[[Any], int], str, str, str], ...] = (
    (_servers_by(fmean), "the mean is held against the limit",
     "servers for which the mean is in time leave many requests late", _P99),
    (_servers_by(median), "the median is held against the limit",
     "half of the requests may be later than that", _P99),
    (_servers_by(max), "the latest of all is held against the limit",
     "one in a hundred may be later", "sort them: which one has 99 of 100 at or before it?"),
    (_servers_by(_one_too_late), "p99 is taken one place too late in the sorted latencies",
     "recomputed with the one at int(0.99 * n), it is yours", "of 100, which one has 99 at or before it?"),
    (lambda case: math.ceil(case["demand_per_s"] / max(one["per_s"] for one in case["runs"])),
     "servers are planned for the most that they can do",
     "at full use the queue grows without end, and so does the wait", "which loads are kept within the limit?"),
    (lambda case: math.ceil(case["demand_per_s"] / min(one["per_s"] for one in case["runs"])),
     "servers are planned for the smallest load that was measured",
     "that keeps the limit with more servers than it takes", "which is the largest load that keeps it?"),
)  # fmt: skip


def _miscounted(case: Any, found: Any, right: int) -> Wrong:
    why = f"{found} servers for {right}, at {case['demand_per_s']:g} a second"
    if found == right - 1:
        return Wrong("one server is missing", why=why, next="part of a server serves no requests: round up")
    if found == right + 1:
        then = "is the load that you divide by the largest that keeps the limit, and is 99 of 100 counted exactly?"
        return Wrong("one server too many", why=why, next=then)
    why += f"; each would get {case['demand_per_s'] / found:.4g}" if found > 0 else ""
    if found < right:
        then = "which runs were measured at such a load or a larger one, and did 99 of 100 keep the limit there?"
        return Wrong("each server gets more than it can serve in time", why=why, next=then)
    then = "was a run measured at a larger load than that in which 99 of 100 requests kept the limit?"
    return Wrong("the limit would be kept with fewer servers", why=why, next=then)
