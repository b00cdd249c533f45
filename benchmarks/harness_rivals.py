"""The harnesses that are compared. Each is called through its public interface, and all have the same signature here.

A harness takes a function and a budget in seconds and returns seconds per call.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
import timeit
from collections.abc import Callable
from pathlib import Path
from typing import Any

from torch.utils import benchmark

from edl_labs.bench import measure

Harness = Callable[[Callable[[], Any], float], float]
_PROBE_S = 2e-3


def calls_for(fn: Callable[[], Any], budget_s: float) -> int:
    """How many calls fill a budget, from a short look."""
    fn()
    calls, start = 0, time.perf_counter()
    while time.perf_counter() - start < _PROBE_S:
        fn()
        calls += 1
    return max(1, int(calls * budget_s / _PROBE_S))


def naive(fn: Callable[[], Any], budget_s: float) -> float:
    """What people write: a reading before and after each call, and the mean."""
    times = []
    for _ in range(min(100_000, calls_for(fn, budget_s))):
        start = time.perf_counter()
        fn()
        times.append(time.perf_counter() - start)
    return sum(times) / len(times)


def timeit_min(fn: Callable[[], Any], budget_s: float) -> float:
    """timeit as its documentation advises: the least of several repeats."""
    number = max(1, calls_for(fn, budget_s) // 7)
    return min(timeit.repeat(fn, number=number, repeat=7)) / number


def torch_timeit(fn: Callable[[], Any], budget_s: float) -> float:
    return benchmark.Timer("fn()", globals={"fn": fn}).timeit(calls_for(fn, budget_s)).median


def torch_blocked(fn: Callable[[], Any], budget_s: float) -> float:
    return benchmark.Timer("fn()", globals={"fn": fn}).blocked_autorange(min_run_time=budget_s).median


def torch_adaptive(fn: Callable[[], Any], budget_s: float) -> float:
    timer = benchmark.Timer("fn()", globals={"fn": fn})
    return timer.adaptive_autorange(min_run_time=budget_s / 20, max_run_time=budget_s).median


def inductor(fn: Callable[[], Any], budget_s: float) -> float:
    from torch._inductor.runtime.benchmarking import Benchmarker

    # Milliseconds in and out.
    return Benchmarker().benchmark_cpu(fn, warmup=1e3 * budget_s / 5, rep=1e3 * budget_s * 4 / 5) / 1e3


def ours(fn: Callable[[], Any], budget_s: float) -> float:
    return measure(fn, budget_s=budget_s).median_s


HARNESSES: dict[str, Harness] = {
    "naive loop": naive,
    "timeit, least of 7": timeit_min,
    "torch timeit": torch_timeit,
    "torch blocked_autorange": torch_blocked,
    "torch adaptive_autorange": torch_adaptive,
    "inductor benchmarker": inductor,
    "ours": ours,
}


def cuda_harnesses() -> dict[str, Harness]:
    """The harnesses for CUDA that are installed here; empty without a device."""
    import torch

    if not torch.cuda.is_available():
        return {}
    found: dict[str, Harness] = {"ours": ours, "torch blocked_autorange": torch_blocked}
    try:
        from triton import testing
    except ImportError:
        return found
    found["triton do_bench"] = lambda fn, budget_s: testing.do_bench(fn, rep=int(1e3 * budget_s)) / 1e3
    found["triton do_bench_cudagraph"] = lambda fn, budget_s: testing.do_bench_cudagraph(fn, rep=20) / 1e3
    return found


def nvbench_once(payloads: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Seconds of GPU time per call by NVBench's Python package, one run for all payloads; empty where it is missing."""
    try:
        import cuda.bench as nvbench
        import torch
    except ImportError:
        return {}

    def benchmark_of(fn: Callable[[], Any], name: str) -> Callable[[Any], None]:
        def run(state: Any) -> None:
            stream = torch.cuda.ExternalStream(state.get_stream().addressof())

            def launch(_: Any) -> None:
                with torch.cuda.stream(stream):
                    fn()

            state.exec(launch)

        run.__name__ = name
        return run

    for name, fn in payloads.items():
        nvbench.register(benchmark_of(fn, name.replace(" ", "_")))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "nvbench.json")
        nvbench.run_all_benchmarks(["harness_quality", "--json", str(file)])
        data = json.loads(file.read_text(encoding="utf-8"))
    return dict(zip(payloads, map(_nvbench_mean_s, data["benchmarks"]), strict=True))


def _nvbench_mean_s(entry: dict[str, Any]) -> float:
    summaries = {item["tag"]: item for item in entry["states"][0]["summaries"]}
    return float(summaries["nv/cold/time/gpu/mean"]["data"][0]["value"])


def pyperf_once(setup: str, statement: str) -> tuple[float, float]:
    """Seconds per call by pyperf (three processes), and how long that took."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "pyperf.json")
        command = [sys.executable, "-m", "pyperf", "timeit", "-q", "-p", "3", "-s", setup, "-o", str(file), statement]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        data = json.loads(file.read_text(encoding="utf-8"))
    values = [value for run in data["benchmarks"][0]["runs"] for value in run.get("values", ())]
    return sum(values) / len(values), time.perf_counter() - start


def torch_samples(fn: Callable[[], Any], budget_s: float, **options: Any) -> list[float]:
    """The block samples that blocked_autorange keeps, per call."""
    return list(benchmark.Timer("fn()", globals={"fn": fn}, **options).blocked_autorange(min_run_time=budget_s).times)
