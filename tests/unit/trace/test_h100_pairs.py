"""Pairs that were handed in from a real H100: tests/data/traces/h100/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.course.marks.recording_flags import recording_flags
from edl_labs.errors import Wrong
from edl_labs.trace import read_trace
from edl_labs.trace._hand_in import step_s
from edl_labs.trace.packed_trace import FILES
from tests.unit.trace.own_traces import pair_of

FOLDER = Path(__file__).parents[2] / "data" / "traces" / "h100"
# What limits the loop and falls by the change, and what does neither.
PAIRS = {"pageable": ("copy", "launch"), "reads": ("launch", "copy"), "small_kernels_compiled": ("launch", "sync")}


def files_of(name: str) -> tuple[bytes, bytes]:
    before, after = ((FOLDER / f"{name}_{which}.json.gz").read_bytes() for which in ("before", "after"))
    return before, after


@pytest.mark.parametrize("name", PAIRS)
def test_an_honest_pair_has_full_points_for_its_cause_alone(name: str) -> None:
    right, wrong = PAIRS[name]
    pair = pair_of(*files_of(name))
    pair.require_same_work()
    pair.require_fall(pair.require_cause(right))
    pair.require_possible_gain(right)

    with pytest.raises(Wrong, match="does not limit the loop"):
        pair.require_cause(wrong)


def test_honest_pairs_have_no_flag() -> None:
    assert {} == recording_flags({name: dict(zip(FILES, files_of(name), strict=True)) for name in PAIRS})


def test_a_step_ends_when_the_device_is_done_however_far_the_host_runs_ahead() -> None:
    trace = read_trace(FOLDER / "pageable_after.json.gz")
    by_the_host = [end - start for start, end in trace.steps]

    assert step_s(trace) == pytest.approx(71.4e-3, rel=0.01)
    assert max(by_the_host) < 0.1 * step_s(trace)
