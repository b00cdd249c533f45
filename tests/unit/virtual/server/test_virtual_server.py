"""VirtualServer: steps priced by hand, blocks, preemption, waiting, what a policy sees, and what is refused."""

from __future__ import annotations

import pytest

from edl_labs.virtual.errors import VirtualServerError
from edl_labs.virtual.server import (
    Arrival,
    DecoderShape,
    ServerMachine,
    StepWork,
    VirtualServer,
    percentile,
    replay,
    serve_batches,
    server_machine,
)

# A step takes a second for its weights and a second for each cached token that it reads: hand arithmetic.
TOY = DecoderShape("toy", layers=1, heads=2, kv_heads=1, head_size=1, parameters=2, number_bytes=1)
SLOW = ServerMachine(shape=TOY, flop_per_s=1e9, memory_byte_per_s=2.0, blocks=6, block_tokens=4)


def admit_all(server):
    """Every request its blocks, first come first served, and nobody is taken out."""
    for one in server.finished:
        server.free(one)
    for one in server.running:
        if 0 < one.needs <= server.free_blocks:
            server.allocate(one, one.needs)
    for one in server.waiting:
        if one.needs > server.free_blocks or len(server.running) == server.machine.most_sequences:
            break
        server.allocate(one, one.needs)
        server.admit(one)


def test_a_token_keeps_512_kib_and_4096_of_them_2_gib():
    shape = DecoderShape("7B", layers=32, heads=32, kv_heads=32, head_size=128, parameters=6_738_000_000)

    assert 512 * 2**10 == shape.kv_token_bytes
    assert 2 * 2**30 == 4096 * shape.kv_token_bytes


def test_a_step_reads_weights_once_and_the_cache_of_each_sequence():
    assert (2, 2) == (TOY.weight_bytes, TOY.kv_token_bytes)
    assert pytest.approx(1.0 + 3 + 5, rel=1e-6) == SLOW.work_s(StepWork((), (3, 5)))
    assert pytest.approx(1.0 + 3, rel=1e-6) == SLOW.work_s(StepWork((3,), ()))


def test_a_prompt_computes_and_looks_back_at_itself():
    computing = SLOW.replace(flop_per_s=1.0, memory_byte_per_s=1e9)

    # 3 tokens of 2 x 2 FLOP, and 1 + 2 + 3 looks of 4 x 2 heads.
    assert 12 + 6 * 8 == computing.work_s(StepWork((3,), ()))
    assert 4 + 5 * 8 == computing.work_s(StepWork((), (5,)))


def test_padded_prompts_are_as_long_as_the_longest():
    padded = SLOW.replace(padded=True)

    assert padded.batch_s([4, 4]) == padded.batch_s([1, 4]) > SLOW.batch_s([1, 4])


def test_overheads_are_added_to_the_roof():
    taxed = SLOW.replace(step_s=0.5, sequence_s=0.25)

    assert pytest.approx(SLOW.work_s(StepWork((3,), (2, 2))) + 0.5 + 3 * 0.25) == taxed.work_s(StepWork((3,), (2, 2)))


def test_two_requests_by_hand():
    """A prompt of 3 takes 4 s; the second comes meanwhile, and runs from the second step on."""
    server = VirtualServer(SLOW, [(0.0, 3, 3), (1.0, 2, 1)]).run(admit_all)
    run = replay(server)

    # Step 1: weights, 3 written. Step 2: weights, 2 written, 4 read. Step 3: weights, 5 read.
    assert pytest.approx([4.0, 4.0 + 7.0 - 1.0]) == [one.time_to_first_token_s for one in run.requests]
    assert pytest.approx(4.0 + 7.0 + 6.0) == run.makespan_s
    assert pytest.approx((13.0 / 2, 7.0)) == (run.requests[0].inter_token_s, run.requests[0].longest_gap_s)
    assert (3, 0, 0, False) == (run.steps, run.unfinished, run.leaked_blocks, run.stuck)
    assert pytest.approx(2 / 17) == run.goodput_per_s()
    assert pytest.approx(1 / 17) == run.goodput_per_s(first_token_s=5.0)


