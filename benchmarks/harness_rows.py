"""The rows of the table. Each function measures one figure, for our harness and its rivals, and returns plain data."""

from __future__ import annotations

import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch
from harness_payloads import CostlyClock, empty, neighbours, payloads, truth_s
from harness_rivals import HARNESSES, cuda_harnesses, nvbench_once, pyperf_once, torch_samples
from selfcheck import units_of_work

from edl_labs import stats
from edl_labs.bench import compare, measure
from edl_labs.clock import HostClock

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit" / "bench"))

Row = dict[str, Any]


def percentile(values: list[float], share: float) -> float:
    return float(np.quantile(values, share)) if values else float("nan")


def bias(names: list[str], *, rounds: int, budget_s: float, seed: int = 0) -> Row:
    """Found over truth, less one, by payload and harness, a truth slice beside each: median, its doubt (half of the
    95 % interval) and the 95th percentile."""
    every, order, found = payloads(), random.Random(seed), {}
    walls: dict[str, list[float]] = {}
    for name in names:
        errors: dict[str, list[float]] = {harness: [] for harness in HARNESSES}
        for _ in range(rounds):
            for harness in order.sample(list(HARNESSES), len(HARNESSES)):
                before, start = truth_s(every[name]), time.perf_counter()
                took = HARNESSES[harness](every[name], budget_s)
                walls.setdefault(harness, []).append((time.perf_counter() - start) / budget_s)
                errors[harness].append(2 * took / (before + truth_s(every[name])) - 1)
        found[name] = {
            harness: {
                "bias": median(e),
                "doubt": stats.median_interval(e).half_width,
                "p95": percentile([abs(x) for x in e], 0.95),
                "n": len(e),
            }
            for harness, e in errors.items()
        }
    return {"payloads": found, "wall": {h: {"median": median(w), "max": max(w)} for h, w in walls.items()}}


def call_cost(*, rounds: int, budget_s: float) -> Row:
    """Nanoseconds a call outside the payload: what each harness says of an empty function, less the truth."""
    extra: dict[str, list[float]] = {harness: [] for harness in HARNESSES}
    for _ in range(rounds):
        for harness, run in random.sample(list(HARNESSES.items()), len(HARNESSES)):
            before = truth_s(empty)
            took = run(empty, budget_s)
            extra[harness].append(1e9 * (took - (before + truth_s(empty)) / 2))
    return {harness: median(values) for harness, values in extra.items()}


def identical(name: str, *, rounds: int, busy: int, rivals: list[str], budget_s: float = 0.4) -> Row:
    """The error of the ratio of identical code: A then B by rivals, compare by us, in equal budgets."""
    fn = payloads()[name]
    errors: dict[str, list[float]] = {harness: [] for harness in [*rivals, "ours"]}
    walls, alarms = [], {"interval": 0, "band": 0}
    with neighbours(busy):
        for _ in range(rounds):
            for harness in random.sample(list(errors), len(errors)):
                if harness != "ours":
                    first, second = (HARNESSES[harness](fn, budget_s / 2) for _ in range(2))
                    errors[harness].append(abs(second / first - 1))
                    continue
                start = time.perf_counter()
                c = compare({"a": fn, "b": fn}, budget_s=budget_s, precision=0.0)
                walls.append((time.perf_counter() - start) / budget_s)
                errors["ours"].append(abs(c.ratio - 1))
                alarms["interval"] += not c.low <= 1 <= c.high
                alarms["band"] += c.verdict in ("faster", "slower")
    shares = {kind: count / rounds for kind, count in alarms.items()}
    return {
        "p95": {h: percentile(e, 0.95) for h, e in errors.items()},
        "alarms": shares,
        "wall_max": max(walls),
        "n": rounds,
    }


def rank_tests(name: str, *, rounds: int, budget_s: float) -> Row:
    """How often the usual tests call identical code different at 5 %, on the samples of two runs in sequence."""
    try:
        from scipy import stats as tests
    except ImportError:
        return {"skipped": "scipy is not installed"}
    fn, hits = payloads()[name], {"Mann-Whitney": 0, "Welch": 0}
    for _ in range(rounds):
        first, second = (torch_samples(fn, budget_s / 2) for _ in range(2))
        hits["Mann-Whitney"] += tests.mannwhitneyu(first, second).pvalue < 0.05
        hits["Welch"] += tests.ttest_ind(first, second, equal_var=False).pvalue < 0.05
    return {test: count / rounds for test, count in hits.items()} | {"n": rounds}


