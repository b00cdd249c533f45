"""What the operations of a step do to memory and time: the one place that knows what each needs and leaves."""

from __future__ import annotations

import math
from dataclasses import dataclass

from edl_labs.virtual.errors import VirtualMemoryError
from edl_labs.virtual.memory.tape.machine import Tape
from edl_labs.virtual.quantities import PER_SECOND, picoseconds

# Where the activations of a layer are, or its output alone; copies on their way are already at their destination.
NOTHING, OUTPUT, ACTIVATIONS = "nothing", "output", "activations"


@dataclass
class LayerState:
    """What is held of one layer, whether on the host, since when it can be read there, and which passes are over."""

    held: str = NOTHING
    on_host: bool = False
    ready_ps: int = 0
    forward: bool = False
    backward: bool = False
    let_go: str = ""
    """The call that freed the memory, for messages about it."""


@dataclass(frozen=True)
class MemoryChange:
    """`delta` bytes more on the device for `owner` at `time_ps`, by operation `index` of the program."""

    time_ps: int
    index: int
    delta: int
    owner: str


class TapeEngine:
    """The state of a step: what is held where, when the compute engine and both copy engines are free again."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self.layers = [LayerState() for _ in tape.layers]
        self.gradients: set[int] = set()
        self.changes: list[MemoryChange] = []
        self.compute_ps = self.out_ps = self.in_ps = self.end_ps = 0
        self.busy_ps = {"compute": 0, "copy out": 0, "copy in": 0}
        self.recomputed_ps = self.waited_ps = self.index = 0

    def forward(self, i: int, keep: bool) -> None:
        """Run layer `i`, whose inputs must be there; `keep` holds its activations, else its output alone."""
        state = self.layers[i]
        if state.forward:
            raise self._error(i, "runs forward twice", "its forward pass has already run", f"use recompute({i})")
        self._run_forward(i, keep, "forward", self.tape.layers[i].forward_s)
        state.forward = True

    def recompute(self, i: int, keep: bool) -> None:
        """Run layer `i` once more for what was dropped of it."""
        state = self.layers[i]
        if not state.forward:
            raise self._error(
                i,
                "is recomputed before its first forward pass",
                "its forward pass has not run yet",
                f"use forward({i}, keep=...)",
            )
        if state.backward:
            raise self._error(i, "is recomputed too late", "its backward pass has already run", "leave this call out")
        if state.on_host:
            raise self._error(
                i, "is recomputed while it is on the host", "this layer was offloaded", f"call fetch({i}) first"
            )
        if state.held == ACTIVATIONS or (state.held == OUTPUT and not keep):
            raise self._error(
                i,
                "is recomputed needlessly",
                f"its {state.held} {'is' if state.held == OUTPUT else 'are'} still in memory",
                "leave this call out",
            )
        before = self.compute_ps
        self._run_forward(i, keep, "recompute", self.tape.layers[i].again_s)
        self.recomputed_ps += self.compute_ps - before

    def backward(self, i: int) -> None:
        """The backward pass of layer `i`: it frees the layer's activations, and leaves its inputs' gradients."""
        layer, state = self.tape.layers[i], self.layers[i]
        if state.backward:
            raise self._error(
                i,
                "runs backward twice",
                "the first backward pass freed its activations",
                "leave one of the two calls out",
            )
        late = [j for j, one in enumerate(self.layers) if not one.forward]
        if late:
            why = f"{self._name(late[0])} has not run its forward pass, so there is no loss yet"
            raise self._error(i, "runs backward too soon", why, f"call forward({late[0]}, keep=...) first")
        waiting = [j for j in self.tape.consumers[i] if not self.layers[j].backward]
        if waiting:
            why = f"{self._name(waiting[-1])}, which reads its output, has not run its backward pass"
            raise self._error(i, "has no gradient yet", why, f"call backward({waiting[-1]}) first")
        self._require(i, i, ACTIVATIONS, "backward")
        for j in self.tape.inputs[i]:
            self._require(i, j, OUTPUT, "backward")
        start = self._start((i, *self.tape.inputs[i]))
        self._gradient(i, start)
        for j in self.tape.inputs[i]:
            self._gradient(j, start)
        end = self._compute(start, layer.backward_s)
        self._change(end, -layer.gradient_bytes, f"gradient of {layer.name}")
        self._change(end, -layer.activation_bytes, layer.name)
        state.held, state.backward, state.let_go = NOTHING, True, f"backward({i})"

    def drop(self, i: int, keep_output: bool) -> None:
        """Let go of what is held of layer `i` on either side; with `keep_output`, of all but its output."""
        state = self.layers[i]
        if state.held == NOTHING or (keep_output and state.held == OUTPUT):
            raise self._error(
                i,
                "cannot be dropped",
                "nothing of this layer that could be dropped is in memory",
                "leave this call out",
            )
        if keep_output and state.on_host:
            raise self._error(
                i,
                "cannot be partly dropped while it is on the host",
                "only whole copies are on the host",
                f"call fetch({i}) first",
            )
        if not state.on_host:
            left = self.tape.layers[i].output_bytes if keep_output else 0
            self._change(max(self.compute_ps, state.ready_ps), left - self._size(i), self._name(i))
        state.held, state.let_go = OUTPUT if keep_output else NOTHING, f"drop({i})"
        state.on_host = state.on_host and keep_output

    def offload(self, i: int) -> None:
        """Copy what is held of layer `i` to the host; its memory is free when the copy is over."""
        state = self.layers[i]
        if state.held == NOTHING or state.on_host:
            why = "the layer is already on the host" if state.on_host else "nothing of the layer is in memory"
            raise self._error(i, "cannot be offloaded", why, "offload only what is in device memory")
        start = max(self.compute_ps, state.ready_ps, self.out_ps)
        self.out_ps = state.ready_ps = start + self._copy_ps(i, "copy out")
        self._change(self.out_ps, -self._size(i), self._name(i))
        state.on_host = True
        self.end_ps = max(self.end_ps, self.out_ps)

    def fetch(self, i: int) -> None:
        """Copy layer `i` back from the host; its memory is taken from the start of the copy."""
        state = self.layers[i]
        if not state.on_host:
            raise self._error(
                i,
                "cannot be fetched",
                "the layer is not on the host",
                f"call offload({i}) first, or leave this call out",
            )
        start = max(self.compute_ps, state.ready_ps, self.in_ps)
        self._change(start, self._size(i), self._name(i))
        self.in_ps = state.ready_ps = start + self._copy_ps(i, "copy in")
        state.on_host = False
        self.end_ps = max(self.end_ps, self.in_ps)

    def _run_forward(self, i: int, keep: bool, verb: str, duration_s: float) -> None:
        for j in self.tape.inputs[i]:
            self._require(i, j, OUTPUT, verb)
        before, state = self._size(i), self.layers[i]
        start = self._start((i, *self.tape.inputs[i]))
        state.held = ACTIVATIONS if keep else OUTPUT
        state.let_go = "" if keep else f"{verb}({i}, keep=False)"
        self._change(start, self._size(i) - before, self._name(i))
        state.ready_ps = self._compute(start, duration_s)

    def _require(self, i: int, j: int, what: str, verb: str) -> None:
        """VirtualMemoryError unless layer `j` has `what` on the device, which `verb` of layer `i` reads."""
        state, name = self.layers[j], self._name(j)
        if state.on_host:
            raise self._error(i, f"cannot run {verb}", f"{name} is on the host", f"call fetch({j}) first")
        if state.held == NOTHING or (what == ACTIVATIONS and state.held == OUTPUT):
            owner = "its" if i == j else f"{name}'s"
            missing = f"{owner} {what} {'is' if what == OUTPUT else 'are'} not in memory"
            if not state.forward:
                raise self._error(i, f"cannot run {verb}", missing, f"call forward({j}, keep=...) first")
            gone = f"{missing}, because {state.let_go} freed {'it' if what == OUTPUT else 'them'}"
            then = f"free the layer only after this call, or call recompute({j}) first"
            if state.let_go.startswith("backward"):
                then = f"call {verb} of this layer before {state.let_go}"
            raise self._error(i, f"cannot run {verb}", gone, then)

    def _start(self, read: tuple[int, ...]) -> int:
        ready = max(self.layers[j].ready_ps for j in read)
        self.waited_ps += max(0, ready - self.compute_ps)
        return max(self.compute_ps, ready)

    def _compute(self, start: int, duration_s: float) -> int:
        spent = picoseconds(duration_s, "a pass")
        self.compute_ps = start + spent
        self.busy_ps["compute"] += spent
        self.end_ps = max(self.end_ps, self.compute_ps)
        return self.compute_ps

    def _copy_ps(self, i: int, engine: str) -> int:
        spent = math.ceil(self._size(i) * PER_SECOND / self.tape.copy_byte_per_s)
        self.busy_ps[engine] += spent
        return spent

    def _gradient(self, i: int, start: int) -> None:
        if i not in self.gradients:
            self.gradients.add(i)
            self._change(start, self.tape.layers[i].gradient_bytes, f"gradient of {self._name(i)}")

    def _size(self, i: int) -> int:
        layer, held = self.tape.layers[i], self.layers[i].held
        return {NOTHING: 0, OUTPUT: layer.output_bytes, ACTIVATIONS: layer.activation_bytes}[held]

    def _change(self, time_ps: int, delta: int, owner: str) -> None:
        if delta:
            self.changes.append(MemoryChange(time_ps, self.index, delta, owner))

    def _name(self, i: int) -> str:
        return self.tape.layers[i].name

    def _error(self, i: int, what: str, why: str, next: str) -> VirtualMemoryError:
        return VirtualMemoryError(f"layer {i} ({self._name(i)}) {what}", why=why, next=next)
