"""Sums, loops, training, budgets and shapes: right answers in other forms, and mistakes beyond the known ones."""

from __future__ import annotations

import itertools
import math
from collections import deque
from random import Random

import numpy as np
import pytest

from edl_labs.exercises.lab03_mixed_precision import train_it
from edl_labs.exercises.lab03_mixed_precision.bug_hunt import most_rounded, rounded_gradients
from edl_labs.exercises.lab03_mixed_precision.judge.scripted_training import trained_static
from tests.sampling import few


def pairs(values):
    while len(values) > 1:
        values = [sum(values[i : i + 2]) for i in range(0, len(values), 2)]
    return values[0]


def halves(values):
    middle = len(values) // 2
    return halves(values[:middle]) + halves(values[middle:]) if middle else values[0]


def kahan_from_zero(values):
    total, lost = 0.0, 0.0
    for value in values:
        owed = value - lost
        new = total + owed
        lost = (new - total) - owed
        total = new
    return total


def kahan_with_the_other_sign(values):
    total, missing = 0, 0
    for value in values:
        owed = value + missing
        new = total + owed
        missing = owed - (new - total)
        total = new
    return total


@pytest.mark.parametrize("right", few([kahan_from_zero, kahan_with_the_other_sign], quick=1))
def test_the_notebooks_numbers_know_a_plain_zero_as_the_checks_do(judged, solution, right):
    from edl_labs.numerics import BF16

    assert "passed" == judged("accumulate_sum", sum_low=right).state
    assert 10 == pytest.approx(float(right([solution["Low"](0.01, BF16)] * 1000)), rel=0.01)


@pytest.mark.parametrize("right", [pairs, halves, kahan_with_the_other_sign])
@pytest.mark.parametrize("seed", few(range(1, 4), quick=1))
def test_sums_whose_parts_stay_as_small_as_what_is_added_are_right(judged, right, seed):
    assert "passed" == judged("accumulate_sum", seed=seed, sum_low=right).state


@pytest.mark.parametrize("size", [24, 32, 40, 48])
@pytest.mark.parametrize("seed", few(range(1, 4), quick=1))
def test_two_levels_of_sums_are_too_few_where_all_roundings_go_one_way(judged, size, seed):
    def two_levels(values):
        return sum(sum(values[i : i + size]) for i in range(0, len(values), size))

    assert "your partial sums still grow too large" == judged("accumulate_sum", seed=seed, sum_low=two_levels).what


def test_every_value_enters_the_sum_once(judged):
    def one_for_another(values):
        return pairs([*values[1:], values[1]])

    assert (
        "your sum does not contain every value exactly once" == judged("accumulate_sum", sum_low=one_for_another).what
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (lambda values: values[0], "most values are missing from your sum"),
        (lambda values: pairs(values[::2]), "some of the values never enter your sum"),
        (lambda values: float(pairs(values)), "your sum is not a number of the short format"),
        (lambda values: pairs([*values, values[0] * 2]), "your code raised TypeError"),
        (lambda values: values[0] + 5.0, "your code raised TypeError"),
    ],
)
def test_sums_that_are_none_are_told_so(judged, wrong, told):
    assert told in judged("accumulate_sum", sum_low=wrong).what


def test_a_number_of_an_earlier_call_is_no_sum(judged):
    kept = []

    def first_for_ever(values):
        kept.append(pairs(values))
        return kept[0]

    assert "your sum is not a number of the short format" == judged("accumulate_sum", sum_low=first_for_ever).what


def test_a_forged_record_is_refused(exercises):
    exercise = exercises["accumulate_sum"]
    case = exercise.draw_cases(1)[0]
    forged = {"operations": [0], "left": [0], "right": [10**6], "result": 0}

    with pytest.raises(Exception, match="record of the operations"):
        exercise.spec.compare(case, forged, None)


def test_goldens_do_not_hold_the_record(exercises):
    exercise = exercises["accumulate_sum"]

    assert None is exercise.spec.public_want({}, {"operations": [0]})


