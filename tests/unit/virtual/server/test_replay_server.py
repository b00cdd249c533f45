"""Replays of a server: figures, tampering, foresight, conservation on drawn loads, and a way out to Perfetto."""

from __future__ import annotations

import json
import math
from itertools import pairwise

import numpy as np
import pytest

from edl_labs.virtual.errors import ReplayDisagreement, ReplayError
from edl_labs.virtual.server import (
    DecoderShape,
    ServerMachine,
    VirtualServer,
    arrivals_of,
    burst_times,
    day_times,
    decides_otherwise,
    drawn_lengths,
    poisson_times,
    replay,
    replay_server,
)
from tests.unit.virtual.server.test_virtual_server import SLOW, admit_all

MACHINE = ServerMachine.of("A100-80GB", DecoderShape(), blocks=90, step_s=1e-3, most_output_tokens=200)


def paged(server):
    """Preempts the youngest where blocks are short."""
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    admit_all(server)


def drawn(seed, *, count=40, per_s=6.0):
    rng = np.random.default_rng(seed)
    return arrivals_of(
        poisson_times(rng, count=count, per_s=per_s),
        drawn_lengths(rng, count=count, median=120, spread=0.7, most=600),
        drawn_lengths(rng, count=count, median=60, spread=0.7, most=200),
    )


@pytest.mark.parametrize("seed", range(6))
def test_every_token_is_made_once_and_every_block_comes_back(seed):
    server = VirtualServer(MACHINE, drawn(seed)).run(paged)
    run = replay(server)

    assert [one.output_tokens for one in server.load] == [one.generated_tokens for one in run.requests]
    assert (MACHINE.blocks, 0, False) == (server.free_blocks, run.leaked_blocks, run.stuck)
    assert all(moment.held <= MACHINE.blocks for moment in run.moments)
    assert all(moment.tokens <= moment.held * MACHINE.block_tokens for moment in run.moments)
    assert run.busy_s <= run.makespan_s + 1e-9
    assert run.token_per_s == pytest.approx(sum(one.output_tokens for one in server.load) / run.makespan_s)


@pytest.mark.parametrize("seed", range(3))
def test_more_blocks_or_faster_memory_never_take_longer(seed):
    def makespan(**parameters):
        return replay(VirtualServer(MACHINE.replace(**parameters), drawn(seed, per_s=30)).run(paged)).makespan_s

    assert makespan(blocks=400) <= 1.001 * makespan()
    assert makespan(memory_byte_per_s=4e12) < makespan()


def test_the_programs_are_plain_data_and_replay_to_the_bit():
    server = VirtualServer(MACHINE, drawn(1)).run(paged)
    again = replay_server(json.loads(json.dumps(server.program)), MACHINE.to_dict(), server.load)

    assert replay(server).to_json() == again.to_json()


def test_the_last_of_a_request_s_phases_is_its_end_and_they_follow_one_another():
    run = replay(VirtualServer(MACHINE, drawn(2)).run(paged))

    for one, phases in zip(run.requests, run.phases, strict=True):
        assert round(one.arrival_s * 1e12) == phases[0][1]
        assert round(one.finish_s * 1e12) == phases[-1][2]
        assert all(a[2] == b[1] for a, b in pairwise(phases))


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (lambda program: program[-1].update(value=0.5), "recorded with the value 0.5"),
        (lambda program: program.insert(0, {"op": "admit", "request": 3}), "is not possible"),
        (lambda program: program[0].update(request=True), "an invalid request, True"),
        (lambda program: program[0].pop("request"), "lacks the field request"),
        (lambda program: program.insert(0, {"op": "hurry"}), "an unknown name"),
        (lambda program: program.insert(0, {"op": "wait", "until_s": "soon", "value": 0.0}), "is not possible"),
        (lambda program: program.insert(0, 7), "not a dict"),
    ],
)
def test_decisions_that_no_server_recorded_are_told(tamper, said):
    server = VirtualServer(SLOW, [(0.0, 3, 2), (9.0, 1, 1)]).run(admit_all)
    program = [{**entry} for entry in server.program if entry["op"] != "free"]
    tamper(program)

    with pytest.raises(ReplayError, match=said):
        replay_server(program, SLOW, server.load)


