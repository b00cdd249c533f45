"""The same loops as torch.profiler would write them: other words, other clocks, a thread for the backward pass."""

from __future__ import annotations

from typing import Any

import pytest

from edl_labs.trace import TracedGPU, TraceEvent, attribute, read_trace, what_if
from tests.data.loops import drawn_spec
from tests.unit.trace.loops import run

_ORIGIN_US = 5_563_422_123_456.0
_WORDS = {
    "step": ("user_annotation", ""),
    "annotation": ("user_annotation", ""),
    "launch": ("cuda_runtime", "cudaLaunchKernel"),
    "copy call": ("cuda_runtime", "cudaMemcpyAsync"),
    "sync": ("cuda_runtime", "cudaStreamSynchronize"),
    "alloc": ("cuda_runtime", "cudaMalloc"),
    "kernel": ("kernel", ""),
    "copy": ("gpu_memcpy", ""),
}


def kineto(gpu: TracedGPU, *, threads: bool = False) -> dict[str, Any]:
    """A VirtualGPU's trace in torch.profiler's words; `threads` puts every second launch on a thread of its own."""
    trace = gpu.trace()
    events = [as_kineto(event, threads) for event in trace.events() if event.kind in _WORDS]
    return {"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}


def as_kineto(event: TraceEvent, threads: bool) -> dict[str, Any]:
    category, name = _WORDS[event.kind]
    args: dict[str, Any] = {"correlation": event.link} if event.link >= 0 else {}
    if event.kind == "copy":
        name = "Memcpy DtoH (Device -> Pageable)" if event.name == "item" else "Memcpy HtoD (Pageable -> Device)"
        args["bytes"] = event.moved_bytes
    if event.kind in ("kernel", "copy"):
        place: dict[str, Any] = {"pid": 0, "tid": 7}
        args["stream"] = 7
    else:
        place = {"pid": 1, "tid": 2 if threads and event.kind == "launch" and event.link % 2 else 1}
    start_us, duration_us = _ORIGIN_US + event.start_s * 1e6, event.duration_s * 1e6
    named = {"name": name or event.name, "cat": category, "args": args}
    return {"ph": "X", **place, **named, "ts": round(start_us, 3), "dur": round(duration_us, 3)}


@pytest.mark.parametrize("threads", [False, True])
@pytest.mark.parametrize(
    "causes",
    [{}, {"kernel_s": 1e-6}, {"kernel_s": 1e-5, "reads": 10}, {"data_s": 3e-3}, {"host_s": 3e-3}],
)
def test_shares_do_not_depend_on_who_wrote_the_trace(causes: dict[str, Any], threads: bool) -> None:
    want = attribute(run(**causes).trace(), skip=1).shares
    found = attribute(read_trace(kineto(run(**causes), threads=threads)), skip=1).shares

    assert want == pytest.approx(found, abs=0.02)


def test_a_blocking_copy_and_its_synchronisation_are_one() -> None:
    loop = drawn_spec(3).loop()
    gpu = loop.run_on(TracedGPU(loop.machine, **loop.parameters), 6)
    want, found = attribute(gpu.trace(), skip=1), attribute(read_trace(kineto(gpu)), skip=1)

    assert "copy" == found.dominant
    assert want.shares == pytest.approx(found.shares, abs=0.02)


@pytest.mark.parametrize(("seed", "cause"), [(7, "data"), (3, "copy"), (6, "sync"), (6, "host")])
def test_gains_do_not_depend_on_who_wrote_the_trace(seed: int, cause: str) -> None:
    loop = drawn_spec(seed).loop()
    gpu = loop.run_on(TracedGPU(loop.machine, **loop.parameters), 6)
    want = what_if(gpu.trace(), cause, copy_speedup=2.0)
    found = what_if(read_trace(kineto(gpu)), cause, copy_speedup=2.0)

    assert want.after_s == pytest.approx(found.after_s, rel=0.05)