@pytest.mark.parametrize("loop", ["clipped", "logged", "accumulated", "scheduled", "static"])
def test_each_faulty_loop_costs_its_fifth(judged, solution, loop):
    outcome = judged("bug_hunt", **{f"train_{loop}": solution[f"faulty_{loop}"]})

    assert 0.8 == outcome.points
    assert outcome.what.startswith((f"train_{loop} still", "your code raised"))


def test_loops_that_are_not_written_yet_cost_only_themselves(judged):
    def unwritten(*given, **named):
        raise NotImplementedError

    outcome = judged("bug_hunt", train_logged=unwritten, train_static=unwritten)

    assert (0.6, "train_logged is not written yet") == (outcome.points, outcome.what)


def test_no_loop_written_is_not_attempted(judged):
    def unwritten(*given, **named):
        raise NotImplementedError

    loops = ("train_clipped", "train_logged", "train_accumulated", "train_scheduled", "train_static")

    assert "not attempted" == judged("bug_hunt", **dict.fromkeys(loops, unwritten)).state


def test_the_schedule_may_also_be_guarded_by_a_flag_of_ones_own(judged, solution):
    mse = solution["mse"]

    def guarded(model, batches, optimizer, scaler, scheduler):
        for x, y in batches:
            optimizer.zero_grad()
            scaler.scale(mse(model(x), y)).backward()
            scaler.unscale_(optimizer)
            finite = all(bool(p.grad.isfinite().all()) for p in model.parameters())
            scaler.step(optimizer)
            scaler.update()
            if finite:
                scheduler.step()

    assert "passed" == judged("bug_hunt", train_scheduled=guarded).state


@pytest.mark.parametrize("power", [24, 28, 32])
def test_any_scale_with_some_bits_to_spare_mends_the_last_loop(judged, solution, power):
    mse = solution["mse"]

    def static(model, batches, optimizer, half_gradients):
        for x, y in batches:
            optimizer.zero_grad()
            (2.0**power * mse(half_gradients(model(x)), y)).backward()
            for p in model.parameters():
                p.grad /= 2.0**power
            optimizer.step()

    assert "passed" == judged("bug_hunt", train_static=static).state


@pytest.mark.slow
def test_ten_thousand_sound_scales_mend_the_last_loop_and_one_for_the_large_gradients_never_does(exercises):
    random, cases, sound = Random(3), static_cases(exercises, draws=250), 0
    for case in cases:
        want, most = trained_static(case, 2.0**28), most_rounded(case)
        for _ in range(20):
            mine = trained_static(case, 2.0 ** random.uniform(22, 38))
            sound += all(abs(a - b) <= 2 * room for a, b, room in zip(mine, want, most, strict=True))
        lost = trained_static(case, 2.0**14)

        assert any(abs(a - b) > 2 * room for a, b, room in zip(lost, want, most, strict=True))

    assert 10_000 == sound


@pytest.mark.parametrize("scale", [2.0**14, 3e7, 2.0**28, 1e9])
def test_the_rounded_training_of_the_draws_is_what_a_real_loop_does(exercises, solution, scale):
    for case in static_cases(exercises, draws=2):
        model, batches, optimizer = static_parts(case)
        static_loop(solution["mse"], scale)(model, batches, optimizer, rounded_gradients())
        came = [float(weight) for weight in model.weight.detach().flatten()]

        assert came == pytest.approx(trained_static(case, scale), rel=2e-6, abs=1e-5 * max(map(abs, came)))


def static_cases(exercises, *, draws):
    drawn = [case for seed in range(draws) for case in exercises["bug_hunt"].draw_cases(seed)]
    return [case for case in drawn if case["loop"] == "train_static"]


def static_parts(case):
    import torch

    model = torch.nn.Linear(len(case["weights"]), 1, bias=False)
    model.load_state_dict({"weight": torch.tensor([case["weights"]])})
    batches = [(torch.tensor(one["x"]), torch.tensor(one["y"])) for one in case["batches"]]
    return model, batches, torch.optim.SGD(model.parameters(), lr=case["lr"])


def static_loop(mse, scale):
    def static(model, batches, optimizer, half_gradients):
        for x, y in batches:
            optimizer.zero_grad()
            (scale * mse(half_gradients(model(x)), y)).backward()
            for p in model.parameters():
                p.grad /= scale
            optimizer.step()

    return static


