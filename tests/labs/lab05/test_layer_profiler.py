"""layer_profiler: other right profilers pass; forged readings, work of one's own and files that are none do not."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pytest
import torch

from edl_labs.exercises.lab05_profiling import layer_profiler as layers


@pytest.fixture(scope="module")
def solved(solution):
    return solution["LayerProfiler"]


def with_trace(solved, change):
    """The solution with another trace."""

    class Changed(solved):
        def trace(self):
            return change(super().trace())

    return Changed


def test_every_event_of_a_trace_nests_in_the_one_around_it(solved, exercises, solution):
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.spec import given_halves

    exercise = exercises["layer_profiler"]
    for record in collect(exercise, dict(solution), given_halves(exercise.draw_cases(5))):
        open_until = []
        events = json.loads(record["value"]["trace"])["traceEvents"]
        for event in sorted(events, key=lambda e: (e["ts"], -e["dur"])):
            while open_until and open_until[-1] <= event["ts"] + 1e-6:
                open_until.pop()

            assert not open_until or event["ts"] + event["dur"] <= open_until[-1] + 1e-3
            open_until.append(event["ts"] + event["dur"])


def test_self_times_of_a_pass_are_the_kernels_and_their_launches(solution, exercises):
    from edl_labs.checks.evidence import collect
    from edl_labs.checks.spec import given_halves

    exercise = exercises["layer_profiler"]
    cases = exercise.draw_cases(6)
    for case, record in zip(cases, collect(exercise, dict(solution), given_halves(cases)), strict=True):
        forward, backward = layers._expected(case["plan"])
        launch_s = case["launch_overhead_s"]
        rows = record["value"]["table"]
        passes = case["steps"] + case["evaluations"], case["steps"]
        for column, kernels, count in ((2, forward, passes[0]), (4, backward, passes[1])):
            spent_s = count * sum(s + launch_s for _, s in kernels)

            assert pytest.approx(spent_s) == sum(row[column] for row in rows)


def test_extra_metadata_and_another_order_of_events_pass(judged, solved):
    extra = [{"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "me"}}]
    changed = with_trace(solved, lambda trace: {"traceEvents": extra + trace["traceEvents"][::-1]})

    assert "passed" == judged("layer_profiler", LayerProfiler=changed).state


def test_a_bare_list_of_events_is_a_trace_too(judged, solved):
    changed = with_trace(solved, lambda trace: trace["traceEvents"])

    assert "passed" == judged("layer_profiler", LayerProfiler=changed).state


@pytest.mark.parametrize(
    "change",
    [
        lambda trace: None,
        lambda trace: {"traceEvents": "none"},
        lambda trace: {"traceEvents": [{"ph": "Q"}]},
        lambda trace: {"traceEvents": [{**e, "ts": float("nan")} for e in trace["traceEvents"]]},
        lambda trace: {"traceEvents": [{**e, "dur": "long"} for e in trace["traceEvents"]]},
        lambda trace: {"traceEvents": [{k: v for k, v in e.items() if k != "pid"} for e in trace["traceEvents"]]},
        lambda trace: {"traceEvents": [{**e, "cat": "both"} for e in trace["traceEvents"]]},
        lambda trace: {"traceEvents": [object()]},
    ],
)
def test_what_no_viewer_opens_is_told_so(change, judged, solved):
    assert "a trace viewer cannot open your trace" == (
        judged("layer_profiler", LayerProfiler=with_trace(solved, change)).what
    )


def test_times_that_were_read_out_of_the_machine_earn_nothing(judged, solved):
    class Forged(solved):
        """Reads no clock of the program: it looks where the machine keeps its time."""

        def __init__(self, model, clock):
            super().__init__(model, self)
            self.gpu = clock.gpu if hasattr(clock, "gpu") else clock._gpu

        def synchronize(self):
            self.gpu.core.engines.run_all()

        def now_s(self):
            return max(self.gpu.core.host_ps, self.gpu.core.engines.last_done) / 1e12

    assert 0 == judged("layer_profiler", LayerProfiler=Forged).points


def test_a_profiler_that_launches_kernels_is_refused(judged, solved):
    class Busy(solved):
        def __exit__(self, *error):
            super().__exit__(*error)
            self.model(__import__("torch").ones(2))

    assert "your profiler changes the model's own work" == judged("layer_profiler", LayerProfiler=Busy).what


def test_leaf_modules_alone_are_not_every_module(judged, solved):
    class Leaves(solved):
        def _watch(self, name, module):
            if not list(module.children()):
                super()._watch(name, module)

    assert judged("layer_profiler", LayerProfiler=Leaves).what.startswith(
        "your table is missing a row, or has an extra one"
    )


@pytest.mark.parametrize("method", ["_begin", "_end"])
def test_a_hook_that_returns_a_value_is_told_what_that_does(method, judged, solved):
    class Returning(solved):
        pass

    def returning(self, *given):
        getattr(solved, method)(self, *given)
        return 1

    setattr(Returning, method, returning)

    assert layers._RETURNED in judged("layer_profiler", LayerProfiler=Returning).what


FORMS = {
    "numpy's numbers": np.float32,
    "arrays without dimensions": np.array,
    "long doubles": np.longdouble,
    "tensors": lambda number: torch.tensor(number, dtype=torch.float64),
    "fractions": Fraction,
}


@pytest.mark.parametrize("form", FORMS)
def test_numbers_of_a_trace_may_have_any_form(judged, solved, form):
    class Other(solved):
        def trace(self):
            events = super().trace()["traceEvents"]
            exact = FORMS["long doubles" if form == "numpy's numbers" else form]
            forms = {"ts": exact, "dur": exact, "pid": FORMS[form], "tid": float}
            return {"traceEvents": ({**e, **{key: to(e[key]) for key, to in forms.items()}} for e in events)}

    assert "passed" == judged("layer_profiler", LayerProfiler=Other).state
