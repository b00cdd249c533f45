"""self_times, read_a_sampler, schedule_states and utilisation_lies: other right ways pass, torch agrees."""

from __future__ import annotations

from collections import Counter
from math import ceil
from statistics import fmean

import pytest

from edl_labs.checks import plain_data


@pytest.mark.parametrize("name", ["self_times", "read_a_sampler", "schedule_states", "utilisation_lies"])
def test_cases_are_plain_data_and_differ(name, exercises):
    cases = exercises[name].draw_cases(3)
    encoded = {plain_data.encode(dict(case)) for case in cases}

    assert len(cases) == len(encoded)


@pytest.mark.parametrize("seed", range(5))
def test_self_times_add_up_to_the_time_of_the_outermost_rows(seed, solution, exercises):
    for case in exercises["self_times"].draw_cases(seed):
        moments = {
            thread: sorted((r["start_s"], r["end_s"]) for r in case["rows"] if r["thread"] == thread)
            for thread in ("main", "backward")
        }
        busy_s = 0.0
        for spans in moments.values():
            reached_s = 0.0
            for start_s, end_s in spans:
                busy_s += max(0.0, end_s - max(start_s, reached_s))
                reached_s = max(reached_s, end_s)

        assert pytest.approx(busy_s) == sum(solution["self_times"](case["rows"]).values())


def test_self_times_by_looking_for_the_parent_of_each_row_pass(judged):
    def by_parent(rows):
        times = Counter()
        for row in rows:
            spent_s = row["end_s"] - row["start_s"]
            times[row["name"]] += spent_s
            around = [
                r
                for r in rows
                if r is not row
                and r["thread"] == row["thread"]
                and r["start_s"] <= row["start_s"]
                and row["end_s"] <= r["end_s"]
            ]
            if around:
                times[min(around, key=lambda r: r["end_s"] - r["start_s"])["name"]] -= spent_s
        return dict(times)

    assert "passed" == judged("self_times", self_times=by_parent).state


def test_a_forgotten_name_is_told(judged, solution):
    def short(rows):
        times = solution["self_times"](rows)
        times.pop(sorted(times)[0])
        return times

    assert judged("self_times", self_times=short).what.startswith("your table is missing a name, or has an extra one")


@pytest.mark.parametrize("value", [float("nan"), -1.0, 10**400, "12", None])
def test_absurd_self_times_earn_nothing(value, judged, solution):
    outcome = judged("self_times", self_times=lambda rows: dict.fromkeys(solution["self_times"](rows), value))

    assert 0 == outcome.points
    assert outcome.what


def test_rows_that_a_student_empties_are_not_those_of_the_next_question(judged, solution):
    def greedy(rows):
        times = solution["self_times"](rows)
        rows.clear()
        return times

    assert "passed" == judged("self_times", self_times=greedy).state


def test_a_sampler_with_counters_passes(judged):
    def by_counters(samples, *, rate_hz, window):
        active = [s for s in samples if not s["idle"]]
        recent = [s for s in samples[-window:] if not s["idle"]]

        def count(of, frames):
            return Counter(frame for s in of for frame in frames(s["stack"]))

        own, total = (lambda stack: [stack[-1]]), set
        rows = {
            frame: {
                "own": count(recent, own)[frame] / window,
                "total": count(recent, total)[frame] / window,
                "own_s": count(active, own)[frame] / rate_hz,
                "total_s": ticks / rate_hz,
            }
            for frame, ticks in count(active, total).items()
        }
        held = sum(s["gil"] for s in samples) / len(samples)
        return {"active": len(active) / len(samples), "gil": held, "rows": rows}

    assert "passed" == judged("read_a_sampler", sampler_table=by_counters).state


@pytest.mark.filterwarnings("ignore:Profiler won't be using warmup")
@pytest.mark.parametrize("seed", range(3))
def test_torch_schedules_the_same_states(seed, solution, exercises):
    from torch.profiler import schedule

    names = {"NONE": "none", "WARMUP": "warmup", "RECORD": "record", "RECORD_AND_SAVE": "record and save"}
    for case in exercises["schedule_states"].draw_cases(seed):
        options = {name: value for name, value in case.items() if name != "steps"}
        if options.pop("stretch") > 1:
            continue
        torchs = schedule(**options)
        expected = [names[torchs(step).name] for step in range(case["steps"])]

        assert expected == solution["schedule_states"](case["steps"], **options)


def test_waits_that_stretch_are_what_torchs_schedule_has_not(solution):
    states = solution["schedule_states"](17, wait=1, warmup=0, active=2, repeat=3, skip_first=1, stretch=3)

    assert "NNRSNNNRSNNNNNNNNN" == "".join(
        {"record and save": "S", "record": "R"}.get(s, "N") for s in [*states, "none"]
    )


def test_the_five_per_cent_are_of_the_column_that_the_text_names(judged):
    def ran_on(entry, *, cpu_flop_per_s):
        fast = entry["flop"] > cpu_flop_per_s * entry["cuda_s"]
        return "gpu" if fast or abs(entry["cuda_s"] - entry["cpu_s"]) > 0.05 * entry["cuda_s"] else "cpu"

    assert "from the wrong column" in judged("self_times", ran_on=ran_on).what


@pytest.mark.parametrize("state", ["", "recording", "NONE"])
def test_a_state_of_ones_own_is_told_the_four(state, judged):
    outcome = judged("schedule_states", schedule_states=lambda steps, **_: [state] * steps)

    assert outcome.what.endswith("is not a state")


def test_no_share_of_drawn_timelines_is_above_one(solution, exercises):
    for case in exercises["utilisation_lies"].draw_cases(4):
        said, working = solution["utilisation"](case["kernels"], sm_count=case["sm_count"], window_s=case["window_s"])

        assert working <= said + 1e-12
        assert said <= 1 + 1e-12


def in_list_order(kernels, window_s):
    free_s, busy_s = 0.0, 0.0
    for kernel in kernels:
        if kernel["end_s"] > free_s:
            busy_s, free_s = busy_s + kernel["end_s"] - max(free_s, kernel["start_s"]), kernel["end_s"]
    return busy_s / window_s


def mean_share(kernels, sm_count):
    return fmean(k["blocks"] / (sm_count * ceil(k["blocks"] / sm_count)) for k in kernels)


OTHER_SHARES = {
    "in the wrong order": lambda said, working, **_: (working, said),
    "percentages": lambda said, working, **_: (100 * said, 100 * working),
    "pauses": lambda said, working, kernels, window_s, **_: (
        (max(k["end_s"] for k in kernels) - min(k["start_s"] for k in kernels)) / window_s,
        working,
    ),
    "order of the list": lambda said, working, kernels, window_s, **_: (in_list_order(kernels, window_s), working),
    "more working SMs": lambda said, working, kernels, sm_count, window_s: (
        said,
        sum((k["end_s"] - k["start_s"]) / window_s * k["blocks"] / sm_count for k in kernels),
    ),
    "short kernel the same weight": lambda said, working, kernels, sm_count, **_: (
        said,
        mean_share(kernels, sm_count),
    ),
}


@pytest.mark.parametrize("named", OTHER_SHARES)
def test_another_share_of_all_timelines_is_named(named, solution, judged):
    def utilisation(kernels, *, sm_count, window_s):
        said, working = solution["utilisation"](kernels, sm_count=sm_count, window_s=window_s)
        return OTHER_SHARES[named](said, working, kernels=kernels, sm_count=sm_count, window_s=window_s)

    outcome = judged("utilisation_lies", utilisation=utilisation)

    assert named in outcome.what
