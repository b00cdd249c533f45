"""ridge_and_bound, minibatch_crossover and amdahl: what a machine allows, and what a change can win."""

from __future__ import annotations

import math
from typing import Any

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab02_roofline.answer_forms import pair, say, tidy

_LEVELS = ("L2", "HBM")
_DTYPES = ("fp32", "fp16")


@exercise("ridge_and_bound")
class RidgeAndBound:
    """Ridge points of a machine with several roofs, and the shortest possible time of work on it.

    `student.ridge_point(machine, dtype, level)` and `student.lower_bound(machine, work)`.
    """

    def cases(self, rng: Any) -> list[Any]:
        deck = {
            "machine": {"peak_flop_per_s": {"fp32": 6e12}, "bandwidth_byte_per_s": {"DRAM": 300e9}},
            "work": {"flop": 2 * 1024 * 512, "dtype": "fp32", "moved_bytes": {"DRAM": 4 * (1024 * 512 + 512 + 1024)}},
            "dtype": "fp32",
            "level": "DRAM",
        }
        limiters = ["compute", "HBM", "L2"] * 3
        # What computes in the slower dtype tells who takes the faster peak, and the other way round.
        dtypes = [dtype for dtype in ("fp32", "fp16", "fp32") for _ in range(3)]
        drawn = [_bounded(rng, limiter, dtype) for limiter, dtype in zip(limiters, dtypes, strict=True)]
        return [deck, *drawn, _bounded(rng, "HBM", "fp16", flop=0.0)]

    def probe(self, student: Any, case: Any) -> Any:
        machine = {name: dict(rates) for name, rates in case["machine"].items()}
        work = {**case["work"], "moved_bytes": dict(case["work"]["moved_bytes"])}
        return {
            "ridge": student.ridge_point(machine, case["dtype"], case["level"]),
            "bound": student.lower_bound(machine, work),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got["ridge"], want["ridge"]):
            raise _ridge_mistake(case, got["ridge"], want["ridge"])
        pair(got["bound"], "time_s, limiter")
        if not close(got["bound"][0], want["bound"][0]):
            raise _bound_mistake(case, got["bound"][0])
        if got["bound"][1] != want["bound"][1]:
            raise Wrong(
                f"{got['bound'][1][:20]!r} does not limit this work",
                why="the limiter is what takes longest: 'compute', or the name of a memory level",
                next="put all times side by side and name the largest",
            )


def _bounded(rng: Any, limiter: str, dtype: str, *, flop: float | None = None) -> dict[str, Any]:
    """Work on a drawn machine whose longest time is that of `limiter`, by a fifth at least."""
    plain = float(rng.integers(8, 100)) * 1e12
    peak = {"fp32": plain, "fp16": plain * int(rng.integers(2, 5))}
    bandwidth = dict(
        zip(_LEVELS, (float(rng.integers(40, 120)) * 1e11, float(rng.integers(3, 35)) * 1e11), strict=True)
    )
    longest_s = float(rng.uniform(2e-6, 5e-3))
    # Where the arithmetic decides, it does so with another dtype's peak too, and that time says whose peak was used.
    shares = (0.1, 0.2) if limiter == "compute" else (0.2, 0.8)
    spent_s = {name: longest_s * float(rng.uniform(*shares)) for name in ("compute", *_LEVELS)}
    spent_s[limiter] = longest_s
    return {
        "machine": {"peak_flop_per_s": peak, "bandwidth_byte_per_s": bandwidth},
        "work": {
            "flop": tidy(peak[dtype] * spent_s["compute"]) if flop is None else flop,
            "dtype": dtype,
            "moved_bytes": {level: tidy(bandwidth[level] * spent_s[level]) for level in _LEVELS},
        },
        "dtype": str(rng.choice(_DTYPES)),
        "level": str(rng.choice(_LEVELS)),
    }


def _ridge_mistake(case: Any, ridge: Any, right: float) -> Wrong:
    if ridge and close(1 / ridge, right):
        what, then = "that is bytes per FLOP", "the ridge has the unit of an intensity, FLOP/B"
    elif any(close(ridge, case["machine"]["peak_flop_per_s"][d] / b) for d, b in _others(case)):
        what, then = "that is another roof's ridge", "each dtype has its peak, each level its bandwidth"
    else:
        what, then = "the ridge point is wrong", "at which intensity do both limits allow the same FLOP/s?"
    return Wrong(what, why=f"asked for {case['dtype']} against {case['level']}, {say(ridge)} came back", next=then)