def test_a_running_request_without_its_block_stands_still_and_goes_on_when_it_has_one():
    server = VirtualServer(SLOW, [(0.0, 4, 3)])
    server.allocate(0, 1)
    server.admit(0)
    server.step()
    (one,) = server.running
    assert (4, 1, 1) == (one.cached_tokens, one.generated_tokens, one.needs)
    server.step()

    assert not server.is_open  # nobody comes who could change anything
    assert replay(server).stuck


def test_a_preempted_request_gives_its_blocks_back_and_computes_again_what_it_had():
    server = VirtualServer(SLOW, [(0.0, 4, 3)])
    server.allocate(0, 2)
    server.admit(0)
    server.step()
    server.step()
    server.preempt(0)
    (one,) = server.waiting

    assert (6, 2, 0, 0, 2) == (server.free_blocks, one.generated_tokens, one.cached_tokens, one.blocks, one.needs)
    server.allocate(0, one.needs)
    server.admit(0)
    server.step()
    run = replay(server)
    assert (1, 5, 0) == (run.requests[0].preemptions, run.recomputed_tokens, run.unfinished)
    assert pytest.approx(5.0 + 6.0 + 7.0) == run.makespan_s  # the third step writes 6 tokens anew


def test_who_was_preempted_waits_in_the_order_of_arrival():
    server = VirtualServer(SLOW, [(0.0, 1, 9), (0.0, 1, 9), (0.0, 1, 9)])
    for number in (0, 1):
        server.allocate(number, 1)
        server.admit(number)
    server.preempt(0)

    assert [0, 2] == [one.number for one in server.waiting]


def test_waiting_ends_with_the_next_arrival_or_at_a_time():
    server = VirtualServer(SLOW, [(5.0, 1, 1)])
    server.wait(2.0)
    assert 2.0 == server.now_s
    server.wait(9.0)
    assert 5.0 == server.now_s
    server.wait(0.1 + 0.2 + 4.8)

    assert server.now_s >= 5.1


def test_a_policy_sees_nothing_of_what_comes_and_no_length_of_an_answer():
    server = VirtualServer(SLOW, [(0.0, 1, 7), (9.0, 1, 1)])

    assert [0] == [one.number for one in server.waiting]
    assert not any("output" in name for name in server.waiting[0]._fields)
    with pytest.raises(VirtualServerError, match="not a request that has arrived"):
        server.admit(1)


@pytest.mark.parametrize(
    ("calls", "said"),
    [
        ([("free", 0)], "cannot be freed"),
        ([("allocate", 0, 7)], "cannot allocate 7 blocks for request 0: only 6 are free"),
        ([("allocate", 0, 0)], "0 blocks for request 0"),
        ([("preempt", 0)], "preempt request 0, which is waiting"),
        ([("admit", 0), ("admit", 0)], "admit request 0, which is running"),
        ([("admit", 0), ("admit", 1)], "cannot admit request 1: the batch is full"),
        ([("admit", 0), ("free", 0)], "the request is running and reads them"),
        ([("step",)], "no request is running"),
        ([("wait", 0.0)], "wait until 0 s"),
        ([("wait", float("nan"))], "until_s is nan"),
        ([("admit", "0")], "is not a request that has arrived"),
        ([("admit", True)], "is not a request that has arrived"),
    ],
)
def test_what_no_server_could_do_is_refused(calls, said):
    server = VirtualServer(SLOW.replace(most_sequences=1), [(0.0, 1, 1), (0.0, 1, 1), (50.0, 1, 1)])

    def call_all():
        for name, *arguments in calls:
            getattr(server, name)(*arguments)

    with pytest.raises(VirtualServerError, match=said):
        call_all()


def test_batches_for_one_answer_wait_where_they_are_told_to():
    load = [(0.0, 1), (3.0, 1), (3.5, 1)]
    due = serve_batches(
        VirtualServer(SLOW, load), lambda now, queue: [one.number for one in queue] if now >= 3 else 3.2
    )
    never = serve_batches(VirtualServer(SLOW, load), lambda now, queue: [])

    assert [2, 1] == [entry.count("admit") for entry in _by_step(due)]
    assert replay(never).stuck
    assert 3 == replay(never).unfinished


