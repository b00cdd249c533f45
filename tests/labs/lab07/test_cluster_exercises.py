"""lab07's judges: what their draws hold, and answers by hand that are right in another way."""

from __future__ import annotations

from collections import Counter

import pytest

from edl_labs.exercises.lab07_many_gpus.hang_slips import ABSENT, ANSWERS
from edl_labs.virtual.cluster import ClusterMachine, CollectiveCosts


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rings_of_every_kind_are_drawn(exercises, seed):
    cases = exercises["ring"].draw_cases(seed)
    sizes = [(case["ranks"], case["numel"]) for case in cases]

    assert {0, 1} <= {ranks % 2 for ranks, _ in sizes}
    assert any(numel > ranks and numel % ranks for ranks, numel in sizes)
    assert any(numel < ranks for ranks, numel in sizes)
    assert 1 in dict(sizes)
    # torch.chunk would give fewer pieces than ranks, though there are enough elements
    assert any(-(-numel // -(-numel // ranks)) < ranks < numel for ranks, numel in sizes)


def test_another_way_that_is_as_fast_is_right(judged):
    """Every chunk goes straight to its owner, and straight back to everyone: in a ring's time and bytes."""

    def straight(dist, buffer):
        rank, count = dist.get_rank(), dist.get_world_size()
        bounds = [at * len(buffer) // count for at in range(count + 1)]
        for adds in (True, False):
            for step in range(1, count):
                to, source = (rank + step) % count, (rank - step) % count
                out, into = (to, rank) if adds else (rank, source)
                work = None
                if bounds[out + 1] > bounds[out]:
                    work = dist.isend(buffer[bounds[out] : bounds[out + 1]], to)
                if bounds[into + 1] > bounds[into]:
                    arrived = dist.empty(bounds[into + 1] - bounds[into], dtype=buffer.dtype)
                    dist.recv(arrived, source)
                    (dist.add if adds else dist.copy)(buffer[bounds[into] : bounds[into + 1]], arrived)
                if work is not None:
                    work.wait()

    assert 1.0 == judged("ring", all_reduce=straight).points


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_algorithm_is_always_the_cheapest(exercises, solution, seed):
    cases = exercises["pick_collective"].draw_cases(seed)
    picked = {solution["pick"](case) for case in cases if case["nodes"] > 1 and case["ranks_per_node"] > 1}
    flat = {solution["pick"](case) for case in cases if case["nodes"] == 1}

    assert "hierarchical" in picked
    assert len(picked | flat) >= 3


def test_prices_are_the_librarys_where_sums_are_free(solution):
    for count in (2, 6, 8, 16):
        link = {"alpha_s": 20e-6, "byte_per_s": 6e9}
        job = {"nodes": 1, "ranks_per_node": count, "message_bytes": 10**6, "inside": link, "between": link}
        for name in ("ring", "tree", "halving-doubling"):
            price = solution["price"](name, {**job, "sum_byte_per_s": 1e40})
            plans = CollectiveCosts(ClusterMachine.flat(count, **link)).plans("all_reduce", tuple(range(count)))

            assert price == pytest.approx(plans[name].seconds(10**6))


@pytest.mark.parametrize("nodes", [2, 3, 4, 8])
def test_prices_on_several_nodes_are_the_librarys_where_sums_are_free(solution, nodes):
    machine = ClusterMachine.of("8xH100", nodes=nodes)
    inside, between = ({"alpha_s": one.alpha_s, "byte_per_s": one.byte_per_s} for one in machine.levels)
    job = {"nodes": nodes, "ranks_per_node": 8, "inside": inside, "between": between, "sum_byte_per_s": 1e40}
    plans = CollectiveCosts(machine).plans("all_reduce", tuple(range(8 * nodes)))
    for size in (1e3, 1e6, 1e8, 1e9):
        for name, plan in plans.items():
            assert plan.seconds(size) == pytest.approx(solution["price"](name, {**job, "message_bytes": size}))


@pytest.mark.parametrize("size", [1e3, 1e6, 1e8, 1e9])
def test_between_two_nodes_halving_doubling_is_the_fastest_at_every_size(solution, size):
    machine = ClusterMachine.of("8xH100", nodes=2)
    inside, between = ({"alpha_s": one.alpha_s, "byte_per_s": one.byte_per_s} for one in machine.levels)
    job = {"nodes": 2, "ranks_per_node": 8, "inside": inside, "between": between, "sum_byte_per_s": 1e12}
    job["message_bytes"] = size
    least = solution["price"]("halving-doubling", job)

    assert "halving-doubling" == solution["pick"](job)
    assert size < 1e8 or solution["price"]("hierarchical", job) < 1.04 * least


@pytest.mark.slow  # the solution's groups and three caps, each replayed
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_fixed_cap_is_enough(exercises, solution, judged, seed):
    """For each cap some case wants other groups: `bucket_cap_mb` is no answer."""

    def capped(layers, link, *, cap):
        groups, size = [[]], 0
        for number in reversed(range(len(layers))):
            if size >= cap:
                groups.append([])
                size = 0
            groups[-1].append(number)
            size += layers[number]["gradient_bytes"]
        return groups

    for cap in (4e6, 10e6, 25e6):
        outcome = judged("buckets", seed=seed, plan_buckets=lambda layers, link, cap=cap: capped(layers, link, cap=cap))

        assert outcome.points == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_each_reason_to_hang_is_asked_for_four_times_and_absent_ranks_once_more_in_two_groups(
    exercises, solution, seed
):
    cases = exercises["who_hangs"].draw_cases(seed)
    found = [solution["who_hangs"](case["groups"], case["ranks"]) for case in cases]

    expected = Counter({answer: 4 + (answer in ABSENT) for answer in ANSWERS})
    assert expected == Counter(answer for answer, _ in found)
    assert len({rank for _, rank in found}) > 3


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fits_find_the_link_that_the_table_was_drawn_from(exercises, solution, seed):
    for case in exercises["fit_a_link"].draw_cases(seed):
        alpha_s, rate, half_bytes = solution["fit"](case["sizes"], case["took_s"])
        off = [took / (alpha_s + size / rate) for size, took in zip(case["sizes"], case["took_s"], strict=True)]

        assert max(abs(one - 1) for one in off) < 0.05  # 2 % of noise, and what it does to the fit
        assert half_bytes == pytest.approx(alpha_s * rate)


def test_a_rate_that_is_no_number_is_wrong(judged):
    nothing = float("nan")

    assert judged("fit_a_link", fit=lambda sizes, took_s: (nothing, nothing, nothing)).points == 0
    assert judged("fit_a_link", bus_rate=lambda ranks, size, took_s: nothing).points == 0


def test_windows_of_every_kind_accumulate(exercises):
    cases = exercises["no_sync"].draw_cases(1)
    left = [len(case["tokens"][0]) % case["window"] for case in cases]

    assert 0 in left
    assert any(0 < rest < case["window"] for rest, case in zip(left, cases, strict=True))
    assert any(case["window"] == 1 for case in cases)
    assert any(case["window"] > len(case["tokens"][0]) for case in cases)


def trained(ddp, batches, window, *, last_loss, end):
    """Windows as the lab asks for them, but for the last loss of each, `last_loss(loss, total)`, and its end."""
    for start in range(0, len(batches), window):
        part = batches[start : start + window]
        total = sum(batch["tokens_everywhere"] for batch in part)
        for batch in part[:-1]:
            with ddp.no_sync():
                (ddp.world_size * ddp(batch) / total).backward()
        last_loss(ddp(part[-1]), total).backward()
        for call in end:
            getattr(ddp, call)()


def test_scaling_inside_and_out_is_the_same(judged):
    """The factor may stand on either side of the loss, and dividing twice is dividing by the product."""

    def train(ddp, batches, window):
        trained(
            ddp,
            batches,
            window,
            last_loss=lambda loss, total: loss / (total / ddp.world_size),
            end=("step", "zero_grad"),
        )

    assert judged("no_sync", train=train).points == 1


def test_a_step_whose_gradients_were_cleared_before_it_is_told_so(judged):
    def train(ddp, batches, window):
        trained(
            ddp,
            batches,
            window,
            last_loss=lambda loss, total: ddp.world_size * loss / total,
            end=("zero_grad", "step"),
        )

    outcome = judged("no_sync", train=train)

    assert ("wrong", "in your loop, a step has no gradients") == (outcome.state, outcome.what)
