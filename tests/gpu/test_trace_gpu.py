"""Loops with an injected cause on this machine's GPU are diagnosed, and recorded."""

from __future__ import annotations

import pytest
import torch

from edl_labs.trace import attribute, diagnose, what_if
from tests.data.loops import injected_loops

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]


@pytest.mark.parametrize("place", range(7))
def test_an_injected_cause_is_found(place: int) -> None:
    item = injected_loops("cuda", size=1024)[place]

    assert item.cause == attribute(item.loop.record(20), skip=2).dominant


def test_the_graph_of_a_real_trace_takes_the_time_of_the_trace() -> None:
    loop = injected_loops("cuda", size=1024)[0].loop
    answer = what_if(loop.record(20), "launch", skip=2)

    assert answer.before_s == pytest.approx(answer.replayed_s, rel=0.05)


def test_reads_are_found_with_their_line() -> None:
    loop = next(item.loop for item in injected_loops("cuda") if item.cause == "sync")

    assert "host reads" in {finding.name for finding in diagnose(loop, verify=0).findings}
