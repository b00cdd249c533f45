"""What holds of every load under every policy: tokens and blocks are conserved, times add up, replays agree."""

from __future__ import annotations

import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl_labs.virtual.server import Arrival, ServerMachine, VirtualServer, decides_otherwise, replay, serve_batches
from tests.unit.virtual.server.test_replay_server import paged

GAPS = st.one_of(  # a flood, constant gaps, bursts, and gaps of any kind
    st.just([0.0] * 12),
    st.floats(1e-4, 2.0).map(lambda gap: [gap] * 12),
    st.floats(1e-3, 2.0).map(lambda gap: [gap if at % 4 == 0 else 0.0 for at in range(12)]),
    st.lists(st.floats(0.0, 0.5), min_size=1, max_size=12),
)
MACHINES = st.builds(
    ServerMachine,
    blocks=st.one_of(st.integers(1, 40), st.just(10**6)),
    block_tokens=st.sampled_from([1, 3, 16]),
    most_sequences=st.integers(1, 6),
    step_s=st.sampled_from([0.0, 1e-3]),
    sequence_s=st.sampled_from([0.0, 2e-5]),
    padded=st.booleans(),
)


@st.composite
def loads(draw):
    now, found = 0.0, []
    for gap in draw(GAPS):
        now += gap
        found.append(Arrival(round(now, 6), draw(st.integers(1, 60)), draw(st.integers(1, 20))))
    return found


def _at_random(seed):
    """A policy of any allowed decisions; what it forgets in one call it may do in the next."""
    drawn = random.Random(seed)

    def policy(server):
        for one in server.finished:
            server.free(one)
        for one in server.running:
            if drawn.random() < 0.1:
                server.preempt(one)
            elif 0 < one.needs <= server.free_blocks and drawn.random() < 0.8:
                server.allocate(one, one.needs)
        for one in drawn.sample(server.waiting, len(server.waiting)):
            if len(server.running) < server.machine.most_sequences and one.needs <= server.free_blocks:
                if one.needs:
                    server.allocate(one, one.needs)
                server.admit(one)

    return policy


@settings(max_examples=80, deadline=None)
@given(MACHINES, loads(), st.integers(0, 10**6))
def test_tokens_blocks_and_times_are_conserved_under_any_decisions(machine, load, seed):
    server = VirtualServer(machine, load).run(_at_random(seed))
    run = replay(server)

    held = {one.number for one in (*server.running, *server.waiting) if one.blocks}
    assert machine.blocks == server.free_blocks + sum(one.blocks for one in (*server.running, *server.waiting))
    assert all(0 <= one.held <= machine.blocks and one.running <= machine.most_sequences for one in run.moments)
    assert all(one.tokens <= one.held * machine.block_tokens for one in run.moments)
    assert all((one.finish_s is not None) == (one.generated_tokens == one.output_tokens) for one in run.requests)
    assert run.stuck or (0, set()) == (run.unfinished, held)
    assert sum(one.generated_tokens for one in run.requests) == sum(one.running - one.stalled for one in run.moments)
    assert all(0 <= one.stalled < one.running for one in run.moments)
    assert run.busy_s <= run.makespan_s + 1e-9


@settings(max_examples=60, deadline=None)
@given(MACHINES, loads(), st.integers(0, 10**6))
def test_replays_and_loads_that_part_late_agree_with_what_was_recorded(machine, load, seed):
    server = VirtualServer(machine, load).run(paged)
    run = replay(server)
    longer = [*load[:-1], Arrival(load[-1].arrival_s, load[-1].prompt_tokens, load[-1].output_tokens + 3)]

    assert server.program == list(run.program)
    assert server.engine.now == VirtualServer(machine, load).run(paged).engine.now
    assert decides_otherwise(run, replay(VirtualServer(machine, longer).run(paged))) is None


@settings(max_examples=60, deadline=None)
@given(MACHINES.map(lambda one: one.replace(blocks=10**6)), loads())
def test_the_mean_number_of_requests_is_their_rate_times_their_mean_time(machine, load):
    """Little's law: the time that all spend in a queue, a prompt or a token is their number times the mean latency."""
    run = replay(VirtualServer(machine, load).run(paged))
    inside_s = sum(span.end_s - span.start_s for span in run.timeline.spans)

    assert 0 == run.unfinished
    assert inside_s == pytest.approx(sum(one.latency_s for one in run.requests), abs=1e-9)


@settings(max_examples=60, deadline=None)
@given(MACHINES.map(lambda one: one.replace(blocks=10**6)), loads(), st.integers(0, 10**6))
def test_batches_serve_each_request_once(machine, load, seed):
    drawn = random.Random(seed)
    single = [Arrival(one.arrival_s, one.prompt_tokens) for one in load]

    def some(now_s, queue):
        size = drawn.randint(1, machine.most_sequences)
        return [one.number for one in drawn.sample(queue, min(size, len(queue)))]

    server = serve_batches(VirtualServer(machine, single), some)
    admitted = Counter(entry["request"] for entry in server.program if entry["op"] == "admit")

    assert dict.fromkeys(range(len(load)), 1) == admitted
    assert (0, machine.blocks) == (replay(server).unfinished, server.free_blocks)


@pytest.mark.parametrize(("prompt", "answer"), [(17, 1), (16, 2), (1, 17)])
def test_a_request_longer_than_the_pool_waits_for_ever_and_the_server_says_so(prompt, answer):
    server = VirtualServer(ServerMachine(blocks=1), [(0.0, prompt, answer), (0.1, 1, 1)]).run(paged)
    run = replay(server)

    assert run.stuck
    assert run.requests[0].finish_s is None
    assert 1 == server.free_blocks


def test_one_block_serves_one_token_after_the_other():
    run = replay(VirtualServer(ServerMachine(blocks=1, step_s=1e-3), [(0.0, 1, 1)] * 5).run(paged))

    assert (0, 5, 1.0) == (run.unfinished, run.steps, run.mean_batch)
