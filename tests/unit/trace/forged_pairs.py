"""Ways to hand in two traces that no loop of the student's own gave, made from honest ones."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tests.unit.trace.own_traces import CUDA, Tree, cuda_pair, recorded, unpacked

Pair = tuple[Tree, Tree]
SOURCE = "a slow source of batches"


def honest() -> Pair:
    """A pair that was really recorded, whose cause is data."""
    before, after = recorded(SOURCE)
    return unpacked(before), unpacked(after)


def _timed(tree: Tree, change: Callable[[dict[str, Any], random.Random], None], seed: int = 1) -> Tree:
    made, rng = copy.deepcopy(tree), random.Random(seed)
    for event in made["traceEvents"]:
        if event.get("ph") == "X":
            change(event, rng)
    return made


def _scaled(factor: float) -> Callable[[dict[str, Any], random.Random], None]:
    def change(event: dict[str, Any], rng: random.Random) -> None:
        event["ts"], event["dur"] = event["ts"] * factor, event["dur"] * factor

    return change


def _jittered(event: dict[str, Any], rng: random.Random) -> None:
    event["dur"] *= 1 + rng.uniform(-0.01, 0.01)


def _without(tree: Tree, name: str) -> Tree:
    made = copy.deepcopy(tree)
    made["traceEvents"] = [event for event in made["traceEvents"] if name not in event["name"]]
    return made


def _about(tree: Tree, **changed: Any) -> Tree:
    made = copy.deepcopy(tree)
    made["edl_labs"] |= changed
    return made


def _stamped(tree: Tree, **changed: Any) -> Tree:
    return _about(tree, stamp={**tree["edl_labs"]["stamp"], **changed})


def _after_of(before: Tree, change: Callable[[dict[str, Any], random.Random], None]) -> Tree:
    return _about(_timed(before, change), which="after")


def _shrunk(event: dict[str, Any], rng: random.Random) -> None:
    if event["name"] == "dataloader":
        event["dur"] *= 0.1


def _early(event: dict[str, Any], rng: random.Random) -> None:
    if event["cat"] == "kernel":
        event["ts"] -= 400


def _longer(event: dict[str, Any], rng: random.Random) -> None:
    if event["cat"] == "kernel":
        event["dur"] *= 3


def _wider(event: dict[str, Any], rng: random.Random) -> None:
    if "Input Dims" in event.get("args", {}):
        event["args"]["Input Dims"] = [[65536, 4096], [4096, 4096]]


def _faster_copy(event: dict[str, Any], rng: random.Random) -> None:
    if event["cat"] == "gpu_memcpy":
        event["args"]["bytes"] = 10**10


def _no_shapes(event: dict[str, Any], rng: random.Random) -> None:
    event.get("args", {}).pop("Input Dims", None)


def _renamed(event: dict[str, Any], rng: random.Random) -> None:
    if event["name"].startswith("aten::") and event["name"] != "aten::mm":
        event["name"] = event["name"].replace("aten::", "mine::")


def _drawn_anew(event: dict[str, Any], rng: random.Random) -> None:
    """Each duration by itself: no caller lasts as long as what it calls."""
    if event["name"].startswith("aten::"):
        event["dur"] *= rng.lognormvariate(0, 0.5)


def _with_waits(tree: Tree, added_us: float) -> Tree:
    """The same, each wait for data longer, and all that follows later."""
    made = copy.deepcopy(tree)
    timed = [event for event in made["traceEvents"] if event.get("ph") == "X"]
    inside = [event["ts"] + event["dur"] / 2 for event in timed if event["name"] == "dataloader"]

    def later(moment: float) -> float:
        return moment + added_us * sum(moment > wait for wait in inside)

    for event in timed:
        start, end = later(event["ts"]), later(event["ts"] + event["dur"])
        event["ts"], event["dur"] = start, end - start
    return made


def _moved(tree: Tree) -> Tree:
    """Every moment drawn anew in the order of all, so that everything fits; the sampled lines as they were."""
    made, rng = copy.deepcopy(tree), random.Random(7)
    timed = [event for event in made["traceEvents"] if event.get("ph") == "X"]
    moments = sorted({at for event in timed for at in (event["ts"], event["ts"] + event["dur"])})
    now = last = moments[0]
    places = {}
    for moment in moments:
        now += (moment - last) * rng.lognormvariate(0, 0.2)
        places[moment], last = now, moment
    for event in timed:
        start, end = places[event["ts"]], places[event["ts"] + event["dur"]]
        event["ts"], event["dur"] = start, end - start
    return made


def _steps_of(tree: Tree, order: list[int]) -> Tree:
    """Some of the steps, one after the other in this order."""
    made = copy.deepcopy(tree)
    timed = [event for event in made["traceEvents"] if event.get("ph") == "X"]
    marks = sorted(e["ts"] for e in timed if e["name"].startswith("ProfilerStep#"))
    starts = [*marks, max(e["ts"] + e["dur"] for e in timed) + 1]
    events, now = [e for e in made["traceEvents"] if e.get("ph") != "X"], starts[0]
    for number, step in enumerate(order):
        for event in copy.deepcopy([e for e in timed if starts[step] <= e["ts"] < starts[step + 1]]):
            event["ts"] += now - starts[step]
            if event["name"].startswith("ProfilerStep#"):
                event["name"] = f"ProfilerStep#{number}"
            events.append(event)
        now += starts[step + 1] - starts[step]
    return {**made, "traceEvents": events}


def _uniform(tree: Tree) -> Tree:
    """Each step is the second one again."""
    made = copy.deepcopy(tree)
    marks = [e for e in made["traceEvents"] if e["name"].startswith("ProfilerStep#")]
    starts = [e["ts"] for e in marks] + [marks[-1]["ts"] + marks[-1]["dur"] + 1]
    one = [e for e in made["traceEvents"] if e.get("ph") == "X" and starts[1] <= e["ts"] < starts[2]]
    events = []
    for number in range(len(marks)):
        for event in copy.deepcopy(one):
            event["ts"] += (starts[2] - starts[1]) * number
            if event["name"].startswith("ProfilerStep#"):
                event["name"] = f"ProfilerStep#{number}"
            events.append(event)
    return {**made, "traceEvents": events}


def forged_pairs() -> dict[str, Pair]:
    """By what was done, the two files' trees."""
    before, after = honest()
    gpu_before, gpu_after = cuda_pair(*CUDA["copy"])
    large = _about(before, input_shapes=[[[4096, 128]]])
    return {
        "another's files as they are": (before, after),
        "a copy under a mark of its own": (_about(before, pair="x"), _about(after, pair="x")),
        "a copy on a slower machine": (
            _about(_timed(before, _scaled(1.3)), pair="x"),
            _about(_timed(after, _scaled(1.3)), pair="x"),
        ),
        "a copy with jitter": (
            _about(_timed(before, _jittered), pair="x"),
            _about(_timed(after, _jittered, 2), pair="x"),
        ),
        "a scaled copy with jitter": (
            _about(_timed(_timed(before, _scaled(0.7)), _jittered), pair="x"),
            _about(_timed(_timed(after, _scaled(0.7)), _jittered), pair="x"),
        ),
        "after is before, scaled": (before, _after_of(before, _scaled(0.5))),
        "after is before with a shorter wait": (before, _after_of(before, _shrunk)),
        "after is before": (before, _about(before, which="after")),
        "before and after exchanged": (_about(after, which="before"), _about(before, which="after")),
        "files of two calls": (before, _about(after, pair="another")),
        "a smaller model after": (before, _without(after, "aten::mm")),
        "a larger batch before": (large, after),
        "an after from a faster machine": (before, _stamped(after, device_name="A faster CPU")),
        "kernels before their launches": (gpu_before, _timed(gpu_after, _early)),
        "kernels beside each other in a stream": (_timed(gpu_before, _longer), gpu_after),
        "products above the peak": (_timed(gpu_before, _wider), _timed(gpu_after, _wider)),
        "copies faster than any link": (_timed(gpu_before, _faster_copy), gpu_after),
        "a CPU's stamp on a GPU's trace": (_stamped(gpu_before, kind="cpu"), _stamped(gpu_after, kind="cpu")),
        "a card that the profiler did not see": (
            _stamped(gpu_before, device_name="NVIDIA H100 80GB HBM3"),
            _stamped(gpu_after, device_name="NVIDIA H100 80GB HBM3"),
        ),
        "one step again and again": (_uniform(before), _uniform(after)),
        **_later_kinds(before, after),
        **_kinds_of_a_third(before, after),
        "shapes left out": (_timed(before, _no_shapes), _timed(after, _no_shapes)),
    }