def test_a_program_of_another_load_does_not_replay():
    server = VirtualServer(SLOW, [(0.0, 3, 2)]).run(admit_all)

    with pytest.raises(ReplayDisagreement, match="replaying the program up to this operation gives 5"):
        replay_server(server.program, SLOW, [(0.0, 4, 2)])
    with pytest.raises(ReplayError, match="the request is running and reads them"):
        replay_server(server.program, SLOW, [(0.0, 3, 3)])
    with pytest.raises(ReplayError, match="a list of operations"):
        replay_server({"op": "step"}, SLOW, server.load)
    with pytest.raises(ReplayError, match="more than 2 operations"):
        replay_server(server.program, SLOW, server.load, max_operations=2)


def both(policy_of, load, fork):
    return [replay(VirtualServer(MACHINE, one).run(policy_of())) for one in (load, fork)]


def forked(seed):
    """The same requests up to the twelfth, and others from there on; of some, long answers where they were short."""
    load, other = drawn(seed, per_s=40), drawn(seed + 100, per_s=40)
    shifted = [type(one)(load[11].arrival_s + one.arrival_s, one.prompt_tokens, one.output_tokens) for one in other]
    turned = [type(one)(one.arrival_s, one.prompt_tokens, 201 - one.output_tokens) for one in load[6:12]]
    return load, load[:6] + turned + shifted[:20]


@pytest.mark.parametrize("seed", range(8))
def test_a_policy_without_foresight_decides_alike_until_loads_part(seed):
    assert decides_otherwise(*both(lambda: paged, *forked(seed))) is None


@pytest.mark.parametrize("kind", ["lengths", "arrivals"])
def test_a_policy_that_peeks_is_found(kind):
    def peeking():
        def policy(server):
            if kind == "lengths":
                order = sorted(server.waiting, key=lambda one: server.load[one.number].output_tokens)
            else:
                far = [one for one in server.load if one.arrival_s > server.now_s]
                order = server.waiting if far and far[0].arrival_s - server.now_s > 0.02 else ()
            for one in server.finished:
                server.free(one)
            while sum(one.needs for one in server.running) > server.free_blocks:
                server.preempt(server.running[-1])
            for one in server.running:
                if one.needs:
                    server.allocate(one, one.needs)
            for one in order:
                if one.needs <= server.free_blocks:
                    server.allocate(one, one.needs)
                    server.admit(one)

        return policy

    found = [decides_otherwise(*both(peeking, *forked(seed))) for seed in range(6)]

    assert any(index is not None for index in found)


def test_a_policy_that_draws_lots_is_found():
    def lots():
        rng = np.random.default_rng()

        def policy(server):
            if rng.random() < 0.5:
                paged(server)
            elif server.running:
                for one in server.finished:
                    server.free(one)

        return policy

    load = drawn(3)
    assert decides_otherwise(*both(lots, load, load)) is not None


def test_it_opens_in_perfetto_with_a_row_for_each_request():
    run = replay(VirtualServer(MACHINE, drawn(4, count=5)).run(paged))
    events = run.timeline.to_chrome_trace()["traceEvents"]

    assert {f"request {number}" for number in range(5)} == set(run.timeline.rows)
    assert {"wait", "queue", "prefill", "decode"} >= {event["name"] for event in events if event["ph"] == "X"}
    assert json.dumps(events)


def test_what_never_ends_is_infinitely_late():
    run = replay(VirtualServer(SLOW, [(0.0, 4, 3)]).run(lambda server: None))

    assert (math.inf, math.inf, 1, 0.0) == (
        run.latency_s(0.5),
        run.time_to_first_token_s(1.0),
        run.unfinished,
        run.makespan_s,
    )
    assert run.stuck


@pytest.mark.parametrize("kind", ["poisson", "burst", "day"])
def test_arrivals_have_their_rate_and_are_in_order(kind):
    rng = np.random.default_rng(5)
    times = {
        "poisson": lambda: poisson_times(rng, count=4000, per_s=20.0),
        "burst": lambda: burst_times(rng, count=4000, per_s=20.0, burst=10),
        "day": lambda: day_times(rng, count=4000, per_s=20.0, swing=0.8, period_s=50.0),
    }[kind]()

    assert 20.0 == pytest.approx(4000 / times[-1], rel=0.1)
    assert sorted(times) == times


def test_a_day_is_quiet_first_and_busy_at_noon():
    times = day_times(np.random.default_rng(1), count=4000, per_s=80.0, swing=0.9, period_s=50.0)
    night, noon = (sum(low <= one < low + 5 for one in times) for low in (0, 22.5))

    assert 8 * night < noon


def test_bursts_come_closer_together_than_random_arrivals():
    rng = np.random.default_rng(6)
    gaps = np.diff(burst_times(rng, count=4000, per_s=20.0, burst=10))

    assert gaps.std() > 2 * gaps.mean()
