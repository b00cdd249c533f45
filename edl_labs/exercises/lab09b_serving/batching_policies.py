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
from edl_labs.units import counted, seconds, seconds_apart
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
            f"{len(run.requests) / max(1, run.steps):.1f} requests per batch"
        )

    def format_case(self, case: Any) -> str:
        """The service, the load, and the demand."""
        machine, load = machine_of(case), load_of(case, "load")
        lengths = sorted(one.prompt_tokens for one in load)
        rate = len(load) / load[-1].arrival_s
        offered = ", ".join(f"{one['per_s']:g}" for one in case["runs"])
        return (
            f"{case['kind']}: {len(load)} requests of {lengths[0]} to {lengths[-1]} tokens, {rate:.3g} per second, "
            f"half of them shorter than {lengths[len(lengths) // 2]}; up to {machine.most_sequences} in a batch, limit "
            f"{seconds(case['limit_s'])}; servers needed for {case['demand_per_s']:g} requests per second within "
            f"{seconds(case['kept_s'])}; runs were measured at {offered} requests per second"
        )


def _left(run: ServerReplay) -> Wrong:
    """What to say of those who are never served: the last ones, or others."""
    left = [one for one in run.requests if one.finish_s is None]
    waits = "is" if len(left) == 1 else "are"
    why = f"{counted(len(left), 'request')} of {len(run.requests)} {waits} still waiting after the last arrival"
    lengths = [one.prompt_tokens for one in left]
    served = [one.prompt_tokens for one in run.requests if one.finish_s is not None]
    if not served or max(served) >= min(lengths):
        fewest, then = _fewest_waiting(run), "also run batches that are not full"
        if len(left) < fewest < run.machine.most_sequences:
            why += f"; your code never runs a batch while fewer than {fewest} requests wait"
            then = "run a batch even if only a few requests wait: there may be no later arrivals"
        return Wrong("your policy lets requests wait forever", why=why, next=then)
    why += f"; the first one is number {left[0].number}, and their prompts have {min(lengths)} to {max(lengths)} tokens"
    return Wrong(
        "your policy never chooses some requests", why=why, next="under which condition does your code choose queue[0]?"
    )


def _fewest_waiting(run: ServerReplay) -> float:
    """How many requests wait when a batch is chosen, at least."""
    began_s, admitted, chosen, fewest = 0.0, 0, 0, math.inf
    for entry in run.program:
        if entry["op"] == "admit":
            chosen += 1
        if "value" in entry:
            if chosen:
                fewest = min(fewest, sum(one.arrival_s <= began_s for one in run.requests) - admitted)
            admitted, chosen, began_s = admitted + chosen, 0, entry["value"]
    return fewest


def _is_late(case: Any, got: Any) -> bool:
    try:
        return judged_futures(case, got).latency_s(SHARE) > case["limit_s"]
    except Wrong:
        return True


