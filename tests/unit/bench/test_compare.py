"""Comparing on scripted clocks: coverage, verdicts, stopping, outputs, dropped rounds, interference."""

from __future__ import annotations

import json
import math
import random
import re
from types import SimpleNamespace

import numpy as np
import pytest
from scripted_clock import DeviceClock, Noise, ScriptedClock, payload, ticked

from edl_labs.bench import Comparison, DifferentOutputs, FunctionFailed, State, compare, measure
from edl_labs.bench.results import verdict
from edl_labs.errors import UsageError
from tests.sampling import few


def against(truth, *, shape="bursts", seed=0, budget_s=0.1, cost_s=25e-6, **options):
    clock, noise = ScriptedClock(cost_s=5e-8), Noise(shape, seed)
    sides = {"a": payload(clock, cost_s, noise=noise), "b": payload(clock, cost_s * truth, noise=noise)}
    return compare(sides, clock=clock, budget_s=budget_s, seed=seed, **options)


def coverage(shape, runs, **options):
    found = [against(1.01, shape=shape, seed=seed, **options) for seed in range(runs)]
    return sum(c.low <= 1.01 <= c.high for c in found) / runs


@pytest.mark.parametrize("shape", Noise.SHAPES)
def test_intervals_cover_a_known_ratio_in_noise_of_every_shape(shape):
    assert coverage(shape, 40, precision=0.01) >= 0.82  # 95 % less 3.7 deviations: the full run below is the sharp one


@pytest.mark.slow
@pytest.mark.parametrize("precision", [0.0, 0.01])
@pytest.mark.parametrize("shape", Noise.SHAPES)
def test_intervals_cover_at_their_level_over_a_thousand_runs(shape, precision):
    assert 0.935 <= coverage(shape, 1000, precision=precision) <= 0.965


@pytest.mark.parametrize("shape", Noise.SHAPES)
def test_identical_code_is_never_called_different(shape):
    found = [against(1.0, shape=shape, seed=seed) for seed in range(20)]

    assert not [c for c in found if c.verdict in ("faster", "slower")]


def test_a_slowdown_of_one_per_cent_is_found():
    found = [against(1.01, shape=shape, seed=seed, budget_s=0.4) for seed in range(5) for shape in ("drift", "bursts")]

    assert ["slower"] * 10 == [c.verdict for c in found]


def test_a_slowdown_of_one_per_cent_is_found_among_timer_ticks_of_six():
    """Four in ten calls of 0.39 ms hold a tick: the lesser of two readings seldom does, and the rounds agree."""
    for seed in range(10):
        clock = ScriptedClock(cost_s=5e-8)
        sides = {name: ticked(clock, cost_s) for name, cost_s in (("a", 3.9e-4), ("b", 3.939e-4))}
        c = compare(sides, clock=clock, seed=seed, band=0.0)

        assert "slower" == c.verdict
        assert 1.01 == pytest.approx(c.ratio, abs=0.002)


@pytest.mark.parametrize("cost_s", [1e-4, 1e-3])
def test_a_function_that_varies_by_itself_is_not_judged_by_its_lucky_calls(cost_s):
    """Every second call takes twice as long: its lesser reading says nothing changed, its mean says what it costs."""
    clock, calls = ScriptedClock(cost_s=5e-8), iter(range(10**9))

    def varies():
        clock.t += cost_s * (1 + next(calls) % 2)

    c = compare({"a": payload(clock, cost_s), "b": varies}, clock=clock, equal=False, seed=1)

    assert "slower" == c.verdict
    assert 1.5 == pytest.approx(c.ratio, rel=0.02)
    assert not c.rows[0].interleaving_changed or "disturb" not in "".join(c.notes)


