"""lab09b's policies on loads that no exercise draws: other arrivals, pools of any size, prompts and answers of one."""

from __future__ import annotations

import numpy as np
import pytest

from edl_labs.virtual.server import (
    Arrival,
    ServerMachine,
    VirtualServer,
    arrivals_of,
    burst_times,
    poisson_times,
    replay,
    serve_batches,
)

ARRIVALS = {
    "constant": lambda rng, count: [0.05 * at for at in range(count)],
    "slow": lambda rng, count: poisson_times(rng, count=count, per_s=0.5),
    "fast": lambda rng, count: poisson_times(rng, count=count, per_s=200.0),
    "bursts": lambda rng, count: burst_times(rng, count=count, per_s=20.0, burst=15),
}


@pytest.mark.parametrize("kind", ARRIVALS)
@pytest.mark.parametrize(
    ("pool", "prompts", "answers"),
    [
        ({"blocks": 1, "block_tokens": 64}, 1, 1),  # one block, and nobody needs more
        ({"blocks": 10**6}, 200, 30),  # far too many
        ({"blocks": 45}, 1, 200),  # prompts of one token: all of the cache comes from answers
        ({"blocks": 45}, 400, 1),  # answers of one token: nobody decodes
        ({"blocks": 3, "block_tokens": 256, "most_sequences": 1}, 300, 60),
    ],
)
def test_schedules_of_the_solution_end_on_any_arrivals_and_pools(solution, kind, pool, prompts, answers):
    rng = np.random.default_rng(7)
    machine = ServerMachine(**{"step_s": 1e-3, "most_sequences": 12, **pool})
    sizes = [[max(1, int(n)) for n in rng.uniform(0.5, 1.0, 30) * most] for most in (prompts, answers)]
    load = arrivals_of(ARRIVALS[kind](rng, 30), *sizes)
    run = replay(VirtualServer(machine, load).run(solution["schedule"]))

    assert (0, 0, 0, False) == (run.unfinished, run.leaked_blocks, run.stalls, run.stuck)
    assert sum(sizes[1]) == sum(one.generated_tokens for one in run.requests)
    if pool["blocks"] == 10**6:
        assert "preempt" not in run.counts


def test_a_schedule_with_a_request_longer_than_the_pool_serves_who_came_before_it(solution):
    load = [Arrival(0.0, 16, 3), Arrival(0.1, 900, 2), Arrival(0.2, 16, 3)]
    run = replay(VirtualServer(ServerMachine(blocks=4, step_s=1e-3), load).run(solution["schedule"]))

    assert run.stuck
    assert [True, False, False] == [one.finish_s is not None for one in run.requests]


@pytest.mark.parametrize("kind", ARRIVALS)
@pytest.mark.parametrize("longest", [1, 64, 1500])
def test_batches_of_the_solution_never_idle_and_serve_each_once(solution, kind, longest):
    rng = np.random.default_rng(3)
    machine = ServerMachine(blocks=10**6, most_sequences=8, step_s=2e-3, padded=True)
    prompts = [int(n) for n in rng.integers(1, longest + 1, 40)]
    server = VirtualServer(machine, arrivals_of(ARRIVALS[kind](rng, 40), prompts, [1] * 40))
    run = replay(serve_batches(server, lambda now_s, queue: solution["next_batch"](now_s, queue, machine, 0.1)))

    assert (0, 40) == (run.unfinished, run.counts["admit"])
    first = {entry["request"]: at for at, entry in enumerate(run.program) if entry["op"] == "admit"}
    assert sorted(first) == list(range(40))
    # Busy whenever somebody waits.
    idle_s = sum(b - a for a, b in _gaps(run))
    assert run.makespan_s == pytest.approx(run.busy_s + idle_s)
    assert all(not a < one.arrival_s < b for one in run.requests for a, b in _gaps(run))


def _gaps(run):
    """When the device did nothing."""
    now, found = 0.0, []
    for entry in run.program:
        if entry["op"] == "wait":
            found.append((now, entry["value"]))
        now = entry.get("value", now)
    return found
