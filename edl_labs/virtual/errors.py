"""What goes wrong on a VirtualGPU and in a replay; each message says what, why and what next."""

from __future__ import annotations

from edl_labs.errors import EdlError


class VirtualGPUError(EdlError):
    """A program asks a VirtualGPU for something that a real GPU could not do, or would refuse with an error."""


class ReplayError(EdlError):
    """This is not a recorded program: it is malformed, too large, or impossible on any machine."""


class ProgramChanged(ReplayError):
    """The objects, sizes, durations or kernels of a recorded program differ from those of its case."""


class ReplayDisagreement(ReplayError):
    """A recorded value differs from the one that replaying the program gives."""

    def __init__(self, *, index: int, operation: str, recorded: object, replayed: object) -> None:
        super().__init__(
            f"operation {index} of the program, {operation}, was recorded with the value {shown(recorded)}",
            why=f"replaying the program up to this operation gives {shown(replayed)}",
            next="do not change measured values, and return every operation that was recorded",
        )
        self.index, self.operation, self.recorded, self.replayed = index, operation, recorded, replayed


def shown(value: object) -> str:
    """`value` for a message: short, and safe for anything, however large or nested it is."""
    if type(value) is int and value.bit_length() > 128:
        return "a huge number"
    if type(value) in (bool, int, float, str, type(None)):
        text = repr(value)
        return text if len(text) <= 40 else text[:39] + "…"
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"


class VirtualWorkersError(EdlError):
    """A program asks a VirtualWorkers for something that no loader, disk or clock could do."""


class VirtualMemoryError(EdlError):
    """A step asks a VirtualTape or a VirtualAllocator for something that is missing, or for too much memory."""


class VirtualClusterError(EdlError):
    """A program asks a VirtualCluster for something that no cluster could do, or would refuse with an error."""


class VirtualWarpError(EdlError):
    """A kernel asks a VirtualWarp for something that no thread, warp or block could do."""


class VirtualServerError(EdlError):
    """A policy asks a VirtualServer for something impossible, such as a request that has not arrived."""