@pytest.mark.parametrize(("share", "factor"), [(0.2, 6), (0.1, 6), (0.3, 3)])
def test_rare_slow_calls_are_not_passed_over_in_silence(share, factor):
    clock, rng = ScriptedClock(cost_s=5e-8), random.Random(1)

    def varies():
        clock.t += 1e-3 * (factor if rng.random() < share else 1)

    c = compare({"a": payload(clock, 1e-3), "b": varies}, clock=clock, equal=False, seed=1)

    assert any("varies from call to call" in note or "far longer than the rest" in note for note in c.notes)


def test_a_side_that_grows_is_told_and_not_taken_for_a_disturbance():
    clock, calls = ScriptedClock(cost_s=5e-8), iter(range(10**9))

    def grows():
        clock.t += 1e-4 + 1e-7 * next(calls)

    c = compare({"a": payload(clock, 1e-4), "b": grows}, clock=clock, equal=False, seed=1, precision=0.0)

    assert any("calls of b got slower during the measurement" in note for note in c.notes)
    assert not any("affect each other" in note for note in c.notes)


@pytest.mark.parametrize(("first_s", "second_s"), [(2.5e-5, 5e-5), (2.5e-5, 1e-3), (1e-3, 2.5e-5)])
@pytest.mark.parametrize("shape", few(["heavy", "drift", "bursts", "bimodal"], quick=1))
def test_intervals_cover_ratios_of_sides_of_very_different_lengths(shape, first_s, second_s):
    hits = 0
    for seed in range(30):
        clock, noise = ScriptedClock(cost_s=5e-8), Noise(shape, seed)
        sides = {"a": payload(clock, first_s, noise=noise), "b": payload(clock, second_s, noise=noise)}
        c = compare(sides, clock=clock, budget_s=0.2, seed=seed)
        hits += c.low <= second_s / first_s <= c.high

    assert hits >= 22  # 90 % less three deviations: over so large a ratio the two averages are not the same noise


@pytest.mark.parametrize(("first_s", "second_s"), [(1e-5, 1e-3), (1e-4, 1e-3), (1e-3, 1.4e-3), (3e-4, 6e-4)])
def test_timer_ticks_do_not_bias_the_ratio_of_different_sides(first_s, second_s):
    clock = ScriptedClock(cost_s=5e-8)
    c = compare({"a": ticked(clock, first_s), "b": ticked(clock, second_s)}, clock=clock, seed=1)

    assert second_s / first_s == pytest.approx(c.ratio, rel=0.003)


@pytest.mark.parametrize("first_call_s", [0.03, 0.06, 0.15])
def test_a_slow_first_call_does_not_turn_the_verdict(first_call_s):
    """Lazy imports, compiling, filling a cache: what happens once is not what a call takes."""
    clock, done = ScriptedClock(cost_s=5e-8), []

    def lazy():
        clock.t += 1e-6 if done else first_call_s
        done.append(1)

    c = compare({"a": payload(clock, 1e-6), "b": lazy}, clock=clock, equal=False, seed=1)

    assert "same" == c.verdict
    assert 1 == pytest.approx(c.ratio, rel=0.002)


def test_outputs_are_compared_on_the_same_arguments():
    numbers = iter(range(1000))
    with pytest.raises(DifferentOutputs):
        compare({"a": lambda x: x + 1, "b": lambda x: 0}, inputs=lambda: (next(numbers),), budget_s=0.02)


@pytest.mark.parametrize(("first_s", "second_s"), [(5e-4, 1e-3), (1e-4, 5e-2), (4e-5, 5e-5)])
def test_the_latency_of_a_launch_is_in_no_ratio(first_s, second_s):
    clock = DeviceClock(launch_s=5e-6, sync_s=1e-5, cost_s=6e-8)
    c = compare({"a": lambda: clock.queue(first_s), "b": lambda: clock.queue(second_s)}, clock=clock, seed=1)

    assert second_s / first_s == pytest.approx(c.ratio, rel=1e-3)