@pytest.mark.parametrize(
    ("numbers", "said"), [([5], "returned 5, but no waiting request has this number"), ([1, 1], "returned 1 twice")]
)
def test_batches_of_requests_that_do_not_wait_are_refused(numbers, said):
    with pytest.raises(VirtualServerError, match=said) as raised:
        serve_batches(VirtualServer(SLOW, [(0.0, 1), (0.0, 1)]), lambda now, queue: numbers)

    assert "queue[0].number is 0" in str(raised.value)


def test_a_moment_counts_who_ran_and_who_stood_still_in_its_step():
    server = VirtualServer(SLOW, [(0.0, 1, 1), (0.0, 4, 2)])
    for number in (0, 1):
        server.admit(number)
    server.allocate(0, 1)
    server.step()
    server.allocate(1, 2)
    server.step()

    assert [(2, 1), (1, 0)] == [(one.running, one.stalled) for one in server.engine.moments]


def _by_step(server):
    found = [[]]
    for entry in server.program:
        found[-1].append(entry["op"])
        if entry["op"] == "step":
            found.append([])
    return [ops for ops in found if "step" in ops]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"blocks": 0}, "blocks is 0"),
        ({"flop_per_s": float("inf")}, "flop_per_s is inf"),
        ({"padded": 1}, "padded is 1"),
        ({"speed": 2}, "not the parameters of a server"),
        ({"shape": {"heads": 3, "kv_heads": 2}}, "3 heads cannot share 2"),
    ],
)
def test_machines_that_cannot_be_are_refused(parameters, said):
    with pytest.raises(VirtualServerError, match=said):
        server_machine(SLOW.to_dict(), **parameters)


def test_a_machine_reads_back_from_plain_data():
    assert SLOW == server_machine(SLOW.to_dict())


def test_weights_that_fill_the_memory_leave_no_server():
    with pytest.raises(VirtualServerError, match="leaves no room"):
        ServerMachine.of("V100-16GB", DecoderShape("9B", parameters=9_000_000_000))


@pytest.mark.parametrize(
    ("load", "said"),
    [
        ([(1.0, 1, 1), (0.5, 1, 1)], "ordered by their time of arrival"),
        ([(0.0, 0, 1)], "1 to 1,000,000 tokens"),
        ([(float("nan"), 1, 1)], "a number of seconds"),
        ([5], "arrival_s, prompt_tokens, output_tokens"),
        ([(0.0, 1, 5000)], "the longest answer has 5,000 tokens"),
    ],
)
def test_loads_that_cannot_be_are_refused(load, said):
    with pytest.raises(VirtualServerError, match=said):
        VirtualServer(SLOW, load)


def test_a_policy_that_goes_round_in_circles_is_stopped(monkeypatch):
    monkeypatch.setattr("edl_labs.virtual.server.virtual_server.MAX_REPLAYED", 100)
    server = VirtualServer(SLOW, [Arrival(0.0, 1, 9)])

    def circle():
        for _ in range(99):
            server.admit(0)
            server.preempt(0)

    with pytest.raises(VirtualServerError, match="more than 100 decisions"):
        circle()


@pytest.mark.parametrize(("share", "wanted"), [(0.5, 3), (0.6, 3), (0.61, 4), (0.99, 5), (1.0, 5), (0.0, 1)])
def test_percentiles_are_nearest_ranks(share, wanted):
    assert wanted == percentile([5, 1, 4, 2, 3], share)


def test_a_wait_that_floats_put_at_now_ends_a_hair_later_and_is_refused_when_asked_again():
    server = VirtualServer(ServerMachine(blocks=4), [(0.1, 16, 1), (0.3, 16, 1)])
    server.wait()
    server.wait(0.2)

    server.wait(0.2)
    assert 0.2 < server.now_s < 0.2 + 2e-9
    with pytest.raises(VirtualServerError, match="already"):
        server.wait(0.2)


def test_a_deadline_compared_by_differences_is_kept_too():
    """`now - arrival < limit` may hold at the float `arrival + limit`."""
    loads = [[(round(2 + 0.013 * one + at / 1e6, 6), 64, 1) for at in range(3)] for one in range(200)]

    def policy(now_s, queue):
        first_s = queue[0].arrival_s
        return first_s + 0.02 if now_s - first_s < 0.02 else [one.number for one in queue]

    for load in loads:
        server = VirtualServer(ServerMachine(blocks=100), load)
        serve_batches(server, policy)
        assert replay(server).unfinished == 0