def known_ratios(*, runs: int, budget_s: float, busy: int = 0) -> Row:
    """Intervals on the real machine for ratios that are known: k units of work over 100, identical code among them.

    Every other run may stop early, as compare does by default; `early` counts those that did.
    """
    clock, covered, ones, early, alarms = HostClock(), 0, 0, 0, {"interval": 0, "band": 0}
    order = random.Random(1)
    with neighbours(busy):
        for run in range(runs):
            count = order.choice([100, 101, 102, 105, 110, 125])
            sides = {"base": units_of_work(100, clock), "more": units_of_work(count, clock)}
            c = compare(sides, budget_s=budget_s, precision=_precision(run), clock=clock)
            early += c.stopped == "precise enough"
            covered += c.low <= count / 100 <= c.high
            if count == 100:
                ones += 1
                alarms["interval"] += not c.low <= 1 <= c.high
                alarms["band"] += c.verdict in ("faster", "slower")
    return {"coverage": covered / runs, "n": runs, "early": early, "identical": ones, "alarms": alarms}


def false_alarms(*, runs: int, budget_s: float) -> Row:
    """Identical code compared again and again: how often the interval, and the verdict with its band, is wrong.

    Every other run may stop early, as compare does by default; `early` counts those that did.
    """
    every = payloads()
    names = ["matmul of 256", "relu of 1M", "torch.add of 64"]
    interval = band = early = 0
    for run in range(runs):
        fn = every[names[run % len(names)]]
        c = compare({"a": fn, "b": fn}, budget_s=budget_s, precision=_precision(run))
        early += c.stopped == "precise enough"
        interval += not c.low <= 1 <= c.high
        band += c.verdict in ("faster", "slower")
    return {"interval": interval / runs, "band": band / runs, "early": early, "n": runs}


def _precision(run: int) -> float | None:
    """Compare's own default and a whole budget in turn, so that the rule that stops early is tried as well."""
    return None if run % 2 else 0.0


def slowdown(*, runs: int, budget_s: float = 0.4) -> Row:
    """How often a slowdown of 1 % is found: the verdict, with a band of 0, is slower. And the median half-width."""
    clock, found, least = HostClock(), 0, []
    for _ in range(runs):
        sides = {"base": units_of_work(100, clock), "slower": units_of_work(101, clock)}
        c = compare(sides, budget_s=budget_s, clock=clock, band=0.0, precision=0.0)
        found += c.verdict == "slower"
        least.append(c.half_width)
    return {"found": found / runs, "n": runs, "half_width": median(least)}


def power_under_load(*, runs: int, budget_s: float = 0.4, busy: int = 2) -> Row:
    """How often compare finds a slowdown of 1, 3 and 10 % beside bursty neighbours; `wrong` counts "faster"."""
    clock, wrong, found = HostClock(), 0, {}
    with neighbours(busy):
        for percent in (1, 3, 10):
            verdicts = []
            for _ in range(runs):
                sides = {"base": units_of_work(100, clock), "slower": units_of_work(100 + percent, clock)}
                verdicts.append(compare(sides, budget_s=budget_s, clock=clock, band=0.0, precision=0.0).verdict)
            found[f"+{percent} %"] = verdicts.count("slower") / runs
            wrong += verdicts.count("faster")
    return {"found": found, "wrong": wrong, "n": runs}


def time_to_one_percent(*, runs: int) -> Row:
    """Seconds of wall time until compare has an interval of ± 1 % on a ratio, by payload."""
    every, found = payloads(), {}
    for name, fn in every.items():
        walls, widths = [], []
        for _ in range(runs):
            start = time.perf_counter()
            c = compare({"a": fn, "b": fn}, precision=0.01)
            walls.append(time.perf_counter() - start)
            widths.append(c.half_width)
        found[name] = {"median_s": median(walls), "p95_s": percentile(walls, 0.95), "half_width": median(widths)}
    return found


def replicates() -> Row:
    """How many replicates a run of 0.2 s keeps when the clock costs 10 µs."""
    fn, clock = payloads()["matmul of 256"], CostlyClock()
    return {
        "ours": measure(fn, budget_s=0.2, clock=clock).blocks,
        "torch blocked_autorange": len(torch_samples(fn, 0.2, timer=clock.now_s)),
    }