@pytest.mark.parametrize(
    ("truth", "want"),
    [(0.5, "faster"), (0.98, "faster"), (1.0, "same"), (1.001, "same"), (1.02, "slower"), (40.0, "slower")],
)
def test_the_verdict_is_of_the_second_against_the_first(truth, want):
    c = against(truth, shape="drift", budget_s=0.4)

    assert want == c.verdict
    assert truth == pytest.approx(c.ratio, rel=0.004)
    assert 1 / c.ratio == c.speedup


def test_a_ratio_at_the_edge_of_the_band_is_inconclusive():
    assert "inconclusive" == verdict(1.001, 1.009, band=0.005)
    assert "inconclusive" == verdict(-math.inf, math.inf, band=0.005)


def test_more_than_two_sides_make_a_table_against_the_first():
    clock = ScriptedClock(cost_s=5e-8)
    noise = Noise("drift", 1)
    sides = {name: payload(clock, cost, noise=noise) for name, cost in (("a", 2e-5), ("b", 2e-5), ("c", 3e-5))}
    c = compare(sides, clock=clock, seed=1)

    assert [("b", "same"), ("c", "slower")] == [(row.name, row.verdict) for row in c.rows]
    assert 1.5 == pytest.approx(c["c"].ratio, rel=0.01)
    with pytest.raises(UsageError, match="there is no row"):
        c["d"]


def test_it_stops_once_the_interval_is_as_narrow_as_asked():
    wide, narrow = (against(1.0, shape="drift", budget_s=5.0, precision=p) for p in (0.02, 0.0015))

    assert "precise enough" == wide.stopped == narrow.stopped
    assert wide.rounds < narrow.rounds
    assert wide.wall_s < 5.0
    assert narrow.half_width < 1.3 * 0.0015


def test_the_order_of_a_round_is_drawn_and_each_side_runs_at_mirrored_places():
    clock, order = ScriptedClock(cost_s=1e-7), []

    def side(name):
        def fn():
            clock.t += 5e-3
            order.append(name)

        return fn

    c = compare({"a": side("a"), "b": side("b")}, clock=clock, budget_s=2.0, equal=False, precision=0.0, seed=3)
    played = re.findall(r"(?:abba|baab){6,}", "".join(order))

    assert 4 * c.rounds <= max(map(len, played)) + 8
    assert "abba" in played[0]
    assert "baab" in played[0]


def test_the_same_seed_gives_the_same_comparison():
    assert against(1.01, seed=4).rows == against(1.01, seed=4).rows


def test_the_budget_is_kept():
    for seed in range(5):
        clock, noise = ScriptedClock(cost_s=5e-8), Noise("mixed", seed)
        compare(
            {"a": payload(clock, 1e-4, noise=noise), "b": payload(clock, 3e-4, noise=noise)}, clock=clock, precision=0.0
        )

        assert clock.t <= 1.15 * 0.4


def test_calls_longer_than_the_budget_are_inconclusive_with_an_infinite_interval():
    clock = ScriptedClock()
    c = compare({"a": payload(clock, 60.0), "b": payload(clock, 90.0)}, clock=clock, budget_s=0.4)

    assert ("inconclusive", 0) == (c.verdict, c.rounds)
    assert (0.0, math.inf) == (max(c.low, 0.0), c.high)
    assert 1.5 == pytest.approx(c.ratio)
    assert 150.0 == pytest.approx(clock.t)
    assert ["a", "b"] == [note.split(":")[0] for note in c.notes if "one call, cold" in note]


@pytest.mark.parametrize("equal", [False, None])
@pytest.mark.parametrize("first_call_s", [0.39, 5.0, 25.0])
def test_a_first_call_beyond_the_budget_leaves_rounds_and_the_true_ratio(first_call_s, equal):
    clock, done = ScriptedClock(cost_s=5e-8), []

    def lazy():
        clock.t += 3e-3 if done else first_call_s
        done.append(1)

    c = compare({"a": payload(clock, 2e-3), "b": lazy}, clock=clock, equal=equal, seed=1)

    assert 1.5 == pytest.approx(c.ratio, rel=0.002)
    assert "slower" == c.verdict
    assert c.rounds >= 10
    assert any("the first call of b took" in note for note in c.notes)


