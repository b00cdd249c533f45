"""lab06's judges: what its draws hold, what partial answers are worth, and models that agree with the library's."""

from __future__ import annotations

import pytest

from edl_labs.errors import Wrong
from edl_labs.exercises.lab06_memory.failed_requests import ANSWERS
from edl_labs.exercises.lab06_memory.micro_batches import IGNORED, _differing_weight, _judge_losses
from edl_labs.exercises.lab06_memory.placed_stretches import tape_of_case
from edl_labs.numerics import checkpointed_peak
from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory import best_placement


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_every_end_of_a_request_is_asked_for(exercises, solution, seed):
    cases = exercises["fragments"].draw_cases(seed)
    found = [
        solution["why_oom"](
            case["segments"], case["request_bytes"], stream=case["stream"], free_bytes=case["free_bytes"]
        )[0]
        for case in cases
    ]

    assert set(ANSWERS) == set(found)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_segments_of_the_large_pool_are_such_as_the_driver_gives(exercises, seed):
    for case in exercises["fragments"].draw_cases(seed):
        sizes = [sum(block["bytes"] for block in one["blocks"]) for one in case["segments"] if one["pool"] == "large"]

        assert [] == [size for size in sizes if size < 10 << 20 or size % (2 << 20)]


@pytest.mark.slow  # torch's optimizers take seconds to import
def test_a_third_of_the_points_for_each_part_of_the_accumulation(judged):
    def of_equal_parts(model, batches, optimizer, *, window):
        """Right but for the mean of means."""
        losses = []
        for start in range(0, len(batches), window):
            part = batches[start : start + window]
            optimizer.zero_grad()
            total = 0.0
            for x, y in part:
                loss = cross_entropy(model(x), y) / len(part)
                loss.backward()
                total += loss.item()
            optimizer.step()
            losses.append(total)
        return losses

    from torch.nn.functional import cross_entropy

    assert 2 / 3 == pytest.approx(judged("mend_accumulation", train_accumulated=of_equal_parts).points, rel=1e-3)


@pytest.mark.parametrize("seed", [1, 2])
def test_the_best_segments_hold_what_the_library_counts(exercises, solution, seed):
    for case in exercises["best_segments"].draw_cases(seed):
        layers, saved = case["layers"], case["saved"]
        segments, held, _ = solution["best_segments"](layers, saved)
        counts = range(1, layers + 1)

        assert held == checkpointed_peak(layers, segments, saved_per_layer=saved)
        assert held == min(checkpointed_peak(layers, count, saved_per_layer=saved) for count in counts)


@pytest.mark.slow  # a second search through every placement
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_placements_take_the_librarys_least_time_where_every_layer_may_run_again(exercises, solution, seed):
    for case in exercises["place_checkpoints"].draw_cases(seed):
        stretches = solution["place"](case["layers"], case["budget_bytes"])
        again_s = sum(case["layers"][i]["forward_s"] for stretch in stretches for i in range(*stretch))
        try:
            best = best_placement(tape_of_case(case), case["budget_bytes"]).replay.recomputed_s
        except VirtualMemoryError:
            pytest.fail("a budget was drawn that nothing fits")

        assert again_s == pytest.approx(best) or (best < again_s and any(layer["once"] for layer in case["layers"]))


@pytest.mark.slow  # the library's own search, for every case
def test_the_librarys_placement_runs_again_what_may_run_only_once(exercises, solution):
    """What is asked for is not what `best_placement` gives: else a call of the library would be an answer."""
    cases = [case for seed in (1, 2, 3) for case in exercises["place_checkpoints"].draw_cases(seed)]
    again = [
        any(case["layers"][i]["once"] for stretch in _library(case) for i in range(*stretch))
        for case in cases
        if any(layer["once"] for layer in case["layers"])
    ]

    assert any(again)


def _library(case):
    return best_placement(tape_of_case(case), case["budget_bytes"]).recomputed


def test_the_peak_and_its_place_in_the_other_order_are_told(exercises, solution):
    (case, *_), spec = exercises["memory_timeline"].draw_cases(1), exercises["memory_timeline"].spec
    options = {name: case[name] for name in ("optimizer", "first", "set_to_none")}
    live = solution["timeline"](case["layers"], **options)
    want = {"live": live, "peak": list(solution["peak"](live))}

    with pytest.raises(Wrong, match="your function returned the peak's place first"):
        spec.compare(case, {"live": live, "peak": want["peak"][::-1]}, want)


def test_a_case_of_the_timeline_says_which_layers_are_in_place(exercises):
    for case in exercises["memory_timeline"].draw_cases(1):
        lines = exercises["memory_timeline"].spec.format_case(case).splitlines()[1:]

        assert [layer["inplace"] for layer in case["layers"]] == ["in place" in line for line in lines]


def test_a_weight_that_differs_is_named_by_its_place():
    right = [0.0] * 43
    for at, name in ((0, "first.weight[0, 0]"), (7, "first.weight[1, 3]"), (22, "first.bias[2]"), (42, "last.bias[2]")):
        got = [0.5 if i == at else 0.0 for i in range(43)]

        assert f"{name} is 0.5000 after it, but should be 0.0000" == _differing_weight(got, right)


@pytest.mark.parametrize(
    ("losses", "said"),
    [
        ([3.0, 5.0], "the mean of its last micro-batch"),
        ([2.0, 5.0], "its last micro-batch's contribution to it"),
        ([2.5, 5.0], "the mean of its micro-batches' means"),
        ([5.0, 5.0], "the sum of its micro-batches' means"),
        ([8.0, 10.0], "a sum that is not divided"),
        ([8.0, 8.0], ""),
    ],
)
def test_another_loss_that_is_reported_is_named(losses, said):
    """Windows of two: sums of 2 and 6 over one and two positions; then one micro-batch of 10 over two."""
    case = {"window": 2, "labels": [[1], [1, IGNORED, 1], [0, 0]]}

    with pytest.raises(Wrong) as caught:
        _judge_losses(case, {"losses": losses, "sums": [2.0, 6.0, 10.0]}, [8 / 3, 5.0])
    assert caught.value.what.endswith(f"is not its window's mean{said and ': it is '}{said}")
