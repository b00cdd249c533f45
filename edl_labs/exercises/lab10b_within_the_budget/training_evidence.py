"""Recorded training programs as evidence: replayed, and each way to go wrong or to be slow under a sentence."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

from edl_labs.checks import close
from edl_labs.errors import Wrong
from edl_labs.exercises.cluster_programs import written_programs
from edl_labs.units import byte_count, seconds
from edl_labs.virtual import ReplayError
from edl_labs.virtual.budget import TrainingHang, TrainingJob, TrainingRun, record_training, replay_training

_ABOVE = 1.0 + 1e-9  # rounding alone never takes a run past its bound
_OWN_TENSORS = 4  # weights, gradients, momentum and losses: a Trainer's numbers 0 to 3; the losses on the host are 4
_SAME = 1e-6  # of a loss: promised in the text; sums are exact, so right programs agree to the bit

_FAULTS = {
    "version": (
        "in your program, units pass through the weights of a different step",
        "let the units of step k use the weights after exactly k updates",
    ),
    "mixed": (
        "your backward pass uses the activations of some units and the gradients of others",
        "keep the activations and the gradients of a micro-batch together",
    ),
    "slot": (
        "your program adds a loss to the loss of a different step",
        "pass the step to which the data belong: loss(step, ...)",
    ),
    "repeated": (
        "your program uses units twice in a step",
        "use each unit of the share once: check `first` and `count`",
    ),
    "nothing": (
        "your program updates a layer without any gradient",
        "run the backward pass of every layer before the update",
    ),
    "stale": ("one of your updates includes gradients of an earlier step", "update every layer once in each step"),
    "again": (
        "your program sums gradients over the GPUs more than once",
        "sum each layer once per step, after its last micro-batch: which layers does each all_reduce() sum?",
    ),
    "alone": (
        "in your program, a GPU updates with only its own gradients",
        "before the update, sum the gradients over the GPUs and wait for the sum",
    ),
    "missing": (
        "one of your updates does not include all units of its step",
        "count the micro-batches: is the last one included?",
    ),
    "updates": (
        "your program does not update every layer in every step",
        "update each layer in every step, including the last one",
    ),
    "unread": ("your program never reads the loss of a step", "call read_losses() at the end: it reads all losses"),
    "early": (
        "your program reads a loss before all units have been added to it",
        "read each loss after the last micro-batch of its step",
    ),
}


def evidence(job: TrainingJob, program: Callable[..., Any]) -> dict[str, Any]:
    """What a program records on all GPUs of a job."""
    return {"programs": written_programs(record_training(job, program))}


def replayed_training(text: Any, job: TrainingJob) -> TrainingRun:
    """The run of recorded programs; Wrong where they are none of this job's."""
    try:
        return replay_training(json.loads(text), job)
    except (TypeError, ValueError, RecursionError):
        why, then = "the record cannot be read", "use only the trainer's own methods; do not change its record"
        raise Wrong("the recorded program is not a program of a Trainer", why=why, next=then) from None
    except TrainingHang as hang:
        raise Wrong(
            "in your program, the GPUs wait for each other forever", why=f"{hang.what}; {hang.why}", next=hang.next
        ) from None
    except ReplayError as error:
        raise Wrong(
            "this job does not allow the recorded program", why=f"{error.what}: {error.why}", next=error.next
        ) from None


@lru_cache(maxsize=64)
def _facts_of(text: str, job_text: str) -> tuple[tuple[float, ...], float]:
    run = replayed_training(text, TrainingJob.from_dict(json.loads(job_text)))
    return run.losses, run.efficiency


def public_facts(want: Any, job: TrainingJob) -> dict[str, Any]:
    """What students may see of the reference: its losses, and its efficiency."""
    if "losses" in want:
        return dict(want)
    losses, efficiency = _facts_of(want["programs"], json.dumps(job.to_dict()))
    return {"losses": list(losses), "efficiency": efficiency}