@pytest.mark.parametrize("scale", [3e7, 1e8, 5e9])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_static_scale_need_not_be_a_power_of_two(judged, solution, seed, scale):
    assert "passed" == judged("bug_hunt", seed=seed, train_static=static_loop(solution["mse"], scale)).state


def tensors(values):
    import torch

    return [torch.tensor(value) for value in values]


def yielded(values):
    yield from values


@pytest.mark.parametrize("form", [tuple, np.array, tensors, yielded, deque])
def test_norms_may_come_in_any_form_of_a_list(judged, solution, form):
    def logged(*given):
        return form(solution["train_logged"](*given))

    assert "passed" == judged("bug_hunt", train_logged=logged).state


def test_norms_may_be_yielded_while_training(judged, solution):
    def logged(model, batches, optimizer, scaler):
        for batch in batches:
            yield from solution["train_logged"](model, [batch], optimizer, scaler)

    assert "passed" == judged("bug_hunt", train_logged=logged).state


@pytest.mark.parametrize(
    ("came", "told"), [(None, "train_logged does not return one norm"), (1.5, "wrong kind of answer")]
)
def test_norms_that_are_no_list_are_told_so(judged, solution, came, told):
    def logged(*given):
        solution["train_logged"](*given)
        return came

    assert told in judged("bug_hunt", train_logged=logged).what


@pytest.mark.parametrize("form", [tuple, np.array, tensors, yielded, deque])
def test_losses_may_come_in_any_form_of_a_list(form):
    assert ("list", [1.5, 2.0]) == train_it._plain_losses(form([1.5, 2.0]))


@pytest.mark.parametrize(
    ("came", "kind"), [(None, "NoneType"), (2.0, "float"), ({"a": 1.0}, "dict"), (object(), "object")]
)
def test_losses_that_are_no_list_are_told_by_their_kind(came, kind):
    assert (kind, []) == train_it._plain_losses(came)


def test_losses_that_are_no_numbers_are_kept_as_such():
    kind, losses = train_it._plain_losses([1.0, "2", None, True])

    assert ("list", [False, True, True, True]) == (kind, list(map(math.isnan, losses)))


@pytest.mark.slow
def test_training_without_a_scale_stalls_and_with_torchs_scaler_does_not(judged, solution):
    import torch

    def plain(model, batches, optimizer, scaler):
        for x, y in batches:
            optimizer.zero_grad()
            model.loss(x, y).backward()
            optimizer.step()

    assert "the network did not learn" == judged("train_it", train_in_half=plain).what
    assert "passed" == judged("train_it", LossScaler=lambda **k: torch.amp.GradScaler("cpu", **k)).state


@pytest.mark.slow
@pytest.mark.parametrize(
    ("returns", "told"),
    few(
        [
            (lambda losses, weight: None, "not a list of one loss per batch"),
            (lambda losses, weight: losses[1:], "not a list of one loss per batch"),
            (lambda losses, weight: ["x"] * len(losses), "not every returned loss is a finite float"),
            (lambda losses, weight: [math.nan] * len(losses), "not every returned loss is a finite float"),
            (lambda losses, weight: [loss * weight for loss in losses], "still have the model's loss_weight"),
            (lambda losses, weight: [losses[0]] + [0.001] * (len(losses) - 1), "not those that were trained on"),
            (lambda losses, weight: [2 * loss for loss in losses], "not those that were trained on"),
        ],
        quick=4,
    ),
)
def test_losses_that_came_back_are_judged(judged, solution, returns, told):
    def train(model, batches, optimizer, scaler):
        return returns(solution["train_in_half"](model, batches, optimizer, scaler), model.loss_weight)

    outcome = judged("train_it", train_in_half=train)

    assert 0 == outcome.points
    assert told in outcome.what


@pytest.mark.parametrize(("left_out", "told"), [("zero_grad", "zero_grad()"), ("update", "scaler.update()")])
def test_a_loop_that_leaves_a_call_out_is_told_which(judged, solution, left_out, told):
    def train(model, batches, optimizer, scaler):
        owner = optimizer if left_out == "zero_grad" else scaler
        setattr(owner, left_out, lambda: None)
        return solution["train_in_half"](model, batches, optimizer, scaler)

    outcome = judged("train_it", train_in_half=train)

    assert told in outcome.what + outcome.next


