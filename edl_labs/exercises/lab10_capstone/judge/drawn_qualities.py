"""The cases of time_to_quality: the best batch is at the ridge, above it, below it, or where memory ends."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest

_KINDS = ("above", "below", "memory", "ridge")
_CHIPS = ((6e12, 300e9), (125e12, 0.9e12), (312e12, 2.039e12), (989e12, 3.35e12))  # deck 004's, V100, A100, H100
_TRIES = 2000  # one draw in some twenty is asked
_MOST_GPUS = 12  # or as many as end first of these, so that a deadline needs the last of them
_EDGES = ("strictly in time", "one too many", "none alone", "halved", "samples of one")  # alike in some
_MANY = (3, 8)  # GPUs, of which one is no power of two


@case_source("time_to_quality")
def trainings(rng: Any) -> list[Case]:
    """One of each kind on each chip, one whose deadlines are kept exactly, and one in which a second GPU loses time."""
    cases = [*(_decided(rng, _KINDS[at], _CHIPS[at]) for at in rng.permutation(len(_KINDS))), _exact(rng)]
    cases.append(_slower_with_two(rng))
    return [Case.split(one, "slips") for one in cases]


def _decided(rng: Any, kind: str, chip: tuple[float, float]) -> dict[str, Any]:
    for _ in range(_TRIES):
        case = _case(rng, kind, chip)
        best = _best(case, 1)
        ridge = _ridge(case)
        most = case["machine"]["most_samples"]
        place = (
            "memory" if best == most else "ridge" if abs(best - ridge) <= 1 else "above" if best > ridge else "below"
        )
        if place != kind:
            continue
        slips = _slips(case)
        right = {"best": [_best(case, gpus) for gpus in case["gpus"]], "fewest": _fewest(case)}
        apart = {tuple(map(str, one)) for one in slips["best"].values()}
        # Some rules agree in some kinds (the largest batch where memory ends); what is right agrees with few.
        alike = sum(one == right["best"] for one in slips["best"].values())
        fewest = {key: one for key, one in slips["fewest"].items() if key not in _EDGES}
        if alike > (3 if kind == "memory" else 2) or right["fewest"] in fewest.values():
            continue
        if len(apart) >= 5 and len({tuple(map(str, one)) for one in fewest.values()}) == len(fewest):
            return _asked(case)
    raise AssertionError(f"no training with its best batch at {kind} was drawn; draw other sizes")


def _asked(case: dict[str, Any]) -> dict[str, Any]:
    slips = _slips(case)
    return {**case, "slips": {kind: {name: digest(one) for name, one in slips[kind].items()} for kind in slips}}


def _exact(rng: Any) -> dict[str, Any]:
    """A training whose deadlines are kept exactly, but for one that one GPU more than there are would keep.

    All numbers are powers of two, or few of them added up, so that times are exact in whatever order one computes. The
    best batch is at the ridge of each GPU.
    """
    ridge, byte_per_s = 2 ** int(rng.integers(4, 7)), 2.0**40
    weight_bytes = 2 ** int(rng.integers(28, 32))
    moves_s, sample_bytes = weight_bytes / byte_per_s, weight_bytes // ridge // 4
    case: dict[str, Any] = {
        "job": {
            "steps": 2 ** int(rng.integers(9, 14)),
            "critical_batch": 8 * ridge,
            "sample_flop": int((weight_bytes // ridge + sample_bytes) * 2**6),
            "weight_bytes": weight_bytes,
            "sample_bytes": sample_bytes,
        },
        "machine": {
            "flop_per_s": 2**6 * byte_per_s,
            "memory_byte_per_s": byte_per_s,
            "overhead_s": moves_s / 64,
            "sync_s": moves_s / 128,
            "most_samples": 3 * ridge,
            "most_gpus": 4,
        },
        "gpus": [1, 2, 4],
        "asked": [[ridge, 1], [4 * ridge, 4], [2 * ridge, 1], [ridge, 2]],
    }
    if any(_best(case, gpus) != gpus * ridge for gpus in (1, 2, 4)):
        raise AssertionError("a training's best batch is not at the ridge, where its times are exact; draw other sizes")
    times = {gpus: float(_quality_s(case, _best(case, gpus), gpus)) for gpus in (1, 2, 4, 5)}
    return _asked({**case, "deadlines_s": [times[4], times[1], (times[4] + times[5]) / 2, times[2]]})


def _slower_with_two(rng: Any) -> dict[str, Any]:
    """A training whose best batch is one sample a GPU; with two or three GPUs it takes longer than with one.

    In seconds of a step on one GPU, 2 are needed for B_c = 1; n GPUs need (1 + 1 / n) (1 + sync).
    """
    flop_per_s, byte_per_s = _CHIPS[int(rng.integers(len(_CHIPS)))]
    sample_flop = int(rng.integers(2, 50)) * 10**9
    computes_s, steps, most_gpus = sample_flop / flop_per_s, int(rng.integers(20, 900)) * 100, int(rng.integers(9, 13))
    moved = int(0.1 * computes_s * byte_per_s)
    overhead_s = round(0.2 * computes_s, 9)
    case: dict[str, Any] = {
        "job": {
            "steps": steps,
            "critical_batch": 1,
            "sample_flop": sample_flop,
            "weight_bytes": moved,
            "sample_bytes": moved,
        },
        "machine": {
            "flop_per_s": flop_per_s,
            "memory_byte_per_s": byte_per_s,
            "overhead_s": overhead_s,
            "sync_s": round(float(rng.uniform(0.53, 0.57)) * (computes_s + overhead_s), 9),
            "most_samples": int(rng.integers(8, 30)),
            "most_gpus": most_gpus,
        },
        "gpus": [1, *_MANY],
        "asked": [[1, 1], [8, 2], [6, 3]],
    }
    times = {gpus: float(_quality_s(case, _best(case, gpus), gpus)) for gpus in (1, 3, 4, most_gpus)}
    if not times[4] < times[1] < times[3]:
        raise AssertionError("a second GPU does not lose time; draw another sync_s")
    aims = (1.01 * times[1], 1.01 * times[4], 1.001 * times[most_gpus], 0.5 * times[most_gpus])
    return _asked({**case, "deadlines_s": [float(f"{one:.6g}") for one in aims]})


def _case(rng: Any, kind: str, chip: tuple[float, float]) -> dict[str, Any]:
    flop_per_s, byte_per_s = chip
    ridge = int(rng.integers(20, 120))
    weight_bytes = int(rng.integers(20, 200)) * 10**7
    sample_bytes = int(
        weight_bytes / ridge * float(rng.uniform(1.0, 6.0) if kind == "below" else rng.uniform(0.02, 0.2))
    )
    moved_s = (weight_bytes + ridge * sample_bytes) / byte_per_s
    sample_flop = int(flop_per_s * moved_s / ridge)
    critical = int(ridge * float({"below": rng.uniform(0.1, 0.6)}.get(kind, rng.uniform(1.5, 6))))
    overhead_s = moved_s * float({"above": rng.uniform(0.3, 2)}.get(kind, rng.uniform(0.01, 0.03)))
    most = int(ridge * float({"memory": rng.uniform(0.3, 0.9)}.get(kind, rng.uniform(3, 8))))
    case: dict[str, Any] = {
        "job": {
            "steps": int(rng.integers(20, 900)) * 100,
            "critical_batch": critical,
            "sample_flop": sample_flop,
            "weight_bytes": weight_bytes,
            "sample_bytes": sample_bytes,
        },
        "machine": {
            "flop_per_s": flop_per_s,
            "memory_byte_per_s": byte_per_s,
            "overhead_s": round(overhead_s, 9),
            "sync_s": round(moved_s * float(rng.uniform(0.05, 0.3)), 9),
            "most_samples": most,
            "most_gpus": _MOST_GPUS,
        },
        "gpus": [1, *_MANY],
    }
    case["asked"] = [[most, 1], [max(1, ridge // 2), 1], [4 * max(2, most // 3), 4], [2 * max(2, ridge // 3), 2]]
    first = _quality_s(case, _best(case, 1), 1)
    times = [_quality_s(case, _best(case, gpus), gpus) for gpus in range(1, _MOST_GPUS + 1)]
    last = min(times)
    most_gpus = case["machine"]["most_gpus"] = 1 + times.index(last)
    aims = [
        last + (first - last) * float(rng.uniform(0.02, 0.1)),
        last + (first - last) * float(rng.uniform(0.15, 0.5)),
    ]
    all_of_them = (last + min(times[: most_gpus - 1], default=last)) / 2
    case["deadlines_s"] = [float(f"{one:.6g}") for one in (*aims, 1.05 * first, all_of_them, 0.5 * last)]
    return case


def _step_s(case: Any, batch: Any, gpus: int) -> Any:
    """Seconds of a step; `batch` may be an array."""
    import numpy

    job, machine, one = case["job"], case["machine"], batch / gpus
    moves = (job["weight_bytes"] + one * job["sample_bytes"]) / machine["memory_byte_per_s"]
    longer = numpy.maximum(one * job["sample_flop"] / machine["flop_per_s"], moves)
    return longer + machine["overhead_s"] + (machine["sync_s"] if gpus > 1 else 0.0)


def _quality_s(case: Any, batch: Any, gpus: int) -> Any:
    return case["job"]["steps"] * (1 + case["job"]["critical_batch"] / batch) * _step_s(case, batch, gpus)


def _batches(case: Any, gpus: int, most: int | None = None) -> Any:
    import numpy

    return numpy.arange(gpus, gpus * (most or case["machine"]["most_samples"]) + 1, gpus)


def _best(case: Any, gpus: int, most: int | None = None) -> int:
    batches = _batches(case, gpus, most)
    return int(batches[_quality_s(case, batches, gpus).argmin()])


def _ridge(case: Any) -> int:
    job, machine = case["job"], case["machine"]
    gained = job["sample_flop"] / machine["flop_per_s"] - job["sample_bytes"] / machine["memory_byte_per_s"]
    return max(1, -int(-job["weight_bytes"] / machine["memory_byte_per_s"] / gained // 1)) if gained > 0 else 10**9


def _slips(case: Any) -> dict[str, Any]:
    """What other rules give: batches for the numbers of GPUs, and GPUs for the deadlines."""
    most, gpus = case["machine"]["most_samples"], case["gpus"]
    ridge, critical, of_one = _ridge(case), case["job"]["critical_batch"], _best(case, 1)
    choices = {one: _batches(case, one) for one in gpus}
    per_s = [int(choices[one][(choices[one] / _step_s(case, choices[one], one)).argmax()]) for one in gpus]
    best = {
        "throughput": per_s,
        "smallest": list(gpus),
        "ridge": [one * min(ridge, most) for one in gpus],
        "critical": [min(one * most, -(-critical // one) * one) for one in gpus],
        "no memory": [_best(case, one, 20 * most) for one in gpus],
        "memory of one": [_best(case, one, max(1, most // one)) for one in gpus],
        "best of one": [-(-of_one // one) * one for one in gpus],
    }
    beyond = {one: _quality_s(case, _best(case, one), one) for one in range(1, case["machine"]["most_gpus"] + 2)}
    times = dict(list(beyond.items())[:-1])
    shared = {one: _quality_s(case, -(-of_one // one) * one, one) for one in times}
    alike = {one: _quality_s(case, of_one * one, one) for one in times}
    deadlines = case["deadlines_s"]
    fewest = {
        "linear": [_among(times, -int(-times[1] // one)) for one in deadlines],
        "batch of one": [_first(shared, one) for one in deadlines],
        "samples of one": [_first(alike, one) for one in deadlines],
        "shortest": [
            min(times, key=lambda one: times[one]) if min(times.values()) <= one else None for one in deadlines
        ],
        "powers of two": [_first({n: times[n] for n in (1, 2, 4, 8) if n in times}, one) for one in deadlines],
        "last left out": [_first({n: times[n] for n in list(times)[:-1]}, one) for one in deadlines],
        "none alone": [_first({n: times[n] for n in times if n > 1}, one) for one in deadlines],
        "halved": [_halved(times, one) for one in deadlines],
        "strictly in time": [next((n for n in times if times[n] < one), None) for one in deadlines],
        "one too many": [_first(beyond, one) for one in deadlines],
    }
    return {"best": best, "fewest": fewest}


def _fewest(case: Any) -> list[Any]:
    times = {one: _quality_s(case, _best(case, one), one) for one in range(1, case["machine"]["most_gpus"] + 1)}
    return [_first(times, one) for one in case["deadlines_s"]]


def _first(times: dict[int, float], deadline_s: float) -> int | None:
    return next((one for one in times if times[one] <= deadline_s), None)


def _halved(times: dict[int, float], deadline_s: float) -> int | None:
    """What a search by bisection finds, as if each GPU more were faster."""
    low, high = 1, max(times)
    if times[high] > deadline_s:
        return None
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if times[middle] <= deadline_s else (middle + 1, high)
    return low


def _among(times: dict[int, float], gpus: int) -> int | None:
    return gpus if gpus in times else None