@pytest.mark.parametrize(("first_s", "second_s", "verdict"), [(0.1, 44e-9, "faster"), (44e-9, 0.1, "slower")])
def test_sides_so_far_apart_that_one_call_tells_need_no_round(first_s, second_s, verdict):
    clock = ScriptedClock(cost_s=5e-8)
    c = compare({"a": payload(clock, first_s), "b": payload(clock, second_s)}, clock=clock, seed=1)

    assert verdict == c.verdict
    assert c.low < second_s / first_s < c.high
    assert any("comes from the warm-up calls, which were not interleaved" in note for note in c.notes)
    assert clock.t <= 1.15 * 0.4


@pytest.mark.parametrize("cost_s", [0.05, 0.1, 0.15])
def test_sides_that_are_not_far_apart_are_not_judged_without_rounds(cost_s):
    clock = ScriptedClock(cost_s=5e-8)
    c = compare({"a": payload(clock, cost_s), "b": payload(clock, 3 * cost_s)}, clock=clock, seed=1)

    assert "inconclusive" == c.verdict or c.rounds >= 10


@pytest.mark.slow
def test_functions_too_fast_for_the_clock_are_inconclusive():
    assert "inconclusive" == compare({"a": lambda: None, "b": lambda: None}, clock=ScriptedClock(step_s=1e-6)).verdict


def test_a_device_is_compared_drained():
    clock = DeviceClock(cost_s=6e-8)
    c = compare({"a": lambda: clock.queue(2e-5), "b": lambda: clock.queue(3e-5)}, clock=clock)

    assert 1.5 == pytest.approx(c.ratio, rel=0.005)


def test_rounds_in_which_the_clock_moved_are_dropped_and_counted():
    class Watch:
        reads = 0

        def read(self):
            self.reads += 1
            return State(1.5e9 if self.reads % 10 == 0 else 1.9e9, 1.98e9)

    c = against(1.0, shape="drift", watch=Watch(), precision=0.0)

    assert c.dropped > 0
    assert c.rounds > c.dropped
    assert any("dropped" in note for note in c.notes)


def test_sides_that_disturb_each_other_are_told():
    """B is slow right after A only: interleaved it looks slower than it is alone."""
    clock, last = ScriptedClock(cost_s=5e-8), {"name": ""}

    def side(name, cost_s, extra_s):
        def fn():
            clock.t += cost_s + (extra_s if last["name"] not in ("", name) else 0.0)
            last["name"] = name

        return fn

    c = compare({"a": side("a", 1e-3, 0.0), "b": side("b", 1e-3, 5e-4)}, clock=clock, equal=False, budget_s=1.0)

    assert c.rows[0].interleaving_changed
    assert "interleaving changed the result" in c.notes[0]


def test_a_busy_machine_is_no_matter_to_a_clock_whose_time_is_modelled(monkeypatch):
    """Real time that runs away beside scripted time: another program has the processor."""
    real = SimpleNamespace(perf_counter=map(float, range(0, 10**9, 3600)).__next__)
    for module in ("_compare", "_measure"):
        monkeypatch.setattr(f"edl_labs.bench.{module}.time", real)
    clock = ScriptedClock(cost_s=5e-8)
    compared = compare({"a": payload(clock, 1e-3), "b": payload(clock, 2e-3)}, clock=clock, equal=False, seed=1)
    measured = measure(payload(clock, 1e-3), clock=clock, detect=False)

    assert compared.wall_s + measured.wall_s <= clock.t
    assert not [note for note in (*compared.notes, *measured.notes) if "instead of" in note]


