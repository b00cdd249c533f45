"""lab09b's cache, rooflines and policies: against full attention, against the library, by hand, and on drawn loads."""

from __future__ import annotations

import math

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab09b_serving import cached_attention, served_loads
from edl_labs.exercises.lab09b_serving.judge import drawn_paged_loads
from edl_labs.exercises.lab09b_serving.sequence_counts import judge_fits
from edl_labs.virtual.server import Arrival, DecoderShape, ServerMachine, StepWork, VirtualServer, replay

SHAPE = {"parameters": 6_738_000_000, "layers": 32, "heads": 32, "kv_heads": 8, "head_size": 128, "number_bytes": 2}


@pytest.mark.parametrize(("heads", "kv_heads", "lengths"), [(4, 2, [3, 5]), (4, 4, [1, 2]), (6, 1, [7, 7, 2])])
def test_decoding_over_a_cache_is_attention_over_the_whole_text(solution, heads, kv_heads, lengths):
    """torch's own causal attention, of each row alone, over all of its tokens at once."""
    import torch

    drawn, rows, size, steps = torch.Generator().manual_seed(3), len(lengths), 8, 3
    longest = max(lengths) + steps
    q, k, v = (torch.randn(rows, n, longest, size, generator=drawn).double() for n in (heads, kv_heads, kv_heads))
    rotate, places = solution["rotate"], torch.arange(longest)

    def turned(x):
        return torch.stack([rotate(x[:, :, at], places[at].expand(rows)) for at in range(longest)], dim=2)

    every = torch.nn.functional.scaled_dot_product_attention(turned(q), turned(k), v, is_causal=True, enable_gqa=True)
    cache = {"k": turned(k).clone(), "v": v.clone(), "lengths": torch.tensor(lengths)}
    for row, length in enumerate(lengths):
        cache["k"][row, :, length:], cache["v"][row, :, length:] = 99.0, 99.0
    for step in range(steps):
        at = [length + step for length in lengths]
        new = [torch.stack([x[row, :, place] for row, place in enumerate(at)]) for x in (q, k, v)]
        wanted = torch.stack([every[row, :, place] for row, place in enumerate(at)])
        torch.testing.assert_close(solution["decode"](cache, *new), wanted)


def test_the_lab_rotates_as_the_exercise_does(solution):
    import torch

    x = torch.randn(5, 2, 6, dtype=torch.float64)
    whole = cached_attention._rotated(x.transpose(0, 1), torch.arange(5)).transpose(0, 1)

    torch.testing.assert_close(solution["rotate"](x, torch.arange(5)), whole)


def test_a_token_keeps_what_the_library_says(solution):
    shape = DecoderShape(**SHAPE)
    chip = {"memory_bytes": 80e9}

    assert (80e9 - shape.weight_bytes) // (100 * shape.kv_token_bytes) == solution["fits"](chip, SHAPE, 100)


MISCOUNTS = {
    "your function counts every number with 2 bytes": {"number_bytes": 2},
    "your function does not subtract the weights": {"parameters": 0},
    "your function counts the cache of only one layer": {"layers": 1},
}


@pytest.mark.parametrize("told", MISCOUNTS)
def test_a_miscount_of_sequences_is_told_by_its_own_rule_whatever_is_drawn(exercises, solution, told):
    for seed in range(60):  # one in ten had no room for weights of two bytes, until draws saw to it
        for case in exercises["kv_cache"].draw_cases(seed):
            chip, model, tokens = case["chip"], case["model"], case["tokens"]
            found, right = (solution["fits"](chip, shape, tokens) for shape in ({**model, **MISCOUNTS[told]}, model))
            if found != right:
                with pytest.raises(Wrong, match=told):
                    judge_fits(case, found, right)