def _later_kinds(before: Tree, after: Tree) -> dict[str, Pair]:
    """Ways that a second attacker found."""
    order, fewer = [0, 3, 1, 5, 2, 4], ([0, 1, 2, 3], [0, 2, 4, 5])
    slower = [_timed(_timed(tree, _scaled(1.7)), _jittered) for tree in (before, after)]
    return {
        "a copy of renamed operators": _as_own(_timed(before, _renamed), _timed(after, _renamed)),
        "a copy in another order of steps": _as_own(_steps_of(before, order), _steps_of(after, order)),
        "a copy without slow steps": _as_own(_steps_of(before, fewer[0]), _steps_of(after, fewer[1])),
        "a copy scaled, jittered and in another order": _as_own(*(_steps_of(tree, order) for tree in slower)),
        "a copy with all moments drawn anew": _as_own(_moved(before), _moved(after)),
        "durations drawn anew": _as_own(_timed(before, _drawn_anew), _timed(after, _drawn_anew, 2)),
        "before is after with waits added": (_about(_with_waits(after, 30_000), which="before"), after),
    }


def _kinds_of_a_third(before: Tree, after: Tree) -> dict[str, Pair]:
    """Ways that a third attacker found."""
    gpu_before, gpu_after = cuda_pair(*CUDA["copy"])
    fewer_before, fewer_after = cuda_pair(CUDA["copy"][0], replace(CUDA["copy"][1], rows=256))
    fewer_after["edl_labs"]["input_shapes"] = fewer_before["edl_labs"]["input_shapes"]
    return {
        "a copy scaled by another factor for each name": _as_own(
            _timed(before, _scaled_by_name), _timed(after, _scaled_by_name)
        ),
        "a copy of renamed operators, scaled and jittered": _as_own(
            *(_timed(_timed(_timed(tree, _scaled(1.4)), _renamed), _jittered) for tree in (before, after))
        ),
        "a copy of one step of several, spliced": _as_own(
            _steps_of(before, [1, 2, 1, 3, 2]), _steps_of(after, [1, 2, 1, 3, 2])
        ),
        "a copy whose source and stamp were edited": (
            _stamped(_about(before, pair="x", source="def mine(): ..."), torch="2.0.0", cpu_model="Mine"),
            _stamped(_about(after, pair="x", source="def mine(): ..."), torch="2.0.0", cpu_model="Mine"),
        ),
        "a copy shifted by a constant": _as_own(*(_timed(tree, _later_by(1e6)) for tree in (before, after))),
        "kernels of another trace merged in": (gpu_before, _merged(gpu_after, gpu_before)),
        "host events deleted": (gpu_before, _without_kinds(gpu_after, ("cpu_op", "cuda_runtime"))),
        "waits added before each kernel, launches left": (_timed(gpu_after, _early), _about(gpu_after, which="after")),
        "fewer rows with shapes stripped in the after": (fewer_before, _timed(fewer_after, _no_shapes)),
        "an after of another machine's stamp alone": (gpu_before, _stamped(gpu_after, torch="2.1.0", driver="1")),
    }


def _scaled_by_name(event: dict[str, Any], rng: random.Random) -> None:
    if event["name"].startswith("aten::"):
        event["dur"] *= 0.8 + (sum(map(ord, event["name"])) % 20) / 100


def _later_by(moment_us: float) -> Callable[[dict[str, Any], random.Random], None]:
    def change(event: dict[str, Any], rng: random.Random) -> None:
        event["ts"] += moment_us

    return change


def _merged(tree: Tree, other: Tree) -> Tree:
    """A trace with the device's work of another one in the same stream."""
    work = [event for event in other["traceEvents"] if event.get("cat") in ("kernel", "gpu_memcpy")]
    return {**tree, "traceEvents": [*tree["traceEvents"], *copy.deepcopy(work)]}


def _without_kinds(tree: Tree, kinds: tuple[str, ...]) -> Tree:
    return {**tree, "traceEvents": [event for event in tree["traceEvents"] if event.get("cat") not in kinds]}


def _as_own(before: Tree, after: Tree) -> Pair:
    return _about(before, pair="x"), _about(after, pair="x")
