"""The cases of layout: models and clusters where memory, the useful batch and slow links each decide something."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab07b_models_that_do_not_fit.cluster_layouts import WITHIN, every_layout, sequences

_SHAPES = ((2, 4), (2, 8), (4, 4), (2, 4))  # nodes, GPUs in each
_TRIES = 400  # one in eight draws is asked


@case_source("layout")
def jobs(rng: Any) -> list[Case]:
    return [Case(given=_decided(rng, *_SHAPES[at])) for at in rng.permutation(len(_SHAPES))]


def _decided(rng: Any, nodes: int, gpus: int) -> dict[str, Any]:
    """A job where the best layout is another one without memory, and without an end of useful sequences."""
    for _ in range(_TRIES):
        job = _job(rng, nodes, gpus)
        priced = [(one, job_bytes(job, one), job_s(job, one)) for one in every_layout(job)]
        fitting = [(one, took) for one, held, took in priced if held <= job["memory_bytes"]]
        if not fitting:
            continue
        useful = [min(sequences(one), job["useful_sequences"]) / took for one, took in fitting]
        needed, best = WITHIN * max(useful), max(useful)
        roomy = max(min(sequences(one), job["useful_sequences"]) / took for one, _, took in priced)
        by_all = max(range(len(fitting)), key=lambda at: sequences(fitting[at][0]) / fitting[at][1])
        by_step = min(range(len(fitting)), key=lambda at: fitting[at][1])
        if roomy > 1.05 * best and useful[by_all] < needed and useful[by_step] < needed:
            return job
    raise AssertionError("no job was decided by memory and batch; draw other sizes")


def _job(rng: Any, nodes: int, gpus: int) -> dict[str, Any]:
    hidden = int(rng.choice([2048, 4096, 6144, 8192]))
    rails = int(rng.integers(1, 3))
    return {
        "blocks": int(rng.choice([16, 32, 48])),
        "hidden": hidden,
        "block_parameters": 12 * hidden**2,
        "sequence": int(rng.choice([512, 1024, 2048])),
        "useful_sequences": int(rng.integers(24, 100)),
        "nodes": nodes,
        "gpus_per_node": gpus,
        "flop_per_s": float(rng.choice([150e12, 400e12])),
        "memory_byte_per_s": float(rng.choice([0.9e12, 2e12])),
        "memory_bytes": float(rng.choice([24e9, 40e9, 80e9])),
        "inside": {"alpha_s": 3e-6, "byte_per_s": float(rng.choice([100e9, 250e9, 450e9]))},
        "between": {"alpha_s": 14e-6, "byte_per_s": rails * float(rng.choice([6e9, 12.5e9, 25e9]))},
    }


def job_bytes(job: Any, layout: Any) -> float:
    """What the fullest GPU holds."""
    part = job["blocks"] / layout["pp"] * job["block_parameters"] / layout["tp"]
    state = {0: 16 * part, 1: 4 * part + 12 * part / layout["dp"], 3: 16 * part / layout["dp"]}[layout["zero"]]
    vector = layout["micro"] * job["sequence"] * job["hidden"]
    whole, flying = (
        34 * vector / layout["tp"],
        min(layout["micro_batches"], layout["pp"]) * job["blocks"] / layout["pp"],
    )
    return state + (flying * 2 * vector + whole if layout["recompute"] else flying * whole)


def job_s(job: Any, layout: Any) -> float:
    """Seconds of a step."""
    tp, dp, pp, count = (layout[name] for name in ("tp", "dp", "pp", "micro_batches"))
    tokens, hidden, again = layout["micro"] * job["sequence"], job["hidden"], layout["recompute"]
    part = job["blocks"] / pp * job["block_parameters"] / tp
    width = 4 * hidden / tp
    intensity = tokens * hidden * width / (tokens * hidden + hidden * width + tokens * width)
    one_s = (8 if again else 6) * part * tokens / min(job["flop_per_s"], intensity * job["memory_byte_per_s"])
    sums = (6 if again else 4) * job["blocks"] / pp
    slot_s = one_s + sums * _rounds_s(job, tp, 2 * (tp - 1), 2 * tokens * hidden / tp)
    slot_s += _rounds_s(job, dp * tp * pp, 2 * (pp > 1), 2 * tokens * hidden)
    times, hidden_s = (3 * count, count * one_s) if layout["zero"] == 3 else (2, one_s)
    data_s = _rounds_s(job, dp * tp, times * (dp - 1), 2 * part / dp)
    return (count + pp - 1) * slot_s + max(0.0, data_s - hidden_s)


def _rounds_s(job: Any, span: int, rounds: int, size: float) -> float:
    link = job["inside" if span <= job["gpus_per_node"] else "between"]
    return rounds * (link["alpha_s"] + size / link["byte_per_s"])
