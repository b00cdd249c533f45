"""What a recorded training program computes: from each batch to each update, with real numbers.

Every buffer holds its numbers, and which units of which steps they come from. So losses are what the program made of
the data, and whatever is missing, twice, stale or from another step is found where it enters a sum.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from edl_labs.units import counted
from edl_labs.virtual.budget.exact_net import SAMPLES, WIDTH, ExactNet, outer, relu, squared_errors, times, updated
from edl_labs.virtual.budget.trainer import INPUT_DTYPES, OPTIMIZER_PASSES
from edl_labs.virtual.budget.training_job import TrainingJob
from edl_labs.virtual.cluster.engine import ClusterEngine
from edl_labs.virtual.cluster.meetings import RankOperation

WEIGHTS, GRADIENTS, MOMENTUM, LOSSES, TOLD = range(5)  # the tensors that a Trainer makes first
_NAMES = ("weights", "gradients", "momentum", "losses", "losses on the host")
_ELEMENTWISE = ("bias", "relu", "relu back", "bias back", *OPTIMIZER_PASSES)  # what changes no value here
_ALLOWED = (
    *("tensor", "free", "stream", "event", "record", "wait_event", "wait_work", "synchronize", "sync_stream"),
    *("host_work", "launch", "copy", "all_reduce"),
)
Unit = tuple[int, int]  # of a step, and its number there


@dataclass(frozen=True)
class TrainingFault:
    """A place where the program departs from the requested training: `kind` for judges, `text` for people."""

    kind: str
    text: str


class NotATraining(Exception):
    """The programs contain something that a Trainer never records."""


@dataclass
class _Value:
    """What is in a buffer: numbers, the layer that they belong to, and the units that they come from, in order."""

    numbers: Any
    layer: int
    units: tuple[Unit, ...]
    targets: Any = None


@dataclass
class _Slot:
    """A sum: its numbers, and how often each unit is in it."""

    total: Any
    units: Counter[Unit] = field(default_factory=Counter)


class TrainingFlow:
    """Follows the programs of all GPUs in the order in which they ran."""

    def __init__(self, job: TrainingJob, engine: ClusterEngine, programs: list[list[dict[str, Any]]]) -> None:
        self.job, self.faults = job, list[TrainingFault]()
        net = ExactNet(job.seed, job.layers)
        self._forms = [_checked(job, rank, program) for rank, program in enumerate(programs)]
        self._held: list[dict[int, _Value]] = [_loaded(net, forms) for forms in self._forms]
        ranks = range(job.ranks)
        self.weights = [net.weights() for _ in ranks]
        self.versions = [[0] * job.layers for _ in ranks]
        self._sums = [[_Slot(0.0 * one) for one in net.weights()] for _ in ranks]
        self._seen = [[set[Unit]() for _ in range(job.layers)] for _ in ranks]
        self._losses = [[_Slot(0.0) for _ in range(job.steps)] for _ in ranks]
        self._told: list[list[_Slot | None]] = [[None] * job.steps for _ in ranks]
        for node in engine.order:
            self._take(node)
        self._finish()

    @property
    def losses(self) -> tuple[float, ...]:
        """The mean loss of each step, over what was read on all GPUs; NaN where none was read."""
        each = self.job.units * SAMPLES * WIDTH
        slots = zip(*self._told, strict=True)
        return tuple(sum(math.nan if one is None else one.total for one in slot) / each for slot in slots)

    def _take(self, node: RankOperation) -> None:
        entry, rank = node.entry, node.rank
        if node.meeting is not None:
            self._sum(node)
        elif entry["op"] == "copy":
            self._copy(rank, entry)
        else:
            kind, _, which = entry["name"].partition(" ")
            act: dict[str, Callable[..., None]] = {"forward": self._forward, "backward": self._backward}
            act |= {"loss": self._loss, "update": self._update}
            if kind in act:
                act[kind](rank, entry, *map(int, which.split()))

    def _copy(self, rank: int, entry: dict[str, Any]) -> None:
        (source,), (into,) = entry["reads"], entry["writes"]
        if into[0] == TOLD:
            _require(source == [LOSSES, *into[1:]] and _same(entry, self.job.copy_s(4, pinned=True)))
            for step in range(into[1], into[2]):
                slot = self._losses[rank][step]
                self._told[rank][step] = _Slot(slot.total, Counter(slot.units))
            return
        form = self._forms[rank][source[0]]
        nbytes = form["numel"] * INPUT_DTYPES.get(form["dtype"], 0)
        took = self.job.copy_s(nbytes, pinned=form["name"].endswith("pinned"))
        _require(self._forms[rank][into[0]].get("where") != "host" and into[0] > TOLD and _same(entry, took))
        self._held[rank][into[0]] = self._read(rank, source, -1)

    def _forward(self, rank: int, entry: dict[str, Any], i: int) -> None:
        given = self._read(rank, entry["reads"][0], i - 1)
        self._require_pass(rank, entry, i, given, self.job.forward_s[i], "forward")
        summed = times(given.numbers, self.weights[rank][i])
        numbers = summed if i == self.job.layers - 1 else relu(summed)
        self._write(rank, entry["writes"][0], _Value(numbers, i, given.units), self.job.outputs[i])

    def _loss(self, rank: int, entry: dict[str, Any]) -> None:
        last = self.job.layers - 1
        outputs, data = self._read(rank, entry["reads"][0], last), self._read(rank, entry["reads"][1], -1)
        slot = entry["reads"][2]
        _require(slot[0] == LOSSES and slot[2] == slot[1] + 1 and _same(entry, self.job.kernel_s))
        _require(entry["writes"][1:] == [slot])
        if outputs.units != data.units:
            self._fault(
                "mixed",
                f"GPU {rank} computes a loss from the outputs for {_told(outputs)} and the data of {_told(data)}",
            )
        if any(step != slot[1] for step, _ in data.units):
            self._fault("slot", f"GPU {rank} adds the loss of {_told(data)} to the loss of step {slot[1]}")
        targets = data.targets if len(data.targets) == len(outputs.numbers) else outputs.numbers
        total, errors = squared_errors(outputs.numbers, targets)
        sums = self._losses[rank][slot[1]]
        sums.total += total
        sums.units.update(data.units)
        self._write(rank, entry["writes"][0], _Value(errors, last, outputs.units), self.job.outputs[last])

    def _backward(self, rank: int, entry: dict[str, Any], i: int) -> None:
        _require(len(entry["reads"]) == 4)
        given, gradient = self._read(rank, entry["reads"][0], i - 1), self._read(rank, entry["reads"][1], i)
        self._require_pass(rank, entry, i, gradient, self.job.backward_s[i], "backward")
        _require(self._layer(entry["reads"][3], GRADIENTS) == self._layer(entry["writes"][0], GRADIENTS) == (i, i + 1))
        sums, seen = self._sums[rank][i], self._seen[rank][i]
        if seen & set(gradient.units):
            self._fault("repeated", f"backward {i} of GPU {rank} adds the gradients of {_told(gradient)} a second time")
        seen |= set(gradient.units)
        sums.units.update(gradient.units)
        if given.units != gradient.units:
            self._fault(
                "mixed",
                f"backward {i} of GPU {rank} uses the inputs of {_told(given)} with the gradients of {_told(gradient)}",
            )
            return
        sums.total = sums.total + outer(given.numbers, gradient.numbers)
        if i:
            back = times(gradient.numbers, self.weights[rank][i].T) * (given.numbers > 0)
            value = _Value(back, i - 1, gradient.units)
            self._write(rank, entry["writes"][1], value, self.job.outputs[i - 1])

    def _update(self, rank: int, entry: dict[str, Any], first: int, stop: int) -> None:
        for tensor, part in zip((WEIGHTS, GRADIENTS, MOMENTUM), entry["reads"], strict=True):
            _require(self._layer(part, tensor) == (first, stop))
        _require(entry["reads"] == entry["writes"] and _same(entry, self.job.update_s(first, stop)))
        for i in range(first, stop):
            slot, step = self._sums[rank][i], self.versions[rank][i]
            self._judge_sum(rank, i, step, slot.units)
            self.weights[rank][i] = updated(self.weights[rank][i], slot.total, self.job.units)
            self.versions[rank][i] += 1
            self._sums[rank][i] = _Slot(0.0 * slot.total)

    def _sum(self, node: RankOperation) -> None:
        _require(node.entry["op"] == "all_reduce" and node.entry["reduce"] == "sum")
        _require(node.entry["algorithm"] == "ring" and not node.entry["group"])
        first, stop = self._layer(node.entry["reads"][0], GRADIENTS)
        for i in range(first, stop):
            slots = [self._sums[rank][i] for rank in range(self.job.ranks)]
            units: Counter[Unit] = sum((slot.units for slot in slots), Counter())
            total = sum(slot.total for slot in slots)
            for rank in range(self.job.ranks):
                self._sums[rank][i] = _Slot(total, Counter(units))

    def _judge_sum(self, rank: int, i: int, step: int, units: Counter[Unit]) -> None:
        where = f"GPU {rank} updates layer {i} for the {_nth(step)} time"
        wanted = {(step, number) for number in range(self.job.units)}
        strange, missing = sorted(set(units) - wanted), sorted(wanted - set(units))
        own = {(step, number) for number in _shares(self.job, rank)}
        most = max(units.values(), default=0)
        if not units:
            self._fault("nothing", f"{where}, but no backward pass has added to its gradients since")
        elif strange:
            self._fault("stale", f"{where} with gradients of step {strange[0][0]}")
        elif most > 1:
            unit = max(units, key=units.__getitem__)[1]
            self._fault("again", f"{where}, and at that moment the sum contains unit {unit} {most} times")
        elif missing and self.job.ranks > 1 and not own & set(missing) and set(units) == own:
            self._fault("alone", f"{where} with the gradients of only its own units")
        elif missing:
            self._fault("missing", f"{where} without {len(missing)} of the {self.job.units} units of step {step}")

    def _finish(self) -> None:
        for rank in range(self.job.ranks):
            for step, slot in enumerate(self._told[rank]):
                wanted = Counter({(step, number): 1 for number in _shares(self.job, rank)})
                if slot is None:
                    self._fault("unread", f"the loss of step {step} is never read on GPU {rank}")
                elif slot.units != wanted:
                    has = f"it contains {slot.units.total()} of {len(wanted)} units"
                    self._fault("early", f"the loss of step {step} is read on GPU {rank} when {has}")
        for rank, versions in enumerate(self.versions):
            for i, version in enumerate(versions):
                if version != self.job.steps:
                    self._fault(
                        "updates",
                        f"layer {i} of GPU {rank} is updated {counted(version, 'time')} in "
                        f"{counted(self.job.steps, 'step')}",
                    )

    def _require_pass(self, rank: int, entry: dict[str, Any], i: int, given: _Value, unit_s: float, kind: str) -> None:
        _require(_same(entry, self.job.kernel_s + len(given.units) * unit_s))
        at = 1 if kind == "forward" else 2
        _require(self._layer(entry["reads"][at], WEIGHTS) == (i, i + 1))
        version, steps = self.versions[rank][i], {step for step, _ in given.units}
        if steps != {version}:
            had = counted(version, "update")
            name = f"{kind} {i} of GPU {rank} processes {_told(given)} with weights that have had {had}"
            self._fault("version", name)

    def _read(self, rank: int, part: list[int], layer: int) -> _Value:
        value = self._held[rank].get(part[0])
        _require(value is not None and value.layer == layer and part[1:] == [0, self._forms[rank][part[0]]["numel"]])
        assert value is not None
        return value

    def _write(self, rank: int, part: list[int], value: _Value, outputs: int) -> None:
        numel = self._forms[rank][part[0]]["numel"]
        _require(part[0] > TOLD and part[1:] == [0, numel] and numel == outputs * len(value.units))
        self._held[rank][part[0]] = value

    def _layer(self, part: list[int], tensor: int) -> tuple[int, int]:
        """Which layers a part of the parameters is."""
        bounds = self.job.bounds
        _require(part[0] == tensor and part[1] in bounds and part[2] in bounds)
        return bounds.index(part[1]), bounds.index(part[2])

    def _fault(self, kind: str, text: str) -> None:
        if len(self.faults) < 100:  # as many as anybody reads
            self.faults.append(TrainingFault(kind, text))


def _checked(job: TrainingJob, rank: int, program: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The tensors of a program, where it decodes what it loads, and holds no call but a Trainer's."""
    forms: list[dict[str, Any]] = []
    for index, entry in enumerate(program):
        _require(entry["op"] in _ALLOWED)
        if entry["op"] == "launch":
            kind = entry["name"].rstrip("0123456789 ")
            _require(kind in ("forward", "backward", "loss", "update", *_ELEMENTWISE))
            _require(kind not in _ELEMENTWISE or entry.get("reads") == entry.get("writes"))
        if entry["op"] == "host_work":
            _require(index + 1 < len(program) and program[index + 1].get("where") == "host")
        if entry["op"] != "tensor":
            continue
        if entry.get("where") == "host" and len(forms) > TOLD:
            step, first, count = map(int, entry["name"].split()[1:4])
            _require(step < job.steps and count > 0 and {first, first + count - 1} <= set(_shares(job, rank)))
            took = count * (job.decode_s + (job.convert_s if entry["dtype"] == "fp32" else 0.0))
            decoded = program[index - 1]["op"] == "host_work" and _same(program[index - 1], took)
            _require(decoded and entry["numel"] == count * job.inputs and entry["dtype"] in INPUT_DTYPES)
        forms.append(entry)
    sizes = [sum(job.elements)] * 3 + [job.steps] * 2
    _require([form["name"] for form in forms[:5]] == list(_NAMES))
    _require([form["numel"] for form in forms[:5]] == sizes and {form["dtype"] for form in forms[:5]} == {"fp32"})
    return forms


