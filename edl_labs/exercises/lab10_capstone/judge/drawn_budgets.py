"""The cases of cost: runs where memory, deadline, whole nodes and the set-up each decide something."""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations, pairwise
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest

# Peaks in bf16 and memory of V100 (fp16), A100s, H100: datasheets; prices are of the size that clouds asked in 2025.
_CHIPS = ((125e12, 32e9, 1.0), (312e12, 40e9, 1.5), (312e12, 80e9, 2.0), (989e12, 80e9, 3.5))
_TRIES = 3000  # one draw in some ten adds a case that tells two slips apart
_MOST = 9  # cases; six or seven mostly do
_APART = 1e-3  # of the money: no tie between two numbers of GPUs


@case_source("cost")
def runs(rng: Any) -> list[Case]:
    """Cases that tell every slip from what is right, and from each other slip.

    Behind those that are drawn for it come a run that fills its GPUs to the last byte, one that would be in time on a
    node that is not whole, one that cannot be done, one that ends at its deadline, one for a single GPU, and small runs
    for each slip about nodes, shares and the ends of a search.
    """
    cases: list[Any] = []
    open_pairs = set(combinations([*_DRAWN, "right"], 2))
    for _ in range(_TRIES):
        case = _case(rng)
        right = _answer(case)
        if right["gpus"] is None or not _is_clear(case):
            continue
        found = {key: _answer(case, key) for key in _DRAWN} | {"right": right}
        told = {pair for pair in open_pairs if found[pair[0]] != found[pair[1]]}
        if len(told) < max(1, len(open_pairs) // 3):
            continue
        cases.append(_asked(case))
        open_pairs -= told
        if not open_pairs:
            edges = [_exact(rng), _in_part(rng), _impossible(rng), _at_the_deadline(rng), _for_one(rng)]
            edges += [_small(rng, slip) for slip in _SMALL]
            return [Case.split(one, "slips", "ways") for one in [*cases, *(_asked(case) for case in edges)]]
        if len(cases) == _MOST:
            cases, open_pairs = [], set(combinations([*_DRAWN, "right"], 2))
    raise AssertionError(f"no cases tell {sorted(open_pairs)} apart; draw other sizes")


def _case(rng: Any) -> dict[str, Any]:
    peak, memory, price = _CHIPS[int(rng.integers(len(_CHIPS)))]
    node = int(rng.choice([4, 8]))
    parameters = int(rng.integers(8, 140)) * 10**8
    recompute = bool(rng.integers(2))
    chip = {
        "flop_per_s": peak,
        "achieved": round(float(rng.uniform(0.25, 0.5)), 2),
        "memory_bytes": memory,
        "node_gpus": node,
        "most_gpus": int(rng.choice([64, 128, 256])),
        "price_per_gpu_h": price,
        "setup_h": round(float(rng.uniform(1, 12)), 1),
    }
    run = {
        "parameters": parameters,
        "tokens": int(parameters * rng.integers(4, 20)),
        "batch": int(rng.choice([96, 120, 144, 160, 192, 240, 256, 320, 360, 480])),
        "recompute": recompute,
        "state_bytes": int(rng.choice([16, 18])),
        "activation_bytes": float(round(memory * float(rng.uniform(0.1, 0.5 if recompute else 0.8)), -8)),
    }
    case = {"run": run, "chip": chip}
    aim = int(rng.integers(3, chip["most_gpus"] // 2))
    return {**case, "run": {**run, "deadline_h": round(_hours(case, aim) + 0.05, 1)}}


def _impossible(rng: Any) -> dict[str, Any]:
    """A run that ends too late with every number of GPUs."""
    while True:
        case = _case(rng)
        late = {**case["run"], "deadline_h": round(0.5 * _hours(case, case["chip"]["most_gpus"]), 1)}
        case = {**case, "run": late}
        if _answer(case)["gpus"] is None and _answer(case, "no deadline")["gpus"] is not None:
            return case


def _exact(rng: Any) -> dict[str, Any]:
    """A run whose state and activations fill some number of GPUs exactly, which is the cheapest one."""
    for _ in range(_TRIES):
        case = _case(rng)
        run, chip = case["run"], case["chip"]
        gpus = int(2 ** rng.integers(2, 6))  # by which quotients are exact, in whatever order one divides
        left = chip["memory_bytes"] - run["parameters"] * run["state_bytes"] / gpus
        late = round(_hours(case, gpus) + 0.05, 1)
        case = {**case, "run": {**run, "activation_bytes": left, "deadline_h": late}}
        filled = left > 0 and _held(case, gpus) == chip["memory_bytes"] and _answer(case)["gpus"] == gpus
        if filled and _is_clear(case) and _answer(case, "strictly less")["gpus"] != gpus:
            return case
    raise AssertionError("no run fills its GPUs exactly; draw other sizes")


def _in_part(rng: Any) -> dict[str, Any]:
    """A run that only a number of GPUs would end in time whose last node is not to be had whole."""
    for _ in range(_TRIES):
        case = _case(rng)
        most = int(rng.integers(20, 70))
        case = {**case, "chip": {**case["chip"], "most_gpus": most}}
        case = {**case, "run": {**case["run"], "deadline_h": round(_hours(case, most) + 0.05, 1)}}
        if _answer(case)["gpus"] is None and _answer(case, "nodes in part")["gpus"] is not None:
            return case
    raise AssertionError("no run needs a node in part; draw other sizes")


def _at_the_deadline(rng: Any) -> dict[str, Any]:
    """A run that some number of GPUs ends at the deadline, and fewer end later.

    Its numbers are such that tokens a second, FLOP a second and hours are exact, in whatever order one divides.
    """
    peak, memory, price = _CHIPS[2]
    gpus, passes, achieved, trains_h = int(rng.choice([16, 32])), 6, 0.25, int(rng.integers(20, 60))
    parameters = 10**9 * int(rng.choice([4, 8]))
    tokens_per_s = gpus * achieved * peak / (passes * parameters)
    setup_h = float(rng.integers(2, 6))
    run = {
        "parameters": parameters,
        "tokens": int(tokens_per_s * 3600 * trains_h),
        "batch": int(rng.choice([96, 160, 480])),
        "recompute": False,
        "state_bytes": 16,
        "activation_bytes": memory / 8,
        "deadline_h": setup_h + trains_h,
    }
    chip = {"flop_per_s": peak, "achieved": achieved, "memory_bytes": memory, "node_gpus": int(rng.choice([4, 8]))}
    chip |= {"most_gpus": 3 * gpus, "price_per_gpu_h": price, "setup_h": setup_h}
    case = {"run": run, "chip": chip}
    if _hours(case, gpus) != run["deadline_h"] or _answer(case)["gpus"] != gpus:
        raise AssertionError("no run ends exactly at its deadline; take numbers that divide exactly")
    return case


def _for_one(rng: Any) -> dict[str, Any]:
    """A run that fits one GPU, which is to be had alone: more would wait for the set-up, too."""
    for _ in range(_TRIES):
        case = _case(rng)
        chip = {**case["chip"], "node_gpus": 1}
        small = {**case["run"], "parameters": 10**8 * int(rng.integers(4, 11))}  # half of the least memory, at most
        case = {"run": {**small, "tokens": 8 * small["parameters"]}, "chip": chip}
        case["run"]["deadline_h"] = round(_hours(case, 1) + 0.05, 1)
        if _answer(case)["gpus"] == 1 and _is_clear(case):
            return case
    raise AssertionError("no run is cheapest on one GPU; draw other sizes")


def _small(rng: Any, slip: str) -> dict[str, Any]:
    """A run of few samples for which a slip gives another number of GPUs."""
    for _ in range(_TRIES):
        case = _case(rng)
        chip = {**case["chip"], "most_gpus": int(rng.integers(2, 7)) * case["chip"]["node_gpus"]}
        batch = 2 * chip["most_gpus"] if slip == "last left out" else int(rng.integers(5, 45))
        case = {"run": {**case["run"], "batch": batch}, "chip": chip}
        aim = int(rng.integers(1, chip["most_gpus"] + 1))
        case["run"]["deadline_h"] = round(_hours(case, aim) + 0.05, 1)
        right = _answer(case)["gpus"]
        if right is not None and _answer(case, slip)["gpus"] != right and _is_clear(case):
            return case
    raise AssertionError(f"no run tells {slip!r} from what is right; draw other sizes")


def _asked(case: Any) -> dict[str, Any]:
    found = {key: _answer(case, key) for key in _SLIPS}
    return {
        **case,
        "gpus": _questions(case),
        "ways": [[gpus, _hours(case, gpus), _fits(case, gpus)] for gpus in range(1, case["chip"]["most_gpus"] + 1)],
        "slips": {key: digest([one["gpus"], *one["fits"]]) for key, one in found.items()},
    }


def _questions(case: Any) -> list[int]:
    """Numbers of GPUs on both sides of where memory ends."""
    run, chip = case["run"], case["chip"]
    need = run["parameters"] * run["state_bytes"] / (chip["memory_bytes"] - run["activation_bytes"])
    first = max(2, int(-(-need // 1)))
    return sorted({max(1, first // 2), first, max(1, first - 1), 2 * first + 1})


def _hours(case: Any, gpus: int) -> float:
    run, chip = case["run"], case["chip"]
    flop = (8 if run["recompute"] else 6) * run["parameters"] * run["tokens"]
    return float(chip["setup_h"] + flop / (gpus * chip["achieved"] * chip["flop_per_s"]) / 3600)


def _held(case: Any, gpus: int) -> float:
    return float(case["run"]["parameters"] * case["run"]["state_bytes"] / gpus + case["run"]["activation_bytes"])


def _rented(case: Any, gpus: int) -> int:
    node = int(case["chip"]["node_gpus"])
    return -(-gpus // node) * node


def _candidates(case: Any, slip: str = "") -> list[int]:
    run, chip = case["run"], case["chip"]
    waits = chip["setup_h"] if slip == "set-up in no time" else 0.0
    first = chip["node_gpus"] if slip == "from a node on" else 1
    last = {"last left out": chip["most_gpus"] - 1, "two samples each": run["batch"] // 2}.get(slip, chip["most_gpus"])
    found: list[int] = []
    for gpus in range(first, min(last, chip["most_gpus"]) + 1):
        shared = slip == "any number" or run["batch"] % gpus == 0
        filled = slip != "whole nodes" or gpus % chip["node_gpus"] == 0
        fits = slip == "no memory" or _fits(case, _rented(case, gpus) if slip == "rented hold" else gpus, slip)
        late_h = _hours(case, _rented(case, gpus) if slip == "rented train" else gpus) - waits - run["deadline_h"]
        in_time = slip == "no deadline" or late_h < 0 or (late_h == 0 and slip != "strictly in time")
        to_be_had = slip == "nodes in part" or _rented(case, gpus) <= chip["most_gpus"]
        if shared and filled and fits and in_time and to_be_had:
            found.append(gpus)
    return found


def _fits(case: Any, gpus: int, slip: str = "") -> bool:
    run = case["run"]
    state, activations = run["parameters"] * run["state_bytes"], run["activation_bytes"]
    held = {
        "no activations": state / gpus,
        "recomputed activations": state / gpus + activations * (not run["recompute"]),
        "shared activations": (state + activations) / gpus,
        "whole state": state + activations,
    }.get(slip, _held(case, gpus))
    memory = case["chip"]["memory_bytes"]
    return bool(held < memory if slip == "strictly less" else held <= memory)


def _answer(case: Any, slip: str = "") -> dict[str, Any]:
    """The number of GPUs, and what fits, by a rule."""
    least: Callable[[int], float] = {"fewest": float, "most": lambda gpus: -gpus}.get(
        slip, lambda gpus: _rented(case, gpus) * _hours(case, gpus)
    )
    found = _candidates(case, slip)
    gpus = min(found, key=least) if found else None
    if slip == "first minimum" and found:
        gpus = next((one for one, two in pairwise(found) if least(two) > least(one)), found[-1])
    return {"gpus": gpus, "fits": [_fits(case, gpus, slip) for gpus in _questions(case)]}


def _is_clear(case: Any) -> bool:
    """Whether no second number of GPUs costs nearly as little, and none is nearly in time, or nearly fits."""
    found = _candidates(case)
    money = sorted(_rented(case, gpus) * _hours(case, gpus) for gpus in found)
    late = min(abs(_hours(case, gpus) - case["run"]["deadline_h"]) for gpus in range(1, case["chip"]["most_gpus"] + 1))
    return (len(money) < 2 or money[1] > (1 + _APART) * money[0]) and late > 1e-4


_SLIPS = (
    "no activations",
    "recomputed activations",
    "shared activations",
    "whole state",
    "no memory",
    "no deadline",
    "set-up in no time",
    "fewest",
    "most",
    "any number",
    "whole nodes",
    "strictly less",
    "nodes in part",
    "strictly in time",
    "rented hold",
    "rented train",
    "from a node on",
    "two samples each",
    "last left out",
    "first minimum",
)
_DRAWN = _SLIPS[:-9]  # those that drawn cases tell apart; the others have cases of their own
_SMALL = _SLIPS[-6:]
