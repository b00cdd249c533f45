"""The cases of batcher: a night, days with some long prompts, and bursts; and what servers of other loads measured."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.virtual.server import (
    Arrival,
    DecoderShape,
    ServerMachine,
    VirtualServer,
    arrivals_of,
    burst_times,
    drawn_lengths,
    poisson_times,
    replay,
    serve_batches,
)

_COUNT = 239  # requests of a load: a prime, so that full batches leave some over
_ROOM = 2.0  # times the p99 of buckets of lengths: the limit leaves room for policies of other kinds
_TRIES = 60  # most draws part the policies
_SHAPE = DecoderShape("ranker", layers=24, heads=16, kv_heads=16, head_size=64, parameters=560_000_000)


@case_source("batcher")
def loads(rng: Any) -> list[Case]:
    # Part of a server rounds down in some and up in others: who rounds to the nearest is wrong in some.
    # Of 100 and 200 latencies 99 % is a whole number, of 150 not.
    kinds = [("night", 0.3, 100), ("day", 0.7, 150), ("bursts", 0.3, 200), ("day", 0.7, 100)]
    return [Case.split(_case(rng, *one), "kind") for one in kinds]


def _case(rng: Any, kind: str, part: float, measured: int) -> dict[str, Any]:
    for _ in range(_TRIES):
        # By night it is the lab's own, so that who writes 32 learns first what waiting for 32 costs.
        most = 32 if kind == "night" else int(rng.choice([16, 24, 32]))
        machine = ServerMachine.of("A100-80GB", _SHAPE, blocks=10**6, most_sequences=most, step_s=2e-3, padded=True)
        load = _load(rng, kind, _COUNT)
        late_s = {name: _p99_s(machine, load, policy) for name, policy in _POLICIES.items()}
        limit_s = round(_ROOM * late_s.pop("buckets"), 4)
        # By night there is hardly a queue: only who waits is late.
        parted = late_s.values() if kind != "night" else [late_s["full"]]
        if all(late > 1.1 * limit_s for late in parted):
            at = int(rng.integers(_COUNT // 3, 2 * _COUNT // 3))
            return {
                "kind": kind, "machine": machine.to_dict(), "limit_s": limit_s, "load": _plain(load),
                "fork": _plain(_forked(rng, kind, load, at)), **_demand(rng, part, measured),
            }  # fmt: skip
    raise AssertionError("no load parted the policies; draw others")


def _load(rng: Any, kind: str, count: int) -> list[Arrival]:
    prompts = drawn_lengths(rng, count=count, median=64, spread=0.5, most=200, least=8)
    for at in rng.choice(count, size=count // 12, replace=False):
        prompts[at] = int(rng.integers(800, 1600))
    per_s = {"night": rng.uniform(20, 60), "day": rng.uniform(650, 900), "bursts": rng.uniform(450, 650)}[kind]
    times = burst_times(rng, count=count, per_s=per_s, burst=24) if kind == "bursts" else poisson_times(
        rng, count=count, per_s=per_s
    )  # fmt: skip
    return arrivals_of(times, prompts, [1] * count)


def _forked(rng: Any, kind: str, load: list[Arrival], at: int) -> list[Arrival]:
    """The same load up to a request, and another one from there on."""
    begin_s = load[at - 1].arrival_s
    rest = _load(rng, kind, len(load) - at)
    return load[:at] + [Arrival(round(begin_s + one.arrival_s, 6), one.prompt_tokens) for one in rest]


def _plain(load: list[Arrival]) -> list[list[Any]]:
    return [[one.arrival_s, one.prompt_tokens, one.output_tokens] for one in load]


def _p99_s(machine: ServerMachine, load: list[Arrival], policy: Any) -> float:
    server = VirtualServer(machine, load)
    return replay(serve_batches(server, lambda now_s, queue: policy(queue, machine.most_sequences))).latency_s(0.99)


def _buckets(queue: Any, most: int) -> list[int]:
    alike = [one.number for one in queue if int(math.log2(one.prompt_tokens)) == int(math.log2(queue[0].prompt_tokens))]
    return alike[:most]


_POLICIES = {
    "buckets": _buckets,
    "one": lambda queue, most: [queue[0].number],
    "first": lambda queue, most: [one.number for one in queue[:most]],
    "last": lambda queue, most: [one.number for one in queue[::-1][:most]],
    "short": lambda queue, most: [one.number for one in sorted(queue, key=lambda one: one.prompt_tokens)[:most]],
    "full": lambda queue, most: [one.number for one in queue[:most]] if len(queue) >= most else [],
}


def _demand(rng: Any, part: float, measured: int) -> dict[str, Any]:
    """Runs of one server at growing loads, of which mean, median, p99 and the latest keep the limit up to others."""
    last, middle = -(-99 * measured // 100) - 1, measured // 2
    for _ in range(_TRIES * 50):
        scale, full = float(rng.uniform(0.02, 0.08)), float(rng.uniform(200, 900))
        runs: list[dict[str, Any]] = []
        for use in (0.2, 0.4, 0.55, 0.7, 0.8, 0.88, 0.94):
            drawn = rng.lognormal(math.log(scale / (1 - use)), 0.65, size=measured)
            runs.append({"per_s": round(use * full), "latencies_s": [round(float(one), 6) for one in drawn]})
        p99 = [sorted(one["latencies_s"])[last] for one in runs]
        if p99[3] < 1.05 * p99[2]:
            continue
        limit_s = round(float(rng.uniform(p99[2], p99[3])), 4)
        demand = float(round(rng.uniform(5, 12) * full))
        kept = {
            "p99": _kept(runs, limit_s, lambda one: sorted(one)[last]),
            "mean": _kept(runs, limit_s, lambda one: sum(one) / len(one)),
            "median": _kept(runs, limit_s, lambda one: sorted(one)[middle]),
            "latest": _kept(runs, limit_s, max),
            "most": runs[-1]["per_s"],
            "least": runs[0]["per_s"],
        }
        servers = [math.ceil(demand / load) if load else 0 for load in kept.values()]
        # A count that others round to as well would tell nobody apart; p99 by one place too low is another load.
        apart = (
            min(kept.values()) > 0
            and len(set(servers)) == len(servers)
            and abs(demand / kept["p99"] % 1 - part) < 0.2
            and limit_s >= p99[2]
        )
        if apart and kept["p99"] == runs[2]["per_s"]:
            return {"demand_per_s": demand, "kept_s": limit_s, "runs": runs}
    raise AssertionError("no runs part the statistics; draw others")


def _kept(runs: list[Any], limit_s: float, statistic: Any) -> float:
    return max((one["per_s"] for one in runs if statistic(one["latencies_s"]) <= limit_s), default=0)
