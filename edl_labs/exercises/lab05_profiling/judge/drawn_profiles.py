"""The cases of self_times and read_a_sampler: trees of calls as rows, operators in columns, samples of stacks."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_CHAIN = ("aten::conv2d", "aten::convolution", "aten::_convolution")


_NAMES = ("aten::linear", "aten::addmm", "aten::copy_", "aten::relu", "aten::to", "aten::_to_copy", "aten::add")


# Where a rule decides; by cpu_s, "below by cuda_s" is above the peak, and the other way round.
_EDGES = (
    *("just cpu", "just gpu", "below the peak", "above the peak", "at the peak"),
    *("below by cuda_s", "above by cuda_s", "slow gpu"),
)
_THREADS = ("main", "backward")


_MODULES = ("als.py", "csc.py", "nearest.py", "coo.py", "loader.py", "sparse.py", "train.py", "model.py")


_FUNCTIONS = ("fit", "tocsr", "weigh", "read", "collate", "decode", "step", "normalize", "shuffle", "walk")


@case_source("self_times")
def profiles(rng: Any) -> list[Case]:
    return [Case(given=_profile(rng)) for _ in range(5)]


@case_source("read_a_sampler")
def samplings(rng: Any) -> list[Case]:
    return [Case(given=one) for one in [_few_samples(rng), *(_samples(rng) for _ in range(3))]]


def _profile(rng: Any) -> dict[str, Any]:
    """Rows of two threads in arbitrary order, and operators as a profiler's table has them."""
    rows: list[dict[str, Any]] = []
    for thread in _THREADS:
        moment = int(rng.integers(0, 3000))
        for top in range(int(rng.integers(3, 5))):
            end = _chain(rng, rows, thread, moment) if top == 0 else _tree(rng, rows, thread, moment, depth=3)
            # Neighbours often touch: one ends in the nanosecond in which the next begins.
            moment = end + int(rng.choice([0, 0, 700, 4000]))
    cpu_flop_per_s = float(rng.integers(4, 30)) * 1e11
    return {
        "rows": [rows[i] for i in rng.permutation(len(rows))],
        "entries": _entries(rng, cpu_flop_per_s),
        "cpu_flop_per_s": cpu_flop_per_s,
    }


def _row(thread: str, name: str, start_ns: int, end_ns: int) -> dict[str, Any]:
    return {"name": name, "thread": thread, "start_s": start_ns / 1e9, "end_s": end_ns / 1e9}


def _chain(rng: Any, rows: list[dict[str, Any]], thread: str, start: int) -> int:
    """A convolution as the deck shows it: three wrappers around the work; when it ends."""
    inner = [int(rng.integers(4_000, 9_000)), int(rng.integers(8_000, 14_000)), int(rng.integers(300_000, 900_000))]
    edges = [int(rng.integers(2_000, 20_000)) for _ in range(6)]
    moment = start + sum(edges[:3])
    for name, spent in zip(("aten::contiguous", "aten::empty", "aten::mkldnn_convolution"), inner, strict=True):
        rows.append(_row(thread, name, moment, moment + spent))
        moment += spent
    for level, name in enumerate(reversed(_CHAIN)):
        moment += edges[5 - level]
        rows.append(_row(thread, name, start + sum(edges[: 2 - level]), moment))
    return moment


def _tree(rng: Any, rows: list[dict[str, Any]], thread: str, start: int, *, depth: int) -> int:
    """A drawn operator with what it calls, itself among it now and then; when it ends."""
    name, moment = str(rng.choice(_NAMES)), start + int(rng.choice([0, 500, 2500]))
    children = int(rng.integers(0, 4)) if depth else 0
    for _ in range(children):
        moment = _tree(rng, rows, thread, moment, depth=depth - 1) + int(rng.choice([0, 0, 300, 1100]))
    end = moment + int(rng.integers(1_000, 30_000))
    rows.append(_row(thread, name, start, end))
    return end


def _entries(rng: Any, cpu_flop_per_s: float) -> list[dict[str, Any]]:
    """Operators whose columns say on which device they ran: large and small, on either, and a coincidence."""
    kinds = [str(kind) for kind in rng.permutation(["cpu"] * 2 + ["small cpu"] * 2 + ["gpu"] * 2 + ["small gpu"] * 2)]
    entries = [_entry(rng, kind, cpu_flop_per_s) for kind in [*kinds, "coincidence"]]
    edges = [_entry(rng, kind, cpu_flop_per_s) for kind in _EDGES]
    return [entries[i] for i in rng.permutation(len(entries))] + edges