def test_sides_that_leave_each_other_alone_raise_no_note():
    assert not [
        c
        for c in (against(1.1, shape=s, seed=k) for s in Noise.SHAPES for k in range(5))
        if c.rows[0].interleaving_changed
    ]


# Outputs


def test_different_outputs_are_refused_before_any_timing():
    with pytest.raises(DifferentOutputs, match="b and a return different results") as caught:
        compare({"a": lambda: [1.0, 2.0], "b": lambda: [1.0, 2.5]})

    assert "equal=" in caught.value.next


def test_equal_says_how_outputs_are_compared():
    sides = {"a": lambda: 1.0, "b": lambda: 1.1}

    assert "equal" == compare(sides, equal=lambda a, b: abs(a - b) < 0.2, budget_s=0.01).compared_outputs
    assert "not compared" in compare(sides, equal=False, budget_s=0.01).compared_outputs
    with pytest.raises(UsageError, match="equal= cannot be 3"):
        compare(sides, equal=3)


def test_functions_that_draw_random_numbers_see_the_same_ones():
    state = random.getstate()
    sides = {"a": lambda: (random.random(), np.random.rand()), "b": lambda: (random.random(), np.random.rand())}

    assert "equal" == compare(sides, budget_s=0.01).compared_outputs
    random.setstate(state)


def test_a_result_that_changes_from_call_to_call_is_not_compared():
    numbers = iter(range(10**9))
    sides = {"a": lambda: next(numbers), "b": lambda: next(numbers)}

    assert "a different result each time" in compare(sides, budget_s=0.01).compared_outputs


def test_a_side_that_raises_is_named():
    with pytest.raises(FunctionFailed, match="b raised ZeroDivisionError"):
        compare({"a": lambda: None, "b": lambda: 1 / 0})


@pytest.mark.parametrize("bad", [{}, {"a": abs}, {"a": abs, "b": 3}, [abs, abs]])
def test_what_is_no_comparison_is_refused(bad):
    with pytest.raises(UsageError, match="compare\\(\\) needs"):
        compare(bad)


def test_a_negative_band_is_refused():
    with pytest.raises(UsageError, match="band"):
        compare({"a": lambda: 1, "b": lambda: 1}, band=-0.1)


def test_a_comparison_survives_json():
    for c in (
        against(1.3),
        compare({"a": payload(clock := ScriptedClock(), 9.0), "b": payload(clock, 9.0)}, clock=clock),
    ):
        assert c == Comparison.from_json(json.dumps(c.to_json(), allow_nan=False))


def test_the_text_gives_the_verdict_in_words_and_no_more_digits_than_the_interval_supports():
    text = repr(against(1.3, shape="drift", budget_s=0.4))

    assert re.search(r"b is slower than a: time ratio 1\.(3|30|29\d|30\d) \[", text)
    assert "paired rounds" in text


def test_the_html_names_the_verdict_and_escapes_names():
    clock = ScriptedClock(cost_s=1e-7)
    page = compare({"<a>": payload(clock, 1e-5), "b": payload(clock, 2e-5)}, clock=clock)._repr_html_()

    assert "&lt;a&gt;" in page
    assert "<a>" not in page
    assert ">slower<" in page


# Interruptions


def test_what_was_interrupted_is_left_out_while_enough_remains():
    from edl_labs.bench.timing.processor_state import undisturbed

    values = list(range(20))

    assert values[10:] == undisturbed(values, [True] * 10 + [False] * 10)
    assert values == undisturbed(values, [True] * 13 + [False] * 7)
    assert values == undisturbed(values, [False] * 20)


def test_a_difference_must_hold_at_a_higher_level_than_the_interval_has():
    assert "slower" == verdict(1.006, 1.02, band=0.005, sure=(1.0055, 1.03))
    assert "inconclusive" == verdict(1.006, 1.02, band=0.005, sure=(1.004, 1.03))
    assert "same" == verdict(0.998, 1.002, band=0.005, sure=(0.99, 1.01))
