"""The cases of schedule_states, layer_profiler, utilisation_lies and planted: schedules, models, kernels and jobs."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab05_profiling.planted_faults import DRAWS, MENDS


@case_source("schedule_states")
def schedules(rng: Any) -> list[Case]:
    def case(**fixed: int) -> dict[str, int]:
        drawn = {
            "wait": int(rng.integers(1, 5)),
            "warmup": int(rng.integers(1, 4)),
            "active": int(rng.integers(2, 6)),
            "repeat": int(rng.integers(2, 4)),
            "skip_first": 0,
            "stretch": 1,
        } | fixed
        cycle = drawn["wait"] + drawn["warmup"] + drawn["active"]
        longer = sum(drawn["wait"] * (drawn["stretch"] ** turn - 1) for turn in range(3))
        return {"steps": drawn["skip_first"] + 3 * cycle + longer + int(rng.integers(3, cycle + 4)), **drawn}

    def long(drawn: dict[str, int]) -> dict[str, int]:
        """Two cycles more, the fourth and the fifth."""
        more = 2 * (drawn["warmup"] + drawn["active"])
        return {**drawn, "steps": drawn["steps"] + more + drawn["wait"] * sum(drawn["stretch"] ** n for n in (3, 4))}

    skipped = int(rng.integers(2, 9))
    cases = [
        case(),
        case(repeat=1),
        case(repeat=0),
        case(active=1),
        case(wait=0),
        case(warmup=0, repeat=0),
        case(skip_first=skipped),
        case(skip_first=skipped + 3, repeat=0),
        case(wait=0, warmup=0, active=1, repeat=0),
        case(wait=0, skip_first=skipped),
        case(wait=0, warmup=0, skip_first=skipped + 3, repeat=0),
        case(stretch=2),
        case(stretch=3, repeat=0, skip_first=skipped),
        case(stretch=2, wait=0),
        long(case(stretch=2, repeat=0)),
    ]
    return [Case(given=one) for one in cases]


@case_source("layer_profiler")
def models(rng: Any) -> list[Case]:
    shapes = [
        [("stem", {}), ("head", {})],
        [("stem", {}), ("block", {"residual": True, "children": [("norm", {}), ("mlp", {})]})],
        [("shared", {"times": 2, "children": [("inner", {})]}), ("head", {})],
        [
            ("body", {"children": [("a", {"children": [("b", {"children": [("c", {})]})]}), ("d", {"times": 3})]}),
            ("head", {}),
        ],
    ]
    return [Case(given=_model(rng, shape, steps=1 + number % 2)) for number, shape in enumerate(shapes)]


@case_source("utilisation_lies")
def timelines(rng: Any) -> list[Case]:
    return [Case(given=_timeline(rng, kind)) for kind in ("one SM", "small", "waves", "beside", "mixed", "mixed")]


@case_source("planted")
def jobs(rng: Any) -> list[Case]:
    draws = [_job(rng) for _ in range(DRAWS)]
    return [Case.split({"mend": mend, **draw}, "mend") for draw in draws for mend in MENDS]


def _model(rng: Any, shape: Any, *, steps: int) -> dict[str, Any]:
    plan = _plan(rng, {"children": shape})
    return {
        "plan": plan,
        "steps": steps,
        "evaluations": steps % 2,
        "launch_overhead_s": round(float(rng.uniform(3e-6, 9e-6)), 9),
    }


def _plan(rng: Any, node: Any) -> dict[str, Any]:
    """Durations for a shape; names get a number, so that no two cases have the same modules."""
    forward_s = round(float(rng.uniform(2e-5, 3e-4)), 9)
    plan = {"forward_s": forward_s, "backward_s": round(forward_s * float(rng.uniform(1.2, 2.8)), 9)}
    children = [[f"{name}{int(rng.integers(1, 99))}", _plan(rng, child)] for name, child in node.get("children", ())]
    kept = {key: node[key] for key in ("times", "residual") if key in node}
    return {**plan, **kept, "children": children}


def _timeline(rng: Any, kind: str) -> dict[str, Any]:
    sm_count = int(rng.choice([20, 40, 68, 80, 108, 132]))
    kernels: list[dict[str, Any]] = []
    moment = 0
    for _ in range(int(rng.integers(4, 9))):
        blocks = {
            "one SM": 1,
            "small": int(rng.integers(1, sm_count // 2)),
            "waves": sm_count * int(rng.integers(1, 4)) + int(rng.integers(1, sm_count)),
            "beside": int(rng.integers(1, sm_count // 3)),
        }.get(kind) or int(rng.integers(1, 3 * sm_count))
        waves = -(-blocks // sm_count)
        # Nanoseconds, and blocks that last equally long.
        spent = waves * int(rng.integers(2_000, 40_000))
        kernels.append(_kernel(moment, spent, blocks))
        if kind in ("beside", "mixed") and blocks < sm_count // 2:
            beside = int(rng.integers(1, sm_count - blocks))
            kernels.append(_kernel(moment + int(rng.integers(0, spent // 2)), spent, beside))
            spent = round(1e9 * kernels[-1]["end_s"]) - moment
        moment += spent + (0 if kind == "one SM" else int(rng.choice([0, 1_500, 12_000])))
    if kind == "small":
        # One that begins later and is over earlier than the one beside it, and one that ends with that.
        first = kernels[0]
        start, spent = round(1e9 * first["start_s"]), round(1e9 * (first["end_s"] - first["start_s"]))
        kernels.append(_kernel(start + spent // 4, spent // 2, 1))
        kernels.append(_kernel(start + 3 * spent // 4, spent - 3 * spent // 4, 1))
    if kind == "waves":
        # One that fills its last wave exactly, which a drawn number of blocks hardly ever does.
        kernels.append(_kernel(moment, 2 * 21_500, 2 * sm_count))
        moment += 2 * 21_500
    window = moment + (0 if kind == "one SM" else int(rng.integers(1_000, 60_000)))
    order = rng.permutation(len(kernels))
    return {"kernels": [kernels[i] for i in order], "sm_count": sm_count, "window_s": window / 1e9}


def _kernel(start: int, spent: int, blocks: int) -> dict[str, Any]:
    return {"start_s": start / 1e9, "end_s": (start + spent) / 1e9, "blocks": blocks}


def _job(rng: Any) -> dict[str, Any]:
    batches = int(rng.integers(3, 6))
    first = [int(n) for n in rng.permutation(batches)]
    rest = [int(n) for n in rng.integers(0, batches, size=int(rng.integers(9, 15)))]

    def us(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 2) * 1e-6

    plan = {
        "seed": int(rng.integers(1, 10**6)),
        "order": first + rest,
        "layers": int(rng.integers(3, 7)),
        "width": int(rng.integers(3, 7)),
        "samples": int(rng.integers(6, 12)),
        "batch_bytes": int(rng.integers(1, 6)) * 524_288,
        "read_s": us(300, 900),
        "forward_s": us(15, 40),
        "backward_s": us(30, 80),
        "convert_s": us(6, 20),
        "update_s": us(2, 4),
        "trim_s": us(200, 500),
    }
    return {"chip": str(rng.choice(["V100", "A100", "H100", "H200"])), "plan": plan}