def _others(case: Any) -> list[tuple[str, float]]:
    machine = case["machine"]
    return [(d, b) for d in machine["peak_flop_per_s"] for b in machine["bandwidth_byte_per_s"].values()]


def _bound_mistake(case: Any, time_s: float) -> Wrong:
    machine, work = case["machine"], case["work"]
    moves = [nbytes / machine["bandwidth_byte_per_s"][level] for level, nbytes in work["moved_bytes"].items()]
    compute_s = work["flop"] / machine["peak_flop_per_s"][work["dtype"]]
    if close(time_s, sum(moves) + compute_s) or close(time_s, max(compute_s, sum(moves))):
        what, why = "times were added up", "all memory levels and the arithmetic work at the same time"
    elif close(time_s, min([*moves, compute_s])):
        what, why = "the shortest of the times is not a bound", "work is over when its slowest part is"
    elif close(time_s, moves[-1]) or (close(time_s, max(moves[-1], compute_s)) and len(moves) > 1):
        what, why = "only the main memory was looked at", f"{len(moves) + 1} roofs apply to this work"
    elif close(time_s, compute_s):
        what, why = "only the arithmetic was looked at", f"{len(moves) + 1} roofs apply to this work"
    elif any(close(time_s, work["flop"] / peak) for peak in machine["peak_flop_per_s"].values()):
        what, why = "another dtype's peak was used", f"the work says {work['dtype']}"
    else:
        what, why = "the lower bound is wrong", f"{say(time_s)} s came back"
    return Wrong(what, why=why, next="one time for each level and one for the arithmetic; which of them counts?")


@exercise("minibatch_crossover")
class MinibatchCrossover:
    """The batch at which a layer becomes compute-bound, and the width below which none does.

    `student.batch_at_ridge(inputs, outputs, ridge=, itemsize=)` and `student.width_limit(ridge=, itemsize=)`.
    """

    def cases(self, rng: Any) -> list[Any]:
        deck = [_layer(n, n, 20.0, 4) for n in (512, 1024, 2048, 64, 80)]
        square = [_layer(n, n, *_machine(rng)) for n in rng.integers(400, 9000, size=2).tolist()]
        never = _layer(
            int(rng.integers(40, 150)), int(rng.integers(40, 150)), round(float(rng.uniform(160, 300)), 2), 2
        )
        # A hair above the limit; and layers whose narrow or wide side alone says something else than both.
        barely = _layer(80, 80, 19.9999, 4)
        return [*deck, *square, never, *(_oblong(rng) for _ in range(6)), barely, *_uneven(rng)]

    def probe(self, student: Any, case: Any) -> Any:
        machine = {"ridge": case["ridge"], "itemsize": case["itemsize"]}
        return {
            "batch": student.batch_at_ridge(case["inputs"], case["outputs"], **machine),
            "width": student.width_limit(**machine),
        }

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not _same(got["batch"], want["batch"]):
            raise _batch_mistake(case, got["batch"], want["batch"])
        if not close(got["width"], want["width"]):
            factor = got["width"] / want["width"]
            known = {4 / case["itemsize"]: "4 bytes an element were assumed", 0.5: "half of the width came back"}
            what = next((text for ratio, text in known.items() if close(factor, ratio)), "the width limit is wrong")
            why = f"with {case['itemsize']} bytes an element and a ridge of {case['ridge']}"
            raise Wrong(what, why=why, next="let the batch grow for ever: which intensity does a square layer tend to?")


def _layer(inputs: int, outputs: int, ridge: float, itemsize: int) -> dict[str, Any]:
    return {"inputs": inputs, "outputs": outputs, "ridge": ridge, "itemsize": itemsize}


def _machine(rng: Any) -> tuple[float, int]:
    return round(float(rng.uniform(8, 90)), 2), int(rng.choice([2, 4]))


def _oblong(rng: Any) -> dict[str, Any]:
    return _layer(int(rng.integers(700, 9000)), int(rng.integers(700, 9000)), *_machine(rng))


def _uneven(rng: Any) -> list[dict[str, Any]]:
    """Both ways round: a side below the width limit beside one that makes up for it, and one that does not."""
    ridge, itemsize = _machine(rng)
    limit = ridge * itemsize
    saved = int(limit * rng.uniform(0.65, 0.9)), int(limit * rng.uniform(4, 12))
    lost = int(limit * rng.uniform(0.2, 0.4)), int(limit * rng.uniform(4, 12))
    return [_layer(*sides, ridge, itemsize) for pair in (saved, lost) for sides in (pair, pair[::-1])]