def _late(case: Any, run: ServerReplay, late_s: float) -> Wrong:
    """What keeps the last of a hundred waiting, from the batches and their order."""
    batches = [batch for batch in steps_of(run) if batch]
    mean_s = fmean(one.latency_s for one in run.requests)
    reached = "p99 is {}, but the limit is {}".format(*seconds_apart(late_s, case["limit_s"]))
    idle_s = _idle_while_waiting(run)
    if idle_s > 0.2 * mean_s:
        why = f"{reached}; on average a request waits {seconds(idle_s)} while the device is idle"
        then = "what do you gain by waiting? The next batch fills up while the current one runs"
        return Wrong("your policy leaves the device idle while requests wait", why=why, next=then)
    if len(run.requests) / len(batches) < 1.05:
        why = f"{reached}; your code runs {counted(len(batches), 'batch')} for {len(run.requests)} requests"
        then = "put several requests into a batch: the weights are read only once for all of them"
        return Wrong("your policy serves requests one by one", why=why, next=then)
    prompts = [one.prompt_tokens for one in run.requests]
    padded = sum(len(batch) * max(prompts[n] for n in batch) for batch in batches) / sum(prompts)
    starved = _starved(run, prompts, f"{reached}; the mean is {seconds(mean_s)}")
    if starved is not None:
        return starved
    if padded > _PADDED:
        why = f"{reached}; your batches compute {padded:.1f} times as many tokens as requested: the rest is padding"
        then = "a batch takes as long as its longest prompt needs: which requests should share a batch?"
        return Wrong("in your batches, long prompts delay the short ones", why=why, next=then)
    largest = max(map(len, batches))
    # Where fewer wait than the batches have, nobody could have made them larger.
    queue = fmean(moment.waiting for moment in run.moments)
    if largest < run.machine.most_sequences and run.utilisation > 0.9 and queue > largest:
        why = f"{reached}; the largest batch has {largest} requests, but {run.machine.most_sequences} are allowed"
        then = "how much longer does a batch take if it has one more request of the same length?"
        return Wrong("your batches stay small while the queue grows", why=why, next=then)
    latest = sorted(run.requests, key=lambda one: one.latency_s)[-_LATEST:]
    passed = fmean(len(passing(run)[one.number]) for one in latest)
    why = (
        f"{reached}; the mean is {seconds(mean_s)}; the {_LATEST} requests with the longest latency have prompts of "
        f"{min(one.prompt_tokens for one in latest)} to {max(one.prompt_tokens for one in latest)} tokens, and on "
        f"average {passed:.0f} later requests run before each of them"
    )
    then = "which requests run before these three, and what limits how long these three wait?"
    pairs = [(one.number, other) for one in latest for other in passing(run)[one.number]]
    if pairs and sum(prompts[other] < prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        return Wrong("in your order, long prompts wait longest because shorter ones overtake them", why=why, next=then)
    return Wrong("with your policy, too many requests exceed the limit", why=why, next=then)


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
    told = f"on average {len(pairs) / len(late):.0f} later requests run before each of the requests that wait longest"
    if sum(prompts[other] < prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        then = "which request must run next to limit the longest waits? A short mean allows a few very long waits"
        why = f"{reached}; {told}, and nearly all of these later requests have shorter prompts"
        return Wrong("your policy keeps the mean short only by letting long prompts wait", why=why, next=then)
    if sum(prompts[other] > prompts[number] for number, other in pairs) > 0.9 * len(pairs):
        why = f"{reached}; {told}, and nearly all of these later requests have longer prompts"
        return Wrong(
            "your policy lets short prompts wait for long ones",
            why=why,
            next="queue[0] came first: which request has waited longest?",
        )
    what = "your policy runs later requests before those that have waited longest"
    return Wrong(what, why=f"{reached}; {told}", next="queue[0] came first: which request has waited longest?")


def _largest_kept(case: Any, statistic: Callable[[list[float]], float]) -> float:
    kept = [one["per_s"] for one in case["runs"] if statistic(one["latencies_s"]) <= case["kept_s"]]
    return max(kept, default=math.nan)


def _servers_by(statistic: Callable[[list[float]], float]) -> Callable[[Any], int]:
    def counted_by(case: Any) -> int:
        load = _largest_kept(case, statistic)
        return 0 if math.isnan(load) else math.ceil(case["demand_per_s"] / load)

    return counted_by


def _percentile(share: float) -> Callable[[list[float]], float]:
    return lambda latencies_s: sorted(latencies_s)[math.ceil(share * len(latencies_s)) - 1]


def _by_all_kept(case: Any) -> int:
    """The servers of one who adds up the loads of all runs that keep the limit."""
    kept = sum(one["per_s"] for one in case["runs"] if _percentile(SHARE)(one["latencies_s"]) <= case["kept_s"])
    return math.ceil(case["demand_per_s"] / kept) if kept else 0


def _one_too_late(latencies_s: list[float]) -> float:
    """What stands at int(0.99 n) of the sorted ones, counted from 0: of 100 the last."""
    return sorted(latencies_s)[int(SHARE * len(latencies_s))]


_P99 = "compare the limit with the latency that 99 of 100 requests do not exceed"
_MISCOUNTED: tuple[tuple[Callable[[Any], int], str, str, str], ...] = (
    (_servers_by(fmean), "servers_for() compares the mean with the limit",
     "many requests may be late even if the mean is within the limit", _P99),
    (_servers_by(median), "servers_for() compares the median with the limit",
     "half of the requests may be late even if the median is within the limit", _P99),
    (_servers_by(max), "servers_for() compares the longest latency with the limit",
     "one request in a hundred may exceed the limit", "sort the latencies: which one do 99 of 100 not exceed?"),
    (_servers_by(_one_too_late), "servers_for() takes p99 one place too late in the sorted latencies",
     "the latency at index int(0.99 * n) gives exactly your results",
     "sort 100 latencies: which one do 99 of them not exceed?"),
    (lambda case: math.ceil(case["demand_per_s"] / max(one["per_s"] for one in case["runs"])),
     "servers_for() gives each server the largest load that was measured",
     "at full load the queue grows without bound, and so does the wait",
     "at which loads do 99 of 100 requests stay within the limit?"),
    (lambda case: math.ceil(case["demand_per_s"] / min(one["per_s"] for one in case["runs"])),
     "servers_for() gives each server only the smallest load that was measured",
     "this takes more servers than the limit requires",
     "what is the largest load at which 99 of 100 requests stay within the limit?"),
    (_by_all_kept, "servers_for() adds the loads of several runs",
     "the sum of all loads that keep the limit, as the load of one server, gives exactly your results",
     "give each server only the largest load at which 99 of 100 requests stay within the limit"),
    *((_servers_by(_percentile(share)), "servers_for() does not compare the 99th percentile with the limit",
       f"the {100 * share:.0f}th percentile gives exactly your results", _P99) for share in (0.95, 0.9)),
)  # fmt: skip


def _miscounted(case: Any, found: Any, right: int) -> Wrong:
    why = f"got {found} servers, expected {right}, for {case['demand_per_s']:g} requests per second"
    if found == right - 1:
        return Wrong(
            "your result has one server too few", why=why, next="round up: a fraction of a server cannot serve requests"
        )
    if found == right + 1:
        then = (
            "do you divide by the largest load that meets the limit, and is your p99 the 99th of 100 sorted latencies?"
        )
        return Wrong("your result has one server too many", why=why, next=then)
    why += f"; each of your servers would get {case['demand_per_s'] / found:.4g} per second" if found > 0 else ""
    if found < right:
        above = [one for one in case["runs"] if found > 0 and one["per_s"] >= case["demand_per_s"] / found]
        then = "use the largest measured load at which 99 of 100 requests stay within the limit"
        if above:
            run = min(above, key=lambda one: one["per_s"])
            late_s, limit_s = seconds_apart(_percentile(SHARE)(run["latencies_s"]), case["kept_s"])
            why += f"; in the run at {run['per_s']:g} per second, the p99 is {late_s}, but the limit is {limit_s}"
        else:
            why += f"; the largest measured load is {max(one['per_s'] for one in case['runs']):g} per second"
        return Wrong("with your result, each server gets more than it can serve in time", why=why, next=then)
    then = "is there a run at a higher load per server in which 99 of 100 requests stayed within the limit?"
    return Wrong("fewer servers would be enough", why=why, next=then)