def require_training(run: TrainingRun, job: TrainingJob, losses: list[float]) -> None:
    """Wrong unless a run is the requested training, in the available memory."""
    if run.races:
        raise _race(run, job)
    if run.faults:
        raise _fault(run, job)
    if run.peak_bytes > job.memory_bytes:
        raise _memory(run, job)
    if run.efficiency > _ABOVE:
        why = f"the run takes {seconds(run.makespan_s)}, but the lower bound is {run.efficiency:.2f} times that"
        raise Wrong(
            "your run is faster than the lower bound",
            why=why,
            next="which part of the work does your program leave out?",
        )
    if len(losses) != len(run.losses) or not all(
        close(got, want, rtol=_SAME) for got, want in zip(run.losses, losses, strict=True)
    ):
        then = "compare your losses with those of the naive program, step by step"
        raise Wrong("your losses are not those of this job", why="at least one loss differs", next=then)


def _race(run: TrainingRun, job: TrainingJob) -> Wrong:
    race = run.races[0]
    calls = " ".join(race.calls)
    waits = any(entry["op"] == "wait_event" for program in run.replay.programs for entry in program)
    if race.tensor.startswith("input"):
        what = (
            "one of your passes reads data before the data have arrived"
            if waits
            else "in your program, no stream waits for the copy of the data"
        )
        then = "after the copy, record an event on the copies' stream, and let the computing stream wait for that event"
        return Wrong(what, why=str(race), next=then)
    if race.tensor.startswith("gradients") and "backward" in calls:
        then = "start a layer's sum only after its backward pass for the last micro-batch"
        return Wrong("your program sums gradients while a backward pass adds to them", why=str(race), next=then)
    sums = _sums(run.replay.programs[0], job)
    if race.tensor.startswith("gradients") and max(sums) > job.steps:
        why = f"layer {sums.index(max(sums))} is summed {max(sums)} times in {job.steps} steps; {race}"
        then = "sum each layer once per step: all_reduce(first, stop) sums the layers from `first` to `stop` - 1"
        return Wrong("your program sums gradients more than once in a step", why=why, next=then)
    known = {
        "gradients": (
            "one of your updates does not wait for the sum of its gradients",
            "call wait() on every sum of a step before its update",
        ),
        "weights": (
            "your program uses weights while another stream updates them",
            "keep passes and updates on one stream",
        ),
        "losses": ("your program reads a loss while a kernel adds to it", "read the loss on the computing stream"),
    }
    told = known.get(
        race.tensor.split()[0],
        (
            "in your program, two streams use the same memory in no fixed order",
            "record an event on one stream, and let the other stream wait for that event",
        ),
    )
    return Wrong(told[0], why=str(race), next=told[1])


def _fault(run: TrainingRun, job: TrainingJob) -> Wrong:
    fault = run.faults[0]
    what, then = _FAULTS[fault.kind]
    program = run.replay.programs[0]
    updates = _updates(program, job)
    loaded = {entry["name"].split()[1] for entry in program if str(entry.get("name")).startswith("data ")}
    if fault.kind == "version" and len(loaded) < job.steps:
        what, then = "your program never loads the data of a step", "load the data of all steps, from 0 to steps - 1"
    elif fault.kind == "version" and max(updates) < job.steps:
        what, then = "your program has steps without an update", "update every layer once in every step"
    elif fault.kind == "version" and min(updates) < job.steps:
        what, then = "your updates leave out some layers", "call update() without bounds: it updates all layers"
    elif fault.kind == "missing" and max(updates) > job.steps:
        what = "one of your updates comes before all units of its step have been processed"
        then = "update only after the last micro-batch"
    elif fault.kind == "alone" and not any(entry["op"] == "all_reduce" for entry in program):
        what = "your program never sums gradients over the GPUs"
    return Wrong(what, why=fault.text, next=then)


def _updates(program: list[Any], job: TrainingJob) -> list[int]:
    """How often each layer is updated."""
    found = [0] * job.layers
    for entry in program:
        if entry["op"] == "launch" and entry["name"].startswith("update"):
            first, stop = map(int, entry["name"].split()[1:])
            for i in range(first, stop):
                found[i] += 1
    return found


