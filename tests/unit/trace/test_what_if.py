"""Predicted gains against the same loops run without the cause."""

from __future__ import annotations

import pytest

from edl_labs.errors import UsageError
from edl_labs.trace import ABLATIONS, TracedGPU, TraceError, VirtualLoop, ablate, most_to_gain, what_if
from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.graph_replay import simulate
from tests.data.loops import drawn_spec
from tests.unit.trace.loops import QUIET, held_then_busy, traced


@pytest.mark.parametrize("seed", range(40, 46))
def test_a_graph_run_unchanged_takes_the_time_of_its_trace(seed: int) -> None:
    answer = what_if(drawn_spec(seed).loop().record(5), "data")

    assert answer.before_s == pytest.approx(answer.replayed_s, rel=0.02)


@pytest.mark.parametrize(
    ("causes", "cause", "mended"),
    [
        ({"data_s": 3e-3}, "data", {}),
        ({"host_s": 2e-4, "kernel_s": 2e-6}, "host", {"kernel_s": 2e-6}),
        ({"kernel_s": 1e-5, "reads": 10}, "sync", {"kernel_s": 1e-5}),
        ({"data_s": 1e-3, "host_s": 5e-4, "kernel_s": 4e-5}, "data", {"host_s": 5e-4, "kernel_s": 4e-5}),
        ({"data_s": 3e-3, "reads": 2}, "sync", {"data_s": 3e-3}),
    ],
)
def test_the_gain_is_that_of_the_mended_loop(causes: dict[str, float], cause: str, mended: dict[str, float]) -> None:
    real_s = simulate(AnalysedTrace(traced(steps=8, **mended)).graph).per_step_s(1)

    assert real_s == pytest.approx(what_if(traced(steps=8, **causes), cause).after_s, rel=0.02)


@pytest.mark.parametrize("cause", ABLATIONS)
@pytest.mark.parametrize("seed", [8, 22])
def test_predictions_hold_on_mixtures(seed: int, cause: str) -> None:
    found = ablate(drawn_spec(seed).loop(), cause, steps=6)

    assert found.after_s == pytest.approx(found.predicted.after_s, rel=0.1)


@pytest.mark.parametrize("steps", [3, 12])
def test_code_behind_a_synchronisation_counts_once_a_step(steps: int) -> None:
    found = ablate(VirtualLoop(held_then_busy), "host", steps=steps)

    assert pytest.approx(found.predicted.before_s) == found.predicted.replayed_s
    assert pytest.approx(found.gain_s, rel=1e-3) == found.predicted.gain_s


def test_a_share_is_an_upper_bound_of_a_gain() -> None:
    # Data and code take 2 ms each a step: without either the other is still in the way.
    answer = what_if(traced(data_s=2e-3, host_s=2e-3, kernel_s=100e-6, kernels=20), "data")

    assert 2e-3 > answer.gain_s > 1e-3


def test_copies_that_wait_for_nobody_are_hidden() -> None:
    gpu = TracedGPU("A100-80GB", **QUIET)
    source, target = gpu.host_empty(8_000_000), gpu.empty(8_000_000)
    for _ in range(8):
        with gpu.step():
            gpu.copy(target, source)
            gpu.launch("gemm", duration_s=2e-3)

    assert pytest.approx(2e-3, rel=0.01) == what_if(gpu.trace(), "copy").after_s


def test_an_event_between_streams_is_kept() -> None:
    gpu = TracedGPU("A100-80GB", **QUIET)
    side = gpu.Stream()
    for _ in range(6):
        with gpu.step():
            gpu.launch("first", duration_s=1e-3, stream=side)
            gpu.current_stream().wait_stream(side)
            gpu.launch("second", duration_s=1e-3)
            side.wait_stream(gpu.current_stream())
    answer = what_if(gpu.trace(), "launch")

    assert pytest.approx(2e-3, rel=0.01) == answer.after_s


def test_the_best_gain_comes_first() -> None:
    answers = most_to_gain(traced(data_s=3e-3))

    assert "data" == answers[0].cause
    assert sorted((answer.gain_s for answer in answers), reverse=True) == [answer.gain_s for answer in answers]


def test_an_unknown_cause_is_refused() -> None:
    with pytest.raises(UsageError, match="'magic' is not a cause"):
        what_if(traced(), "magic")


def test_skipping_every_step_is_refused() -> None:
    with pytest.raises(TraceError, match="no step is left"):
        what_if(traced(steps=3), "data", skip=3)


def test_a_loop_says_what_it_cannot_leave_out() -> None:
    with pytest.raises(UsageError, match="has no version without"):
        ablate(VirtualLoop(lambda gpu, state: gpu.launch("k", duration_s=1e-5)), "communication")