def scripted_coverage(*, runs: int) -> Row:
    """The share of intervals that hold the truth on scripted clocks with seeded noise, by shape; no real time in it."""
    from scripted_clock import Noise, ScriptedClock, payload

    found: Row = {}
    for shape in ("drift", "bursts", "bimodal", "heavy"):
        hits = 0
        for seed in range(runs):
            clock, noise = ScriptedClock(cost_s=5e-8), Noise(shape, seed)
            sides = {"a": payload(clock, 25e-6, noise=noise), "b": payload(clock, 25.25e-6, noise=noise)}
            c = compare(sides, clock=clock, budget_s=0.1, precision=0.01, seed=seed)
            hits += c.low <= 1.01 <= c.high
        found[shape] = hits / runs
    return found | {"n": runs}


def mistakes(*, budget_s: float = 0.4) -> Row:
    """Mistakes found and named, and alarms on clean functions."""
    import timing_snippets as snippets

    missed = [f"{kind}: {maker.__name__}" for kind, maker in snippets.MISTAKES if kind not in _kinds(maker, budget_s)]
    alarms = [f"{i}: {kinds}" for i, maker in enumerate(snippets.CLEAN) if (kinds := _kinds(maker, budget_s))]
    total = len(snippets.MISTAKES)
    return {
        "found": 1 - len(missed) / total,
        "n": total,
        "missed": missed,
        "alarms": alarms,
        "clean": len(snippets.CLEAN),
    }


def _kinds(maker: Callable[[], dict[str, Any]], budget_s: float) -> list[str]:
    options = maker()
    restore, fn = options.pop("restore", lambda: None), options.pop("fn")
    try:
        return [item.kind for item in measure(fn, **{"budget_s": budget_s, **options}).warnings]
    finally:
        restore()
        _let_threads_end()


def _let_threads_end() -> None:
    until = time.monotonic() + 10
    while time.monotonic() < until and any(
        thread.daemon and "busy" in repr(getattr(thread, "_target", None)) for thread in threading.enumerate()
    ):
        time.sleep(0.01)


def pyperf_row() -> Row:
    """pyperf once, on a matmul in processes of its own, beside a truth slice here."""
    setup = "import torch; torch.set_num_threads(1); a = torch.randn(256, 256); b = torch.randn(256, 256)"
    try:
        took, wall = pyperf_once(setup, "torch.mm(a, b)")
    except Exception as error:
        return {"skipped": f"pyperf did not run: {type(error).__name__}"}
    return {"bias": took / truth_s(payloads()["matmul of 256"]) - 1, "wall_s": wall}


def cuda_bias(*, rounds: int, budget_s: float) -> Row:
    """On CUDA: found over the profiler's kernel durations of the same calls, interleaved, by payload and harness."""
    harnesses = cuda_harnesses()
    if not harnesses:
        return {"skipped": "no CUDA device here"}
    a = torch.randn(2048, 2048, device="cuda", dtype=torch.bfloat16)
    x = torch.randn(1 << 24, device="cuda")
    found = {}
    every = {"matmul of 2048": lambda: a @ a, "relu of 16M": lambda: torch.relu(x)}
    for name, fn in every.items():
        errors: dict[str, list[float]] = {harness: [] for harness in harnesses}
        for _ in range(rounds):
            for harness in random.sample(list(harnesses), len(harnesses)):
                before = kernel_s(fn)
                took = harnesses[harness](fn, budget_s)
                errors[harness].append(2 * took / (before + kernel_s(fn)) - 1)
        found[name] = {harness: median(e) for harness, e in errors.items()}
    for name, took in nvbench_once(every).items():
        found[name]["NVBench, once"] = took / kernel_s(every[name]) - 1
    return found


def kernel_s(fn: Callable[[], Any], calls: int = 50) -> float:
    """Seconds of kernels per call, from the profiler."""
    from torch.profiler import ProfilerActivity, profile

    fn()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        for _ in range(calls):
            fn()
        torch.accelerator.synchronize()  # noqa: TID251 the profiler's own truth, not a timer of ours
    return sum(event.self_device_time_total for event in seen.key_averages()) / calls / 1e6
