"""What feeds a loop: the cases of stage_ladder, predict_workers and prefetcher, and a loop to predict."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab04_data_pipelines.stage_ladder import PAGE
from edl_labs.exercises.lab04_data_pipelines.threaded_prefetcher import (
    CLOSED_ELSEWHERE,
    ERROR_AHEAD,
    ERRORS,
    FALSE_ITEMS,
    OWN,
)
from edl_labs.virtual import Disk, LoaderMachine, VirtualWorkers


@case_source("stage_ladder")
def pipelines(rng: Any) -> list[Case]:
    """Pipelines that read one file or two."""
    return [Case(given=_ladder_case(rng, two_files=number % 2 == 0)) for number in range(6)]


def _ladder_case(rng: Any, *, two_files: bool) -> dict[str, Any]:
    samples, seek_s = int(rng.integers(20, 50)), round(float(rng.uniform(2e-3, 9e-3)), 6)

    def reads(name: str) -> dict[str, Any]:
        return {"name": name, "kind": "read", "bytes": PAGE * int(rng.integers(10, 60))}

    def works(name: str) -> dict[str, Any]:
        mean = float(rng.uniform(0.3e-3, 6e-3))
        return {
            "name": name,
            "kind": "cpu",
            "cpu_s": [round(mean * float(rng.uniform(0.5, 1.5)), 7) for _ in range(samples)],
        }

    first = [reads("read image"), reads("read label")] if two_files else [reads("read sample")]
    names = ["decode", "crop", "normalise", "collate"][: int(rng.integers(2, 5))]
    return {
        "samples": samples,
        "seek_s": seek_s,
        "byte_per_s": float(round(rng.uniform(80e6, 250e6))),
        "open_s": 1e-4,
        "stages": first + [works(name) for name in names],
    }


@case_source("predict_workers")
def machines(rng: Any) -> list[Case]:
    """Machines on which each resource is scarce in turn."""
    kinds = ("cores", "disk", "step", "cpu step", "cores", "network", "cpu step", "disk", "step")
    # Drawn last, so that the other cases stay what they were.
    return [Case(given=_workers_case(rng, kind)) for kind in (*kinds, "long cpu step")]


def _workers_case(rng: Any, kind: str) -> dict[str, Any]:
    def between(low: float, high: float) -> float:
        return round(float(rng.uniform(low, high)), 6)

    cores = int(rng.integers(4, 17))
    cpu_s = between(20e-3, 90e-3)
    machine = {
        "cores": cores,
        "cpu_s": cpu_s,
        "wait_s": between(100e-3, 300e-3) if kind == "network" else between(0, 10e-3),
        "disk_s": between(0.5e-3, 1.5e-3) if kind != "disk" else round(cpu_s / cores * between(1.5, 3), 6),
        "step_s": round(cpu_s / cores * between(0.2, 0.5), 6),
        "step_threads": 0,
    }
    if kind == "step":
        machine["step_s"] = round(cpu_s / cores * between(1.5, 4), 6)
    if kind == "cpu step":
        machine["step_threads"] = int(rng.integers(2, cores + 1))
        machine["step_s"] = round(cpu_s / cores * between(0.3, 0.8), 6)
    if kind == "long cpu step":
        # The cores that it leaves over have more time than a batch needs: the step itself is the bound.
        machine["step_threads"] = int(rng.integers(2, cores // 2 + 1))
        machine["step_s"] = round(cpu_s / (cores - machine["step_threads"]) * between(1.5, 3), 6)
    return {"machine": machine, "workers": [0, 1, 2, 3, cores // 2, cores, 2 * cores, 4 * cores]}


def simulated(case: Any, workers: int, *, batches: int = 400) -> float:
    """Batches per second of such a loop on VirtualWorkers: what a prediction is to be compared with."""
    m = case["machine"]
    rate = 1e9
    nbytes = max(1, round(m["disk_s"] * rate / PAGE)) * PAGE
    vw = VirtualWorkers(
        LoaderMachine(cores=m["cores"], page_bytes=PAGE, disks=(Disk("disk", seek_s=0.0, read_byte_per_s=rate),))
    )
    file = vw.file(nbytes)
    one = [("read", file.index, 0, nbytes), ("sleep", "wait", m["wait_s"]), ("cpu", "decode", m["cpu_s"])]
    for _ in vw.loader([one] * batches, workers=workers, prefetch=4):
        vw.step(m["step_s"], threads=m["step_threads"])
    return batches / vw.now_s()


@case_source("prefetcher")
def sources(rng: Any) -> list[Case]:
    """Sources that end, fail, go on for ever or take their time."""
    kinds = ("all", "ahead", "error", "close", "ahead", "error at once", "all", "close at once", "endless", "slow")
    # Drawn last, so that the other cases stay what they were.
    later = (ERROR_AHEAD, FALSE_ITEMS, CLOSED_ELSEWHERE)
    return [Case(given=_source_case(rng, kind)) for kind in (*kinds, *later)]


def _source_case(rng: Any, kind: str) -> dict[str, Any]:
    depth, count = int(rng.integers(1, 6)), int(rng.integers(12, 40))
    takes_all = dict.fromkeys(("all", "error", "error at once", ERROR_AHEAD, FALSE_ITEMS), -1)
    take = (takes_all | {"close at once": 0}).get(kind, int(rng.integers(1, 6)))
    if kind == "endless":
        count = -1
    if kind == "error at once":
        count = 0
    if kind == ERROR_AHEAD:
        # All items and the error find room: the source has failed before anything was taken.
        depth += 1
        count = int(rng.integers(1, depth))
    return {
        "kind": kind,
        "first": int(rng.integers(1000)),
        "depth": depth,
        "count": count,
        "take": take,
        "error": OWN if kind == "error at once" else str(rng.choice(list(ERRORS))) if "error" in kind else "",
        "message": f"record {int(rng.integers(10_000))} is truncated" if "error" in kind else "",
        # The item over which the source takes its time: the next one after those that are taken.
        "slow": take + 1 if kind in ("slow", CLOSED_ELSEWHERE) else 0,
    }