def _loaded(net: ExactNet, forms: list[dict[str, Any]]) -> dict[int, _Value]:
    """What the host's buffers hold: the data that was decoded into them."""
    import numpy as np

    found = {}
    for number, form in enumerate(forms):
        if form.get("where") == "host" and number > TOLD:
            step, first, count = map(int, form["name"].split()[1:4])
            parts = [net.unit(step, first + at) for at in range(count)]
            inputs, targets = (np.concatenate(side) for side in zip(*parts, strict=True))
            found[number] = _Value(inputs, -1, tuple((step, first + at) for at in range(count)), targets)
    return found


def _shares(job: TrainingJob, rank: int) -> range:
    return range(rank * job.share, (rank + 1) * job.share)


def _same(entry: dict[str, Any], seconds: float) -> bool:
    return math.isclose(entry["duration_s"], seconds, rel_tol=1e-9)


def _told(value: _Value) -> str:
    steps = sorted({step for step, _ in value.units})
    units = [number for _, number in value.units]
    return f"step {', '.join(map(str, steps))}, units {min(units)} to {max(units)}"


def _nth(step: int) -> str:
    return {0: "first", 1: "second", 2: "third"}.get(step, f"{step + 1}th")


def _require(condition: object) -> None:
    if not condition:
        raise NotATraining
