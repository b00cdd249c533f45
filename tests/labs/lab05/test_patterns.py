"""name_the_pattern, blame and most_to_gain: drawn steps are what they were drawn as, with a margin."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from edl_labs.exercises.lab05_profiling.judge.drawn_steps import (
    blamed,
    draw_blamed,
    draw_blocked,
    draw_machine,
    draw_spread,
    draw_step,
    draw_surprise,
)
from edl_labs.exercises.lab05_profiling.step_patterns import PATTERNS
from edl_labs.exercises.lab05_profiling.wrongly_blamed import longest_line
from edl_labs.virtual import VirtualMachine
from edl_labs.virtual.loop import step_s, step_spans

MARGIN = 1.3


def spans_of(step, machine):
    return step_spans(step, VirtualMachine(**machine), count=1)


def drawn(seed, pattern, draw, **options):
    rng = np.random.default_rng([seed, PATTERNS.index(pattern)])
    machine = draw_machine(rng)
    return draw(rng, pattern, machine, **options), machine


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("mixed", [False, True])
def test_a_step_is_bound_by_what_it_was_drawn_as(pattern, mixed, solution):
    for seed in range(15):
        shares = Counter()
        for (bound, _), charged_s in solution["charges"](
            spans_of(*drawn(seed, pattern, draw_step, mixed=mixed))
        ).items():
            shares[bound] += charged_s
        (first, most_s), (_, next_s) = (*shares.most_common(2), ("none", 0.0))[:2]

        assert pattern == first
        assert most_s > MARGIN * next_s


@pytest.mark.parametrize("pattern", PATTERNS)
def test_charges_of_a_step_add_up_to_its_window(pattern, solution):
    for seed in range(8):
        spans = spans_of(*drawn(seed, pattern, draw_blamed))
        window_s = max(span["end_s"] for span in spans)
        copies = [span for span in spans if span["kind"] == "copy"]
        beside_s = sum(
            solution["overlap_s"](copy, solution["joined"]([c for c in copies if c is not copy])) for copy in copies
        )

        assert pytest.approx(window_s, rel=1e-6, abs=beside_s + 1e-12) == sum(solution["charges"](spans).values())


@pytest.mark.parametrize("pattern", PATTERNS)
def test_the_guilty_line_is_clear_and_never_the_longest(pattern, solution):
    for seed in range(15):
        spans = spans_of(*drawn(seed, pattern, draw_blamed))
        lines = Counter({line: s for (of, line), s in solution["charges"](spans).items() if of == pattern}).most_common(
            2
        )

        assert lines[0][0] != longest_line(spans, pattern)
        assert len(lines) == 1 or lines[0][1] > MARGIN * lines[1][1]


def rankings(spans):
    """The lines of a timeline, ordered by all that needs no measuring: place, order, numbers, lengths, names."""
    lines = sorted({span["line"] for span in spans}, key=lambda line: int(line.split(":")[1]))
    of = {line: [span for span in spans if span["line"] == line] for line in lines}
    longest_s = {line: max(span["end_s"] - span["start_s"] for span in of[line]) for line in lines}
    return {
        "place": lines,
        "order": list(dict.fromkeys(span["line"] for span in spans)),
        "time": sorted(lines, key=lambda line: min(span["start_s"] for span in of[line])),
        "number": sorted(lines, key=lambda line: len(of[line])),
        "length": sorted(lines, key=longest_s.__getitem__),
        "name": sorted(lines, key=lambda line: min(span["name"] for span in of[line])),
    }


@pytest.mark.slow
@pytest.mark.parametrize(
    "pattern", [PATTERNS[0], *(pytest.param(pattern, marks=pytest.mark.slow) for pattern in PATTERNS[1:])]
)
def test_no_place_order_number_length_or_name_tells_the_guilty_line(pattern, solution):
    kinds = {"gpu": "kernel", "launch": "call", "synchronisation": "wait", "data": "load", "copy": "copy"}
    drawn = [case for seed in range(60) for case in blamed(np.random.default_rng(seed)) if case["pattern"] == pattern]
    right = Counter()
    for case in drawn:
        guilty = solution["blame"](case["spans"], pattern)
        for among in ("all", kinds[pattern]):
            seen = [span for span in case["spans"] if among in ("all", span["kind"])]
            for key, lines in rankings(seen).items():
                place = lines.index(guilty)
                # From the front, from behind, and from the middle.
                right.update((among, key, k) for k in (place, place - len(lines), f"middle{place - len(lines) // 2:+}"))

    # The chance that is taken off is a third; three standard deviations of 120 guesses above it.
    assert len(drawn) / 3 + 3 * (len(drawn) * 2 / 9) ** 0.5 > max(right.values())


@pytest.mark.parametrize("seed", range(8))
def test_a_spread_step_is_bound_by_kernels_of_which_no_line_has_most(seed, solution):
    rng = np.random.default_rng(seed)
    machine = draw_machine(rng)
    charged = solution["charges"](spans_of(draw_spread(rng, machine), machine))
    gpu_s = sum(s for (of, _), s in charged.items() if of == "gpu")
    data_s = sum(s for (of, _), s in charged.items() if of == "data")

    assert gpu_s > MARGIN * data_s
    assert "data" == max(charged, key=charged.get)[0]


@pytest.mark.parametrize("seed", range(8))
def test_what_a_blocking_copy_holds_up_is_charged_to_its_line(seed, solution):
    rng = np.random.default_rng(seed)
    machine = draw_machine(rng)
    step = draw_blocked(rng, machine)
    spans = spans_of(step, machine)
    (line,) = (operation["line"] for operation in step if operation["op"] == "copy")
    copied_s = sum(span["end_s"] - span["start_s"] for span in spans if span["kind"] == "copy")

    assert "copy" == solution["name_the_pattern"](spans)
    assert solution["charges"](spans)["copy", line] > 1.1 * copied_s


def test_a_right_name_needs_right_charges(judged, solution):
    def doubled(spans):
        return {place: 2 * spent for place, spent in solution["charges"](spans).items()}

    assert 0 == judged("name_the_pattern", charges=doubled).points
    assert 0 == judged("name_the_pattern", charges=lambda spans: {}).points


def test_kernels_side_by_side_are_charged_once(solution):
    kernel = {"row": "stream 0", "kind": "kernel", "name": "k"}
    first = {**kernel, "line": "a.py:1", "start_s": 0.0, "end_s": 4.0}
    second = {**kernel, "row": "stream 1", "line": "a.py:2", "start_s": 1.0, "end_s": 6.0}

    assert {("gpu", "a.py:1"): 4.0, ("gpu", "a.py:2"): 2.0} == solution["charges"]([second, first])


def test_one_right_pattern_in_five_is_worth_nothing(exercises):
    combine = exercises["name_the_pattern"].spec.combine

    assert 0 == combine([1, 0, 0, 0, 0] * 3)
    assert 1 == combine([1] * 15)
    assert 0 < combine([1] * 9 + [0] * 6) < 0.25


@pytest.mark.parametrize("answer", ["none", "compute", ""])
def test_another_word_is_told_the_five(answer, judged):
    outcome = judged("name_the_pattern", name_the_pattern=lambda spans: answer)

    assert outcome.what.endswith("is not one of the five patterns")


def test_speed_ups_differ_in_what_is_best(solution, exercises):
    cases = [case for seed in range(3) for case in exercises["most_to_gain"].draw_cases(seed)]
    bests = {solution["most_to_gain"](case["step"], VirtualMachine(**case["machine"]))[0] for case in cases}

    assert {"kernels", "launch", "synchronisation", "data", "copy"} == bests


def test_the_largest_share_is_not_always_the_largest_gain(solution):
    for seed in range(10):
        rng = np.random.default_rng(seed)
        machine = draw_machine(rng)
        step = draw_surprise(rng, machine)

        assert "synchronisation" == solution["name_the_pattern"](spans_of(step, machine))
        assert "data" == solution["most_to_gain"](step, VirtualMachine(**machine))[0]


def test_a_speed_up_is_never_more_than_the_share_allows(solution):
    for seed in range(6):
        step, machine = drawn(seed, "data", draw_step, mixed=False)
        spans = spans_of(step, machine)
        # Launches that came late behind a load are hidden once the load is gone, so their share may go with it.
        gone_s = sum(s for (of, _), s in solution["charges"](spans).items() if of in ("data", "launch"))
        share = gone_s / max(span["end_s"] for span in spans)
        gain = solution["most_to_gain"](step, VirtualMachine(**machine))[1]["data"]

        assert gain <= 1.02 / (1 - share)


def test_infinite_and_missing_speed_ups_are_refused(judged):
    def infinite(step, machine):
        causes = ("kernels", "launch", "synchronisation", "data", "copy")
        return "kernels", dict.fromkeys(causes, float("inf"))

    assert 0 == judged("most_to_gain", most_to_gain=infinite).points
    assert ("each of the five causes must have a speed-up") == judged(
        "most_to_gain", most_to_gain=lambda *_: ("data", {})
    ).what


def test_a_step_is_not_changed_by_simulating_it():
    step, machine = drawn(1, "gpu", draw_step, mixed=True)
    before = [dict(operation) for operation in step]
    step_s(step, VirtualMachine(**machine))

    assert before == step
