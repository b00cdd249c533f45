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


@pytest.mark.parametrize("cause", ["compute", "launch", "data", "host", "copy", "alloc"])
def test_an_injected_cause_is_found(cause: str) -> None:
    loop = next(item.loop for item in injected_loops("cuda", size=1024) if item.cause == cause)

    assert cause == attribute(loop.record(20), skip=2).dominant


def test_the_share_of_reads_is_what_the_loop_without_them_saves() -> None:
    """Which cause is the largest depends on how fast the GPU is: an H100's products of 1024² outlast the reads."""
    loop = next(item.loop for item in injected_loops("cuda", size=1024) if item.cause == "sync")
    share = attribute(loop.record(20), skip=2).shares["sync"]
    times_s = loop.times_s(20, (None, "sync"))

    assert share == pytest.approx(1 - times_s["sync"] / times_s[None], abs=0.1)


def test_the_graph_of_a_real_trace_takes_the_time_of_the_trace() -> None:
    loop = injected_loops("cuda", size=1024)[0].loop
    answer = what_if(loop.record(20), "launch", skip=2)

    assert answer.before_s == pytest.approx(answer.replayed_s, rel=0.05)


def test_reads_are_found_with_their_line() -> None:
    loop = next(item.loop for item in injected_loops("cuda") if item.cause == "sync")

    assert "host reads" in {finding.name for finding in diagnose(loop, verify=0).findings}
