"""planted: a training script with six inefficiencies; each fix is seen in the replayed program, losses must stay."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import Exercise, close, exercise
from edl_labs.checks.asked_form import in_form
from edl_labs.errors import Wrong
from edl_labs.exercises.lab05_profiling.changed_losses import batch_is_lacking, cause_of_change, trained
from edl_labs.exercises.recorded_programs import OWN, replayed, require_bound, written
from edl_labs.units import counted
from edl_labs.virtual import Replay, VirtualGPU, VirtualMachine
from edl_labs.virtual.case_program import CaseProgram
from edl_labs.virtual.training import JobPlan, Loss, SmallTraining

MENDS = ("reading", "copying", "host reads", "optimizer", "memory", "layout")
DRAWS = 2  # a mend that only suits one job shows on the other


@exercise("planted")
class Planted(Exercise):
    """A training script with six inefficiencies, fixed one by one while its losses stay the same.

    `train(job)` gives the losses; one case for each inefficiency and draw, and a fix counts when both draws have it.
    """

    answers = ("losses", "program")

    answer_form: ClassVar[Any] = {"losses": [0.0], "unread": 0, "program": "", "lacked": -1}

    def probe(self, student: Any, given: Any) -> Any:
        job = job_of(given)
        losses, lacked = trained(student.train, job)
        if losses is None or type(losses) in (int, float):
            return {"losses": losses, "unread": 0, "program": "", "lacked": -1}  # told by its kind
        losses = in_form(losses, list[Any])
        unread = sum(isinstance(loss, Loss) for loss in losses)
        numbers = [0.0 if isinstance(loss, Loss) else loss for loss in losses]
        return {"losses": numbers, "unread": unread, "program": written(job.gpu.program), "lacked": lacked}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        plan = plan_of(case)
        if got["unread"]:
            raise Wrong(
                "the returned losses are still on the device",
                why=f"{got['unread']} of {len(got['losses'])} are objects that forward returned; expected numbers",
                next="after the loop, call job.item() on each loss and return the numbers",
            )
        if got["lacked"] >= 0:
            raise batch_is_lacking(got["lacked"], replayed(got["program"], machine_of(case)).program, plan)
        _judge_losses(got, want["losses"], case)
        run = replayed(got["program"], machine_of(case))
        _judge_work(run, plan)
        require_bound(run, _case_program(case))
        _judge_layout(run, plan)
        _CHECKS[case["mend"]](run, plan)

    def public_want(self, case: Any, want: Any) -> Any:
        """The losses: the program would be the fixed script."""
        return {"losses": want["losses"]}

    def combine(self, fractions: list[float]) -> float:
        """The share of the six inefficiencies that are fixed in every draw."""
        if len(fractions) != DRAWS * len(MENDS):
            return 0.0
        return sum(min(fractions[mend :: len(MENDS)]) for mend in range(len(MENDS))) / len(MENDS)

    def format_case(self, case: Any) -> str:
        plan = plan_of(case)
        return (
            f"{len(plan.order)} steps over {plan.batches} batches, {len(plan.parameters)} parameters, on a modelled "
            f"{case['chip']}; this case checks the script's {case['mend']}"
        )


def job_of(case: Any) -> SmallTraining:
    """A fresh job of a case, on a fresh machine."""
    return SmallTraining(VirtualGPU(machine_of(case)), plan_of(case))


def machine_of(case: Any) -> VirtualMachine:
    """The machine of a case, its context already made."""
    return VirtualMachine.of(case["chip"]).warm()


def plan_of(case: Any) -> JobPlan:
    """The sizes and durations of a case."""
    return JobPlan(**{**case["plan"], "order": tuple(case["plan"]["order"])})


def _judge_losses(got: Any, want: list[Any], case: Any) -> None:
    losses = got["losses"]
    if len(losses) != len(want):
        raise Wrong(
            f"{len(want)} steps must have {len(want)} losses, not {len(losses)}",
            why="a fix must leave the loss curve unchanged",
            next="return one loss for each step of job.order",
        )
    for step, (said, right) in enumerate(zip(losses, want, strict=True)):
        if not close(said, right, rtol=1e-6):
            program = replayed(got["program"], machine_of(case)).program
            why, then = cause_of_change(program, plan_of(case), step) or (
                "a fix must not change results",
                "which batch does this step use, and which optimizer steps came before it?",
            )
            why = f"it was {right:.6g} and is now {said:.6g}; {why}"
            raise Wrong(f"the loss curve changed at step {step}", why=why, next=then)


def _judge_work(run: Replay, plan: JobPlan) -> None:
    steps = len(plan.order)
    passes = {f"{way} {layer}" for way in ("forward", "backward") for layer in range(plan.layers)}
    updates = {f"update {name}" for name in plan.parameters}
    known = {"nchwToNhwc", "update all", *passes, *updates, *(f"convert {name}" for name in plan.parameters)}
    costs = _durations(plan)
    launches = [entry for entry in run.program if entry["op"] == "launch"]
    foreign = any(entry["name"] not in known or entry.get("duration_s") != costs(entry) for entry in launches)
    if foreign or any(run.launches.get(name, 0) != steps for name in passes):
        raise Wrong(
            "your program does not contain the same training",
            why="each step must have one forward pass, one backward pass and one update of every parameter, on the "
            "device",
            next="change only the code around the model's work, and call job.forward, job.backward and an update in "
            "each step",
        )
    _Followed(plan, run.program).judge()
    if run.races:
        raise Wrong(
            "your program has a race", why=str(run.races[0]), next="wait for a copy to end before you reuse its memory"
        )


def _case_program(case: Any) -> CaseProgram:
    """What the job makes, and each of its kernels."""
    job = job_of(case)
    first = len(job.gpu.program)
    loss = job.forward(job.to_device(job.read(0)))
    job.backward(loss)
    job.to_channels_last()
    job.update_all()
    for name in job.parameters:
        job.update(name)
    return CaseProgram(job.gpu.program[:first], job.gpu.program[first:], own=OWN)


def _judge_layout(run: Replay, plan: JobPlan) -> None:
    """Every pass in the wrong layout has its conversion, until all weights were converted."""
    converted, ready = set[str](), 0
    for name in (
        entry["name"] for entry in run.program if entry["op"] == "launch" for _ in range(entry.get("times", 1))
    ):
        what, _, which = name.partition(" ")
        converted |= {which} if what == "convert" else set()
        ready += what == "nchwToNhwc"
        if what in ("forward", "backward") and len(converted) < len(plan.parameters):
            ready -= 1
        if ready < 0:
            why = f"{name} runs in a layout into which nothing was converted"
            raise Wrong("the program was changed", why=why, next="use the job only through its own methods")


class _Followed:
    """A program's bytes: from batches through losses and gradients into weights, and from losses to the host.

    Each buffer has a mark that says what stands in it: ("batch", number), ("forward", layer, batch, step) for what a
    pass has come to, ("loss", batch, step) when it is done. Weights count their updates: the weights of step n have n.
    """

    def __init__(self, plan: JobPlan, program: Any) -> None:
        self.plan = plan
        self.marks: dict[int, Any] = {}
        self.names: dict[int, tuple[str, str]] = {}
        self.gradients: dict[str, Any] = {}
        self.updates = dict.fromkeys(plan.parameters, 0)
        self.read: set[int] = set()
        self.broken = ""
        for entry in program:
            if entry["op"] in _FOLLOWED:
                _FOLLOWED[entry["op"]](self, entry)

    def judge(self) -> None:
        """Wrong where a batch does not reach its update, or a loss the host."""
        steps = len(self.plan.order)
        if self.broken or any(count != steps for count in self.updates.values()):
            raise Wrong(
                "the returned losses do not come from this program",
                why=self.broken or f"not every parameter has {steps} updates, each with the gradient of its step",
                next="in each step, read its batch with job.read, copy it to the device, run forward and backward with "
                "that loss, and update",
            )
        if len(self.read) != steps:
            raise Wrong(
                "your function returned losses that were never read from the device",
                why=f"the program reads {len(self.read)} of its {steps} losses",
                next="read each loss that job.forward returned with job.item",
            )

    def alloc(self, entry: Any) -> None:
        """A buffer, in which nothing stands yet."""
        self.names[entry["buffer"]] = entry["name"], entry["where"]

    def host_work(self, entry: Any) -> None:
        """Reading a batch takes its time and fills the whole buffer."""
        for buffer, start, stop in entry.get("writes", ()):
            name, _ = self.names[buffer]
            full = (start, stop) == (0, self.plan.batch_bytes) and entry["duration_s"] == self.plan.read_s
            numbers = {f"batch{number}": number for number in range(self.plan.batches)}
            self.marks[buffer] = ("batch", numbers[name]) if full and name in numbers else None

    def copy(self, entry: Any) -> None:
        """A copy takes what stands in its source, whole or not at all."""
        (to, *into), (source, *part) = entry["dst"], entry["src"]
        self.marks[to] = self.marks.get(source) if into == part == [0, self.plan.batch_bytes] else None

    def item(self, entry: Any) -> None:
        """The host reads what stands in a buffer."""
        mark = self.marks.get(entry["src"][0])
        if mark and mark[0] == "loss":
            self.read.add(mark[2])

    def launch(self, entry: Any) -> None:
        """A kernel: the passes of a layer, and updates."""
        what, _, which = entry["name"].partition(" ")
        if what == "forward":
            self._forward(entry, int(which))
        elif what == "backward":
            self._backward(entry, int(which))
        elif what == "update":
            self._update(entry, self.plan.parameters if which == "all" else (which,))

    def _forward(self, entry: Any, layer: int) -> None:
        step = self._weights(entry, layer)
        mark = self._read_mark(entry)
        batch = self.plan.order[step] if step < len(self.plan.order) else None
        if batch is None or mark != (("forward", layer - 1, batch, step) if layer else ("batch", batch)):
            self._break(f"a forward pass does not read the batch of step {step}, or the output of the layer before it")
        done = layer == self.plan.layers - 1
        for buffer, _, _ in entry.get("writes", ()):
            self.marks[buffer] = ("loss", batch, step) if done else ("forward", layer, batch, step)

    def _backward(self, entry: Any, layer: int) -> None:
        step = self._weights(entry, layer)
        mark = self._read_mark(entry)
        if not mark or mark[0] != "loss" or mark[2] != step:
            self._break(f"a backward pass does not begin with the loss of step {step}")
        written = self._parameters(entry.get("writes", ()), "gradients")
        if written != self._of_layer(layer):
            self._break("a backward pass does not write the gradients of its layer")
        self.gradients |= dict.fromkeys(written, step)

    def _update(self, entry: Any, names: Any) -> None:
        read, written = (self._parameters(entry.get(role, ()), kind) for role, kind in _UPDATE_TOUCHES)
        if not set(names) <= set(read) or not set(names) <= set(written):
            self._break("an update does not read its gradient, or does not write its weight")
        for name in names:
            if self.gradients.get(name) != self.updates[name]:
                self._break(f"an update of step {self.updates[name]} uses a gradient of a different step")
            self.updates[name] += 1

    def _weights(self, entry: Any, layer: int) -> int:
        """The step whose weights a pass reads: how often they were updated."""
        names = self._parameters(entry.get("reads", ()), "weights")
        if names != self._of_layer(layer):
            self._break("a pass does not read the weights of its layer")
        counts = {self.updates[name] for name in self._of_layer(layer)}
        if len(counts) > 1:
            self._break("the weights of one layer were not updated equally often")
        return min(counts)

    def _read_mark(self, entry: Any) -> Any:
        """What stands in the first buffer that a kernel reads and that holds no parameters."""
        others = [part[0] for part in entry.get("reads", ()) if self.names[part[0]][0] != "weights"]
        return self.marks.get(others[0]) if len(others) == 1 else None

    def _parameters(self, parts: Any, kind: str) -> list[str]:
        """The parameters that stand in parts of the weights' or the gradients' buffer."""
        ours = [part for part in parts if self.names[part[0]] == (kind, "device")]
        return [self.plan.parameters[i // 4] for _, start, stop in ours for i in range(start, stop, 4)]

    def _of_layer(self, layer: int) -> list[str]:
        return [f"layer{layer}.{kind}" for kind in ("weight", "bias")]

    def _break(self, why: str) -> None:
        self.broken = self.broken or why


_FOLLOWED = {
    "alloc": _Followed.alloc,
    "host_work": _Followed.host_work,
    "copy": _Followed.copy,
    "item": _Followed.item,
    "launch": _Followed.launch,
}
_UPDATE_TOUCHES = (("reads", "gradients"), ("writes", "weights"))


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
            "your program reads and decodes the same batches more than once",
            why=f"{reads} reads in {len(plan.order)} steps for {plan.batches} different batches: your code does not "
            "keep what it reads, or keeps it under a key that never repeats, such as the step",
            next="store each batch under its own number: the numbers repeat, and the batch of a number does not change",
        )


def _copying(run: Replay, plan: JobPlan) -> None:
    places = {entry["buffer"]: entry["where"] for entry in run.program if entry["op"] == "alloc"}
    copies = [e for e in run.program if e["op"] == "copy" and places[e["src"][0]] != "device"]
    slow = [e for e in copies if places[e["src"][0]] == "pageable" or not e["non_blocking"]]
    if slow:
        how = "pageable" if places[slow[0]["src"][0]] == "pageable" else "pinned"
        raise Wrong(
            "in your program, the host waits for copies of batches",
            why=f"{len(slow)} of {len(copies)} copies block it; the first comes from {how} memory",
            next="which two things make a copy asynchronous? One is set where the batch is read, the other where it is "
            "copied",
        )


def _host_reads(run: Replay, plan: JobPlan) -> None:
    last = _last_launch(run)
    early = sum(entry["op"] == "item" for entry in run.program[:last])
    if early > len(plan.order) // 10:
        raise Wrong(
            "in your program, the host reads the loss while the device should be working",
            why=f"it does so {counted(early, 'time')} before the last launch; each time, the device runs out of work",
            next="keep the losses on the device and read them after the loop: the numbers are not needed earlier",
        )


def _optimizer(run: Replay, plan: JobPlan) -> None:
    small = sum(count for name, count in run.launches.items() if name.startswith("update layer"))
    if small:
        raise Wrong(
            "in your program, the optimizer launches a separate kernel for each parameter",
            why=f"it makes {small} launches, each of which takes the host longer than the device",
            next="use a fused optimizer, which updates everything at once",
        )


def _memory(run: Replay, plan: JobPlan) -> None:
    last = _last_launch(run)
    waits = sum(entry["op"] in ("synchronize", "sync_stream", "sync_event") for entry in run.program[:last])
    if waits:
        raise Wrong(
            "in your program, the host waits for the device in the middle of the training",
            why=f"there are {waits} synchronisations before the last launch, although no result is needed there",
            next="which call gives back memory that the next step has to allocate again?",
        )


def _layout(run: Replay, plan: JobPlan) -> None:
    conversions = sum(n for name, n in run.launches.items() if name.startswith(("nchwToNhwc", "convert ")))
    if conversions > len(plan.parameters):
        raise Wrong(
            "your program converts the same data from one layout to another again and again",
            why=f"there are {conversions} conversion kernels, but {len(plan.parameters)} would be enough",
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