def test_a_copy_that_is_split_is_told(judged, solution):
    def split(recipe):
        resident, peak = solution["bytes_per_parameter"](recipe)
        return resident, resident + (peak - resident) / (recipe["gpus"] if recipe["zero_stage"] == 3 else 1)

    outcome = judged("bytes_per_parameter", bytes_per_parameter=split)

    assert ("your peak is wrong", True) == (outcome.what, "do not split" in outcome.next)


@pytest.mark.parametrize("seed", range(1, 4))
def test_empty_bins_are_no_values(judged, solution, seed):
    def with_empty_bins(exponents, counts, fmt):
        scale = solution["static_scale"](exponents, counts, fmt)
        if 2.0 ** (exponents[-1] + 1) * scale >= solution["where_it_breaks"](fmt)["overflows"]:
            raise ValueError("an empty bin does not fit")
        return scale

    told = judged("static_scale", seed=seed, static_scale=with_empty_bins).what

    assert "your code treats empty bins as values that overflow" == told


@pytest.mark.parametrize("answer", ["fp32", "torch.float32"])
def test_other_names_of_dtypes_are_told_how_to_write_them(judged, answer):
    outcome = judged("autocast_dtype", autocast_dtype=lambda *given, **named: answer)

    assert outcome.next.startswith("write it as 'float32'")


def test_an_error_says_for_which_value(judged, solution):
    def encode(value, fmt):
        return int(value) if math.isinf(value) else solution["encode"](value, fmt)

    assert 'encode(float("inf"), fmt)' in judged("encode_decode", encode=encode).what


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        (
            lambda parts: (2 * parts[0], 2 * parts[1]),
            "your answer is not the sum of weights, copies, gradients and states",
        ),
        (lambda parts: (parts[0], parts[0]), "your peak is wrong"),
        (lambda parts: parts[0], "wrong kind of answer"),
        (lambda parts: (*parts, 0), "expected two answers"),
        (lambda parts: (math.nan, parts[1]), "your answer is not above 0, but every parameter costs something"),
    ],
)
def test_wrong_budgets_are_told_what_they_are(judged, solution, changes, told):
    outcome = judged("bytes_per_parameter", bytes_per_parameter=lambda r: changes(solution["bytes_per_parameter"](r)))

    assert told in outcome.what


@pytest.mark.parametrize("seed", range(1, 13))
def test_the_best_padding_is_the_only_one(solution, exercises, seed):
    for case in exercises["aligned_shapes"].draw_cases(seed):
        if case["ask"] != "padding":
            continue
        times = []
        for multiples in itertools.product((1, 128 // case["bits"], 1024 // case["bits"]), repeat=3):
            sides = [-(-side // by) * by for side, by in zip(case["shape"], multiples, strict=True)]
            times.append((math.prod(sides) / case["rates"][solution["alignment"](sides, case["bits"])], sides))
        best = min(times)
        close = {tuple(sides) for time_s, sides in times if time_s <= best[0] * (1 + 1e-9)}

        assert {tuple(solution["best_padding"](case["shape"], case["bits"], rates=case["rates"]))} == close


@pytest.mark.parametrize("seed", range(1, 6))
def test_cases_ask_for_every_kind_of_padding(solution, exercises, seed):
    kinds = set()
    for case in exercises["aligned_shapes"].draw_cases(seed):
        if case["ask"] == "padding":
            padded = solution["best_padding"](case["shape"], case["bits"], rates=case["rates"])
            kinds.add("left" if padded == case["shape"] else solution["alignment"](padded, case["bits"]))

    assert {"left", "16 B", "128 B"} == kinds


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (lambda shape, bits, rates: [1, 1, 1], "your padding makes a side smaller"),
        (lambda shape, bits, rates: shape[:2], "expected three whole numbers, the padded sides"),
        (lambda shape, bits, rates: [side + 0.5 for side in shape], "expected three whole numbers, the padded sides"),
    ],
)
def test_paddings_that_are_none_are_refused(judged, answer, told):
    assert told == judged("aligned_shapes", best_padding=answer).what