@pytest.mark.parametrize("context", [1, 300, 5000])
def test_steps_take_what_the_virtual_server_says(solution, context):
    chip = {"flop_per_s": 312e12, "memory_byte_per_s": 2.039e12}
    machine = ServerMachine(shape=DecoderShape(**SHAPE), **chip)

    assert machine.work_s(StepWork((context,), ())) == pytest.approx(solution["prefill_s"](chip, SHAPE, context))
    assert machine.work_s(StepWork((), (context,) * 7)) == pytest.approx(solution["decode_s"](chip, SHAPE, 7, context))


@pytest.mark.parametrize("context", [1, 50, 300, 600])
def test_the_batch_at_the_ridge_is_the_first_that_computes_as_long_as_it_reads(solution, context):
    chip, never = {"flop_per_s": 312e12, "memory_byte_per_s": 2.039e12}, 1e30
    batch = solution["ridge_batch"](chip, SHAPE, context)

    def computes(size):
        alone = [solution["decode_s"]({**chip, name: never}, SHAPE, size, context) for name in chip]
        return alone[1] >= alone[0]

    assert computes(batch)
    assert not computes(batch - 1)


def test_servers_by_hand(solution):
    runs = [
        {"per_s": load, "latencies_s": [0.1] * (200 - late) + [9.0] * late}
        for load, late in ((10, 0), (20, 2), (30, 3))
    ]

    assert 5 == solution["servers_for"](100.0, 1.0, runs)
    assert 6 == solution["servers_for"](100.1, 1.0, runs)


@pytest.mark.parametrize("seed", [1, 2])
def test_policies_keep_their_limits_on_loads_of_other_shapes(solution, seed):
    """Arrivals and pools that no exercise draws: a day's swing, a flood at once, a pool of few blocks."""
    import numpy as np

    from edl_labs.virtual.server import arrivals_of, day_times, drawn_lengths

    rng = np.random.default_rng(seed)
    machine = ServerMachine.of("A100-80GB", DecoderShape(), blocks=80, block_tokens=8, most_sequences=7, step_s=1e-3)
    prompts = drawn_lengths(rng, count=30, median=80, spread=0.5, most=300)
    answers = drawn_lengths(rng, count=30, median=40, spread=0.8, most=200)
    for times in ([0.0] * 30, day_times(rng, count=30, per_s=10.0, swing=0.9, period_s=2.0)):
        run = replay(VirtualServer(machine, arrivals_of(times, prompts, answers)).run(solution["schedule"]))
        assert (0, 0, False) == (run.unfinished, run.leaked_blocks, run.stuck)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pools_are_too_small_for_all_and_hold_each_alone(exercises, seed):
    for case in exercises["continuous"].draw_cases(seed):
        machine = served_loads.machine_of(case)
        for future in ("load", "fork"):
            needed = [machine.blocks_for(one[1] + one[2]) for one in case[future]]
            assert max(needed) <= machine.blocks < sum(needed)
            assert len(case[future]) in (drawn_paged_loads._COUNT, drawn_paged_loads._FEW)


@pytest.mark.slow
@pytest.mark.parametrize("form", [lambda ids: (n for n in ids), tuple, lambda ids: __import__("numpy").array(ids)])
def test_batches_come_in_other_forms_too(solution, judged, form):
    def next_batch(now_s, queue, service, limit_s):
        return form(solution["next_batch"](now_s, queue, service, limit_s))

    assert 1 == judged("batcher", next_batch=next_batch).points


def test_a_policy_that_keeps_notes_between_loads_is_told(solution, judged):
    seen = []

    def schedule(server):
        seen.append(server.now_s)
        if len(seen) % 97:
            solution["schedule"](server)

    outcome = judged("continuous", schedule=schedule)

    assert (0, served_loads.FORESEES) == (outcome.points, outcome.what)


def test_a_request_that_never_fits_is_told_as_waiting():
    server = VirtualServer(ServerMachine(blocks=1), [Arrival(0.0, 100, 1)])
    run = replay(server.run(lambda one: None))

    assert (1, True) == (run.unfinished, run.stuck)
    assert math.isinf(run.latency_s(1.0))
