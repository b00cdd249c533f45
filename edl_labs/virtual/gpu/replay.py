"""Replaying a recorded program on a fresh VirtualGPU: what it does is computed again, its readings are compared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from edl_labs.hardware import Accelerator
from edl_labs.values import Value
from edl_labs.virtual.gpu.dataflow import Piece, contents
from edl_labs.virtual.gpu.machine import VirtualMachine, machine
from edl_labs.virtual.gpu.player import Player, played
from edl_labs.virtual.gpu.races import Race, find_races
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU
from edl_labs.virtual.program import MAX_REPLAYED, Entry, Reading
from edl_labs.virtual.quantities import PER_SECOND
from edl_labs.virtual.timeline import Timeline


@dataclass(frozen=True, repr=False)
class Replay(Value):
    """What a program did, from its operations alone.

    `counts` is by kind of operation, copies by direction ('copy H2D', 'copy D2H', 'copy D2D', 'copy H2H'); `blocking`
    counts the calls that make the host wait for the device by their nature: synchronisations, items, blocking copies.
    """

    OMITTED = ("readings", "program")

    machine: VirtualMachine
    operations: int
    counts: Mapping[str, int]
    launches: Mapping[str, int]
    copied_bytes: Mapping[str, int]
    blocking: int
    host_s: float
    device_s: float
    readings: tuple[Reading, ...]
    program: tuple[Entry, ...] = field(repr=False)

    @property
    def makespan_s(self) -> float:
        """From time 0 until the host and the device are both done."""
        return max(self.host_s, self.device_s)

    @cached_property
    def timeline(self) -> Timeline:
        """What ran when: the program is played once more, and watched."""
        return played(VirtualGPU(self.machine), list(self.program))

    @cached_property
    def races(self) -> tuple[Race, ...]:
        """Pairs of operations that touch the same bytes, one writing, without an order between them."""
        return find_races(self.program)

    def contents(self, buffer: int) -> tuple[Piece, ...]:
        """Where the bytes of a buffer come from in the end: from which inputs, through which kernels.

        Operations are followed in the order of issue, which is what happens when there are no races.
        """
        return contents(self.program, buffer)


def replay(
    program: object,
    model: str | Accelerator | VirtualMachine | Mapping[str, Any],
    *,
    max_operations: int = MAX_REPLAYED,
) -> Replay:
    """Run a recorded program again on a fresh VirtualGPU of the same machine.

    Raises ReplayDisagreement where a recorded reading is not the replayed one, and ReplayError where `program` is
    not one: never anything else, whatever it is.

    >>> gpu = VirtualGPU("H200")
    >>> gpu.launch("relu", duration_s=1e-3); gpu.synchronize(); _ = gpu.now_s()
    >>> replay(gpu.program, "H200").counts
    {'launch': 1, 'synchronize': 1, 'now': 1}
    """
    player = Player(VirtualGPU(machine(model)))
    core = player.play(program, max_operations=max_operations)
    assert isinstance(program, list)
    return Replay(
        machine=core.machine,
        operations=len(program),
        counts=dict(player.counts),
        launches=dict(player.launches),
        copied_bytes=dict(player.copied),
        blocking=player.blocking,
        host_s=core.host_ps / PER_SECOND,
        device_s=core.all_done() / PER_SECOND,
        readings=tuple(player.readings),
        program=tuple(core.recorded),
    )