def _same(got: Any, want: float) -> bool:
    return got == want if math.isinf(want) else close(got, want)


def _batch_mistake(case: Any, got: float, want: float) -> Wrong:
    inputs, outputs, bytes_a_flop = case["inputs"], case["outputs"], case["ridge"] * case["itemsize"]
    mean = 2 * inputs * outputs / (inputs + outputs)
    if math.isinf(want):
        what, why = "a batch came back where none is large enough", "the intensity stays below the ridge for ever"
    elif close(got, bytes_a_flop / 2):
        what, why = "only the weights were counted", "inputs and results move too, and they grow with the batch"
    elif close(got, bytes_a_flop / 2 * mean / (mean - bytes_a_flop / 2), rtol=1e-3):
        what, why = "inputs or results were left out", "both move, and both grow with the batch"
    elif close(got, 40 * inputs / (inputs - 80) if inputs != 80 else 0.0) or close(got, 64):
        what, why = "that is the answer for the deck's machine", "ridge and itemsize are arguments"
    elif got == math.inf:
        what, why = "there is a batch that reaches the ridge", "this layer is wide enough"
    else:
        what, why = "the batch is wrong", f"{say(got)} came back"
    return Wrong(what, why=why, next="write the intensity as a function of the batch, set it equal to the ridge, solve")


@exercise("amdahl")
class Amdahl:
    """The speed-up of the whole when some classes of operations become faster.

    `student.speedup(classes, faster)` gives the speed-up of the whole.
    """

    def cases(self, rng: Any) -> list[Any]:
        table = {"tensor contraction": (99.80, 61.0), "normalization": (0.17, 25.5), "element-wise": (0.03, 13.5)}
        deck = {name: {"flop_share": round(f / 100, 6), "time_share": t / 100} for name, (f, t) in table.items()}
        free = {"normalization": math.inf, "element-wise": math.inf}
        asked = [{"tensor contraction": math.inf}, free, {"tensor contraction": 8.0}]
        return [{"classes": deck, "faster": faster} for faster in asked] + [_profile(rng) for _ in range(6)]

    def probe(self, student: Any, case: Any) -> Any:
        return student.speedup({name: dict(row) for name, row in case["classes"].items()}, dict(case["faster"]))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if not close(got, want):
            raise _speedup_mistake(case, got, want)


def _shares(drawn: list[float]) -> list[float]:
    """Shares of three decimals that still add up to 1."""
    first = [round(share, 3) for share in drawn[:-1]]
    return [*first, round(max(0.0, 1 - sum(first)), 3)]


def _profile(rng: Any) -> dict[str, Any]:
    names = [f"class {letter}" for letter in "ABCDE"[: int(rng.integers(2, 6))]]
    times, flops = (_shares(rng.dirichlet([weight] * len(names)).tolist()) for weight in (2.0, 0.4))
    rows = zip(names, flops, times, strict=True)
    changed = [name for name in names[1:] if rng.random() < 0.6] or [names[0]]
    factors = {name: float(rng.choice([0.5, 1.5, 2.0, 4.0, 10.0, math.inf])) for name in changed}
    return {"classes": {name: {"flop_share": f, "time_share": t} for name, f, t in rows}, "faster": factors}


def _speedup_mistake(case: Any, got: float, want: float) -> Wrong:
    rows, faster = case["classes"], case["faster"]
    left = {share: sum(row[share] / faster.get(name, 1.0) for name, row in rows.items()) for share in ("flop_share",)}
    mean = sum(row["time_share"] * faster.get(name, 1.0) for name, row in rows.items())
    if close(got * left["flop_share"], 1.0):
        what, why = "FLOPs were taken for time", "a class with 0.2 % of the FLOPs can take a quarter of the time"
    elif close(got, mean) or (mean == math.inf and got == math.inf):
        what, why = "the factors were averaged", "what is slow stays slow: add up times, not speeds"
    elif got and close(1 / got, want):
        what, why = "that is the share of time that is left", "a speed-up is old time over new time"
    elif got and close(100 * want, got):
        what, why = "that is a percentage", "return the factor"
    else:
        what, why = "the speed-up is wrong", f"{say(got)} came back"
    return Wrong(what, why=why, next="how long does each class take afterwards, if the whole took 1 before?")