def _sums(program: list[Any], job: TrainingJob) -> list[int]:
    """How often the gradients of each layer are summed over the GPUs, by the names of the sums."""
    found = [0] * job.layers
    for entry in program:
        if entry["op"] == "all_reduce" and len(words := str(entry.get("name")).split()) == len(_SUM_WORDS):
            for i in range(int(words[1]), min(int(words[3]) + 1, job.layers)):
                found[i] += 1
    return found


_SUM_WORDS = ("layers", "first", "to", "last")  # what a sum's name consists of


def _memory(run: TrainingRun, job: TrainingJob) -> Wrong:
    why = f"your program needs up to {byte_count(run.peak_bytes)}, but the GPU has {byte_count(job.memory_bytes)}"
    made: dict[str, int] = {}
    names: dict[int, str] = {}
    program = run.replay.programs[0]
    for entry in program:
        if entry["op"] == "tensor" and "where" not in entry:
            names[entry["tensor"]] = entry["name"].rstrip("-0123456789 ")
            made[names[entry["tensor"]]] = made.get(names[entry["tensor"]], 0) + 1
        elif entry["op"] == "free" and entry["tensor"] in names:
            made[names[entry["tensor"]]] -= 1
    told = {
        "activations": (
            "your program keeps activations after their backward pass",
            "free activations as soon as no backward pass needs them any more",
        ),
        "output gradients": (
            "your program keeps gradients of outputs after their backward pass",
            "free each gradient after its last use",
        ),
        "input": (
            "your program keeps data on the device after their step",
            "free the data after the backward pass of layer 0",
        ),
    }
    for name, (what, then) in told.items():
        if made.get(name, 0) > job.steps:
            return Wrong(what, why=why, next=then)
    if any(entry["op"] == "tensor" and (entry["name"][:4], entry["dtype"]) == ("data", "fp32") for entry in program):
        what = "your program converts data to fp32 on the host, which takes four times the memory"
        return Wrong(what, why=why, next="which dtype do the files have?")
    return Wrong(
        "your micro-batches are too large for the memory",
        why=why,
        next="use job.peak_bytes(count) to find out what fits",
    )


def slow_cause(run: TrainingRun, job: TrainingJob, wanted: float) -> Wrong:
    """Why a right run is slow: the first cause that its program shows.

    Each sentence stands whole: of secret cases students read those of the source alone, and "…" for what is filled in.
    """
    why = (
        f"the run takes {seconds(run.makespan_s)}, so its efficiency is {run.efficiency:.0%}; {wanted:.0%} is required"
    )
    program = run.replay.programs[0]
    launched = [entry["name"].rstrip("0123456789 ") for entry in program if entry["op"] == "launch"]
    loads = [entry for entry in program if entry["op"] == "tensor" and entry.get("where") == "host"][1:]
    syncs = _waits(program)
    for slow, what, then in (
        (
            any(one["dtype"] == "fp32" for one in loads),
            "your run is slow: it converts data to fp32 on the host",
            "which dtype do the files have?",
        ),
        ("bias" in launched, "your run is slow: each forward pass runs as three kernels", "pass fused=True"),
        ("relu back" in launched, "your run is slow: each backward pass runs as three kernels", "pass fused=True"),
        (
            "momentum" in launched,
            "your run is slow: three separate kernels update each layer",
            "call update(fused=True) once for all layers",
        ),
        (
            any(one["name"].endswith("pageable") for one in loads),
            "your run is slow: it copies from pageable memory",
            "load with pinned=True",
        ),
        (syncs["copy"] > 1, "your run is slow: the host waits for every copy", "copy with non_blocking=True"),
        (
            syncs["loss"] > 1,
            "your run is slow: the host reads a loss in every step",
            "read the losses at the end: they are not needed earlier",
        ),
        (
            syncs["synchronize"] > 1,
            "your run is slow: the host waits for the device in every step",
            "remove the calls of synchronize(): nothing here needs them",
        ),
        (
            _is_on_one_stream(program),
            "your run is slow: copies wait for kernels, and kernels wait for copies",
            "use a separate stream for the copies",
        ),
        (
            _is_one_sum(program, job),
            "your run is slow: a single sum of all gradients starts when no computation is left to hide it",
            "sum the gradients in several buckets",
        ),
        (
            _sums_wait(program),
            "your run is slow: passes wait for the sum of gradients",
            "pass async_op=True, and call wait() before the update",
        ),
        (
            _waits_at_once(program),
            "your run is slow: your code waits for each sum as soon as it has started",
            "call wait() only right before the update",
        ),
        (
            launched.count("update") > 2 * job.steps,
            "your run is slow: it updates layers one at a time",
            "call update(fused=True) once for all layers",
        ),
        (
            _is_cut_small(run, job, loads, wanted),
            "your run is slow: the micro-batches are smaller than necessary",
            "how many units fit into the memory?",
        ),
        (
            _loads_ahead(program) > len(loads) / 2,
            "your run is slow: the host loads the next units before it issues the passes over the loaded units",
            "issue the passes over the loaded units, then load the next: issuing is free, but loading blocks the host",
        ),
        (
            _units(loads[0]) > max(1, job.share / 3),
            "your run is slow: the GPU is idle while the first, large micro-batch is loaded",
            "how large should the first micro-batch be, and how large the next one?",
        ),
    ):
        if slow:
            return Wrong(what, why=why, next=then)
    return Wrong(
        "your run is slow",
        why=why,
        next="look at the timeline: which row has the longest gaps, and what ends each gap?",
    )


