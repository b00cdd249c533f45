"""planted: a training script with six inefficiencies; each mend is seen in the replayed program, losses must stay."""

from __future__ import annotations

from collections import Counter
from typing import Any, ClassVar

from edl_labs.checks import close, exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.recorded_programs import replayed, written
from edl_labs.virtual import Replay, VirtualGPU, VirtualMachine
from edl_labs.virtual.training import JobPlan, Loss, TrainingJob

MENDS = ("reading", "copying", "host reads", "optimizer", "memory", "layout")
DRAWS = 2  # a mend that only suits one job shows on the other


@exercise("planted")
class Planted:
    """A training script with six inefficiencies, mended one by one while its losses stay the same.

    `train(job)` gives the losses; one case for each of MENDS and draw, and a mend counts when both draws have it.
    """

    form: ClassVar[Any] = {"losses": [0.0], "unread": 0, "program": ""}

    def probe(self, student: Any, case: Any) -> Any:
        job = job_of(case)
        losses = list(student.train(job))
        unread = sum(isinstance(loss, Loss) for loss in losses)
        numbers = [0.0 if isinstance(loss, Loss) else loss for loss in losses]
        return {"losses": numbers, "unread": unread, "program": written(job.gpu.program)}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        plan = plan_of(case)
        if got["unread"]:
            raise Wrong(
                "the losses that came back are still on the device",
                why=f"{got['unread']} of {len(got['losses'])} are objects of forward, where numbers are asked for",
                next="call job.item on each loss, after the loop",
            )
        _judge_losses(got["losses"], want["losses"])
        run = replayed(got["program"], machine_of(case))
        _judge_work(run, plan)
        _CHECKS[case["mend"]](run, plan)

    def public(self, case: Any, want: Any) -> Any:
        """The losses: the program would be the mended script."""
        return {"losses": want["losses"]}

    def combine(self, fractions: list[float]) -> float:
        """The share of the six inefficiencies that are mended in every draw."""
        if len(fractions) != DRAWS * len(MENDS):
            return 0.0
        return sum(min(fractions[mend :: len(MENDS)]) for mend in range(len(MENDS))) / len(MENDS)

    def show(self, case: Any) -> str:
        plan = plan_of(case)
        return (
            f"{len(plan.order)} steps over {plan.batches} batches, {len(plan.parameters)} parameters, on a modelled "
            f"{case['chip']}; this case looks at the script's {case['mend']}"
        )