def _entry(rng: Any, kind: str, cpu_flop_per_s: float) -> dict[str, Any]:
    flop, launch_s = float(rng.integers(2, 40)) * 1e8, float(rng.uniform(1.5e-5, 6e-5))
    if kind == "cpu":
        cpu_s = flop / cpu_flop_per_s / float(rng.uniform(0.2, 0.7))
        cuda_s = cpu_s * (1 + float(rng.uniform(-0.004, 0.004)))
    elif kind == "small cpu":
        flop, cpu_s = 0.0, float(rng.uniform(5e-6, 2e-5))
        cuda_s = cpu_s * (1 + float(rng.uniform(-0.04, 0.04)))
    elif kind in ("just cpu", "just gpu"):
        # 5 % of one column and 5 % of the other decide differently.
        flop, cpu_s = 0.0, launch_s
        return {"flop": flop, "cpu_s": cpu_s, "cuda_s": cpu_s * (0.95003 if kind == "just cpu" else 1.0501)}
    elif kind == "at the peak":
        # Exact in binary, so that every way to compare says that neither is larger.
        return {"flop": cpu_flop_per_s * 2.0**-14, "cpu_s": 2.0**-14, "cuda_s": 2.0**-14}
    elif kind in ("below the peak", "above the peak"):
        cpu_s = cuda_s = flop / cpu_flop_per_s * (1.05 if kind == "below the peak" else 0.95)
    elif kind in ("below by cuda_s", "above by cuda_s"):
        cuda_s = flop / cpu_flop_per_s * (1.015 if kind == "below by cuda_s" else 0.985)
        cpu_s = flop / cpu_flop_per_s * (0.985 if kind == "below by cuda_s" else 1.015)
    elif kind == "slow gpu":
        # Its kernel is slower than the CPU's peak: the columns alone say where it ran.
        cuda_s = flop / cpu_flop_per_s * 1.5
        cpu_s = 0.5 * cuda_s
    elif kind == "small gpu":
        flop, cpu_s = 0.0, launch_s
        cuda_s = launch_s * float(rng.uniform(0.05, 0.4))
    else:
        cuda_s = flop / cpu_flop_per_s / float(rng.uniform(5, 30))
        cpu_s = cuda_s * (1 + float(rng.uniform(-0.01, 0.01))) if kind == "coincidence" else launch_s
        # A launch that happens to last as long as its kernel is the other kind.
        cpu_s = 2 * cpu_s if kind == "gpu" and 0.9 < cpu_s / cuda_s < 1.1 else cpu_s
    return {"flop": flop, "cpu_s": round(cpu_s, 9), "cuda_s": round(cuda_s, 9)}


def _samples(rng: Any) -> dict[str, Any]:
    """A run in two phases, so that the window is not like the run; stacks with a function that calls itself."""
    frames = _frames(rng, 9)
    count, window = int(rng.integers(60, 110)), int(rng.integers(20, 40))
    change = count - int(rng.integers(window // 4, window - 5))
    early, late = _stacks(rng, frames[:6]), _stacks(rng, frames[3:])
    samples = []
    for number in range(count):
        stacks = early if number < change else late
        idle = bool(rng.random() < 0.15)
        stack = stacks[min(int(rng.exponential(1.3)), len(stacks) - 1)]
        samples.append({"idle": idle, "gil": not idle and bool(rng.random() < 0.35), "stack": stack})
    return {"samples": samples, "rate_hz": int(rng.choice([50, 100, 200])), "window": window}


def _few_samples(rng: Any) -> dict[str, Any]:
    """A run of eight samples that one can count by hand, with all that longer runs have."""
    root, again, late, leaf = _frames(rng, 4)
    early = [[root, leaf], [root, leaf], [root, again, leaf, again]]
    recent = [[root, late], [root], [root, leaf]]
    samples = [
        {"idle": False, "gil": bool(rng.random() < 0.5), "stack": part[i]}
        for part in (early, recent)
        for i in rng.permutation(3)
    ]
    samples.insert(int(rng.integers(0, 4)), {"idle": True, "gil": False, "stack": [root, leaf]})
    samples.insert(int(rng.integers(5, 8)), {"idle": True, "gil": False, "stack": [root, late]})
    return {"samples": samples, "rate_hz": int(rng.choice([50, 100, 200])), "window": 4}


def _frames(rng: Any, count: int) -> list[str]:
    functions = rng.permutation(_FUNCTIONS)[:count]
    return [f"{name} ({rng.choice(_MODULES)}:{int(rng.integers(10, 300))})" for name in functions]


def _stacks(rng: Any, frames: list[str]) -> list[list[str]]:
    """Stacks from the outermost frame to the innermost one; the second holds one frame twice."""
    root, again = frames[0], frames[2]
    plain = [[root, *(str(f) for f in rng.permutation(frames[1:])[: int(rng.integers(1, 4))])] for _ in range(4)]
    return [plain[0], [root, again, frames[1], again], *plain[1:], [root]]
