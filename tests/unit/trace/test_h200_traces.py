"""Traces of a real H200, with causes that were put into their loops: tests/data/traces/h200/README.md."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.trace import AnalysedTrace, antipatterns, attribute, read_trace, what_if

FOLDER = Path(__file__).parents[2] / "data" / "traces" / "h200"
# The share of a step that the cause was given, and findings that belong to it.
LOOPS = {
    "small_kernels": ("launch", 0.6, "tiny kernels"),
    "host_reads": ("launch", 0.35, "host reads"),
    "slow_loader": ("host", 0.7, ""),
    "pageable_copies": ("copy", 0.3, "blocking copies"),
}


def h200_trace(name: str) -> AnalysedTrace:
    return read_trace(FOLDER / f"{name}.json.gz")


@pytest.mark.parametrize("name", LOOPS)
def test_the_cause_has_its_share_and_its_finding(name: str) -> None:
    cause, least, finding = LOOPS[name]
    trace = h200_trace(name)
    found = {one.name for one in antipatterns(trace)}

    assert least <= attribute(trace, skip=1).shares[cause]
    assert not finding or finding in found
    assert "layout conversions" not in found


@pytest.mark.parametrize("name", LOOPS)
def test_the_replay_of_an_unchanged_step_takes_its_time(name: str) -> None:
    answer = what_if(h200_trace(name), "launch", skip=1)

    assert answer.before_s == pytest.approx(answer.replayed_s, rel=2e-3)
    assert answer.after_s <= answer.before_s
