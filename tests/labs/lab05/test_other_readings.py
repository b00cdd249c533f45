"""What read_a_sampler, schedule_states and layer_profiler say of tables that are all wrong in the same way."""

from __future__ import annotations

import pytest

from edl_labs.exercises.lab05_profiling.layer_profiler import _known_table
from edl_labs.exercises.lab05_profiling.misread_samples import known_reading
from edl_labs.exercises.lab05_profiling.wrong_cycles import _laid, known_layout

SAMPLES = [
    {"stack": ["a", "b"], "idle": False, "gil": False},
    {"stack": ["a", "c", "a"], "idle": False, "gil": False},
    {"stack": ["a"], "idle": True, "gil": False},
    {"stack": ["a", "d"], "idle": False, "gil": False},
]
CASE = {"samples": SAMPLES, "rate_hz": 10, "window": 2}
# own, total (of the last two samples), own_s, total_s
RIGHT = {"a": [0.0, 0.5, 0.1, 0.3], "b": [0.0, 0.0, 0.1, 0.1], "c": [0.0, 0.0, 0.0, 0.1], "d": [0.5, 0.5, 0.1, 0.1]}


def told(rows):
    got, want = ([{"rows": [[frame, *row] for frame, row in one.items()]}] for one in (rows, RIGHT))
    found = known_reading([CASE], got, want)
    return found.what if found else ""


@pytest.mark.parametrize(
    ("rows", "what"),
    [
        ({f: row for f, row in RIGHT.items() if row[1]}, "only before the window"),
        (
            {f: [own, total, own * 0.2, total * 0.2] for f, (own, total, *_) in RIGHT.items()},
            "seconds cover only the window",
        ),
        ({f: [o, t - o, os, ts - os] for f, (o, t, os, ts) in RIGHT.items()}, "totals leave out"),
        ({f: [os * 5, ts * 5, os, ts] for f, (_, _, os, ts) in RIGHT.items()}, "samples of the whole run"),
        (RIGHT | {"a": [0.0, 1.0, 0.2, 0.4]}, "only waiting"),
        (RIGHT | {"a": [0.0, 0.5, 0.2, 0.5]}, "counts a frame twice"),
        (RIGHT | {"b": [0.0, 0.0, 0.2, 0.2]}, ""),
        (RIGHT, ""),
    ],
)
def test_rows_that_were_counted_another_way_are_named(rows, what):
    assert what in told(rows)
    assert bool(what) == bool(told(rows))


def test_states_laid_out_by_another_rule_are_named(exercises, solution):
    cases = exercises["schedule_states"].draw_cases(3)
    wanted = [solution["schedule_states"](**case) for case in cases]
    late = [
        _laid(case, waits=lambda one, n: one["wait"] * one["stretch"] ** (n + 1))[: case["steps"]] for case in cases
    ]
    shifted = [["none", *states][: len(states)] for states in wanted]

    assert "already stretches" in known_layout(cases, late, wanted).what
    assert known_layout(cases, wanted, wanted) is known_layout(cases, shifted, wanted) is None
    more = [_laid(case, count=lambda one: one["repeat"] and one["repeat"] + 1)[: case["steps"]] for case in cases]

    assert "your list has one cycle more than `repeat` says" == known_layout(cases, more, wanted).what


WANT = [["model", 1, 1.0, 6.0, 2.0, 12.0], ["x", 1, 2.0, 5.0, 4.0, 10.0], ["x.y", 1, 3.0, 3.0, 6.0, 6.0]]


@pytest.mark.parametrize(
    ("rows", "is_read", "what"),
    [
        (WANT, False, "never read"),
        ([[name, 0, 0.0, 0.0, 1.0, 2.0] for name, *_ in WANT], True, "recorded as backward"),
        ([["model", 1, -2.0, 6.0, -4.0, 12.0], *WANT[1:]], True, "all modules around it"),
        ([["model", 1, 0.5, 6.0, 2.0, 12.0], *WANT[1:]], True, ""),
    ],
)
def test_tables_of_another_clock_or_hook_are_named(rows, is_read, what):
    found = _known_table(rows, WANT, is_read=is_read)

    assert what in found.what if what else found is None