def _waits(program: list[Any]) -> dict[str, int]:
    """How often the host waits: after a copy to the device, after a loss that is read, or by itself."""
    found = {"copy": 0, "loss": 0, "synchronize": 0}
    for before, entry in pairwise(program):
        if entry["op"] == "sync_stream":
            loss = before["op"] == "copy" and before["writes"][0][0] == 4  # the losses on the host
            found["loss" if loss else "copy" if before["op"] == "copy" else "synchronize"] += 1
        found["synchronize"] += entry["op"] == "synchronize"
    return found


def _is_on_one_stream(program: list[Any]) -> bool:
    copies = {entry["stream"] for entry in program if entry["op"] == "copy" and entry["writes"][0][0] > 4}
    kernels = {entry["stream"] for entry in program if entry["op"] == "launch"}
    return bool(copies & kernels)


def _sums_wait(program: list[Any]) -> bool:
    return any(entry["op"] == "all_reduce" and not entry.get("async") for entry in program)


def _waits_at_once(program: list[Any]) -> bool:
    issued = [at + 1 for at, entry in enumerate(program) if entry["op"] == "all_reduce"]
    at_once = sum(at < len(program) and program[at]["op"] == "wait_work" for at in issued)
    return at_once > len(issued) / 2


def _is_one_sum(program: list[Any], job: TrainingJob) -> bool:
    sums = sum(entry["op"] == "all_reduce" for entry in program)
    return job.ranks > 1 and sums <= job.steps


def _units(load: Any) -> int:
    """How many units a load has, which its name says."""
    return int(load["name"].split()[3])


def _is_cut_small(run: TrainingRun, job: TrainingJob, loads: list[Any], wanted: float) -> bool:
    """Whether the kernels of more micro-batches than memory asks for cost what the run takes too long."""
    most = max((n for n in range(1, job.share + 1) if job.peak_bytes(n) <= job.memory_bytes), default=1)
    more = len(loads) - job.steps * -(-job.share // most)
    late_s = run.makespan_s * (1 - run.efficiency / wanted)
    return more * (2 * job.layers + 1) * job.kernel_s >= late_s


def _loads_ahead(program: list[Any]) -> int:
    """How often the host loads while a kernel over data that are on the device has not been issued yet."""
    waiting: set[int] = set()
    found = 0
    for entry in program:
        if entry["op"] == "host_work":
            found += bool(waiting)
        elif entry["op"] == "copy" and entry["writes"][0][0] > _OWN_TENSORS:
            waiting.add(entry["writes"][0][0])
        elif entry["op"] == "launch":
            waiting -= {read[0] for read in entry["reads"]}
    return found


__all__ = ["evidence", "public_facts", "replayed_training", "require_training", "slow_cause"]