def job_of(case: Any) -> TrainingJob:
    """A fresh job of a case, on a fresh machine."""
    return TrainingJob(VirtualGPU(machine_of(case)), plan_of(case))


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case, its context already made."""
    return VirtualMachine.of(case["chip"]).warm()


def plan_of(case: Any) -> JobPlan:
    """The sizes and durations of a case."""
    return JobPlan(**{**case["plan"], "order": tuple(case["plan"]["order"])})


def _judge_losses(got: list[Any], want: list[Any]) -> None:
    if len(got) != len(want):
        raise Wrong(
            f"{len(want)} steps have {len(want)} losses, not {len(got)}",
            why="the loss curve must stay what it was",
            next="return one loss for each step of job.order",
        )
    for step, (said, right) in enumerate(zip(got, want, strict=True)):
        if not close(said, right, rtol=1e-6):
            raise Wrong(
                f"the loss curve changed at step {step}",
                why=f"it was {right:.6g}, now it is {said!r}; a mend must not change results",
                next="which batch does this step take, and which steps of the optimizer came before it?",
            )


def _judge_work(run: Replay, plan: JobPlan) -> None:
    steps = len(plan.order)
    passes = {f"{way} {layer}": steps for way in ("forward", "backward") for layer in range(plan.layers)}
    updates = {f"update {name}": steps for name in plan.parameters}
    spent = Counter({name: run.launches.get(name, 0) for name in passes})
    by_all = run.launches.get("update all", 0)
    one_by_one = all(run.launches.get(name, 0) + by_all == steps for name in updates)
    known = {"nchwToNhwc", "update all", *passes, *updates, *(f"convert {name}" for name in plan.parameters)}
    costs = _durations(plan)
    own = [
        e for e in run.program if e["op"] == "launch" and (e["name"] not in known or e.get("duration_s") != costs(e))
    ]
    if dict(spent) != passes or not one_by_one or own:
        raise Wrong(
            "the training itself is not in the program",
            why="each step has one forward pass, one backward pass and one update of every parameter, on the device",
            next="mend around the model's work, and call job.forward, job.backward and an update in each step",
        )
    loaded = sum(entry["op"] == "host_work" and bool(entry.get("writes")) for entry in run.program)
    if loaded < plan.batches or run.copied_bytes.get("copy H2D", 0) < plan.batches * plan.batch_bytes:
        raise Wrong(
            "some batches never reached the device",
            why=f"the run needs {plan.batches} different ones",
            next="read each with job.read, and bring it over with job.to_device",
        )
    if run.races:
        raise Wrong("the program has a race", why=str(run.races[0]), next="wait for a copy before its memory is reused")


def _durations(plan: JobPlan) -> Any:
    """What each kernel of the job lasts, by name."""
    kinds = {"forward": plan.forward_s, "backward": plan.backward_s, "update": plan.update_s}
    fused_s = 0.6 * plan.update_s * len(plan.parameters)

    def cost(entry: Any) -> float:
        return fused_s if entry["name"] == "update all" else kinds.get(entry["name"].split()[0], plan.convert_s)

    return cost


def _last_launch(run: Replay) -> int:
    return max(index for index, entry in enumerate(run.program) if entry["op"] == "launch")


def _reading(run: Replay, plan: JobPlan) -> None:
    reads = sum(entry["op"] == "host_work" and bool(entry.get("writes")) for entry in run.program)
    if reads > plan.batches:
        raise Wrong(
            "batches are read and decoded more often than there are batches",
            why=f"{reads} reads of {plan.batches} different batches, each of which keeps the host for long",
            next="a batch that was read once does not change; where could it stay?",
        )


def _copying(run: Replay, plan: JobPlan) -> None:
    places = {entry["buffer"]: entry["where"] for entry in run.program if entry["op"] == "alloc"}
    copies = [e for e in run.program if e["op"] == "copy" and places[e["src"][0]] != "device"]
    slow = [e for e in copies if places[e["src"][0]] == "pageable" or not e["non_blocking"]]
    if slow:
        how = "pageable" if places[slow[0]["src"][0]] == "pageable" else "pinned"
        raise Wrong(
            "the host waits for copies of batches",
            why=f"{len(slow)} of {len(copies)} copies block it; the first comes from {how} memory",
            next="two things make a copy asynchronous, one where the batch is read, one where it is copied",
        )


def _host_reads(run: Replay, plan: JobPlan) -> None:
    last = _last_launch(run)
    early = sum(entry["op"] == "item" for entry in run.program[:last])
    if early > len(plan.order) // 10:
        raise Wrong(
            "the host reads the loss while the device should be working",
            why=f"{early} times before the last launch; each read lets the device run dry",
            next="nobody needs the number yet, nor one step later: keep losses on the device, read them after the loop",
        )


def _optimizer(run: Replay, plan: JobPlan) -> None:
    small = sum(count for name, count in run.launches.items() if name.startswith("update layer"))
    if small:
        raise Wrong(
            "the optimizer launches a kernel for each parameter",
            why=f"{small} launches, each longer for the host than for the device",
            next="a fused optimizer updates everything at once",
        )


def _memory(run: Replay, plan: JobPlan) -> None:
    last = _last_launch(run)
    waits = sum(entry["op"] in ("synchronize", "sync_stream", "sync_event") for entry in run.program[:last])
    if waits:
        raise Wrong(
            "the device is drained in the middle of the training",
            why=f"{waits} synchronisations before the last launch, and nobody needs a result there",
            next="which call gives memory back that the next step asks for again?",
        )


def _layout(run: Replay, plan: JobPlan) -> None:
    conversions = sum(n for name, n in run.launches.items() if name.startswith(("nchwToNhwc", "convert ")))
    if conversions > len(plan.parameters):
        raise Wrong(
            "the same data are converted from one layout to another over and over",
            why=f"{conversions} conversion kernels, where {len(plan.parameters)} would do",
            next="what could be converted once, before the first step?",
        )


_CHECKS = {
    "reading": _reading,
    "copying": _copying,
    "host reads": _host_reads,
    "optimizer": _optimizer,
    "memory": _memory,
    "layout": _layout,
}
