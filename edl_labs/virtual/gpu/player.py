"""Playing a recorded program on a VirtualGPU, one checked operation after the other, and keeping count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from edl_labs.virtual.errors import ReplayError
from edl_labs.virtual.gpu.buffers import DEVICE
from edl_labs.virtual.gpu.core import Core
from edl_labs.virtual.gpu.operations import COPIED, OPERATIONS, Entry, check_entry

# A program of this many operations replays in seconds, which a judge waits for.
MAX_REPLAYED = 300_000


def entries(program: object, *, max_operations: int = MAX_REPLAYED) -> Iterator[tuple[int, Entry]]:
    """The operations of a program with their numbers, each checked in its turn; ReplayError for anything else."""
    if type(program) is not list:
        raise ReplayError(
            f"a program is a list of operations, not a {type(program).__name__}",
            why="it was not recorded by a VirtualGPU",
            next="return gpu.program",
        )
    left = max_operations
    for index, raw in enumerate(program):
        entry = check_entry(index, raw)
        left -= _charge(entry)
        if left < 0:
            raise ReplayError(
                f"the program has more than {max_operations:,} operations",
                why="a replay has a limit",
                next="measure with fewer calls",
            )
        yield index, entry


class Player:
    """Issues checked operations to a VirtualGPU made for it, whose core it traces, and keeps count."""

    def __init__(self, gpu: Any) -> None:
        self.gpu = gpu
        gpu.core.traced = True
        self.counts: Counter[str] = Counter()
        self.launches: Counter[str] = Counter()
        self.copied: Counter[str] = Counter()
        self.blocking = 0

    def issue(self, entry: Entry) -> Any:
        """Issue one operation, and give what it returned; LookupError where it needs what the program did not make."""
        kind, name, times = OPERATIONS[entry["op"]], entry["op"], entry.get("times", 1)
        value = kind.play(self.gpu, entry)
        places = [self.gpu.buffers[entry[side][0]].where for side in ("dst", "src") if side in entry]
        if kind.writes == COPIED:
            name = _direction(*places)
            self.copied[name] += entry["dst"][2] - entry["dst"][1]
        if kind.is_kernel:
            self.launches[entry["name"]] += times
        self.counts[name] += times
        self.blocking += kind.blocks(entry, places)
        return value

    def finish(self) -> Core:
        """Let everything that was issued come to its end."""
        core: Core = self.gpu.core
        core.engines.run_all()
        return core


def _charge(entry: Entry) -> int:
    # Operations on many regions count for several: each region of each of them is kept.
    touched = len(entry.get("reads", ())) + len(entry.get("writes", ()))
    return int(entry.get("times", 1)) * max(1, touched // 4)


def _direction(dst: str, src: str) -> str:
    """The name under which a copy between two places is counted: H is the host, D the device."""
    ends = ["D" if place == DEVICE else "H" for place in (src, dst)]
    return f"copy {ends[0]}2{ends[1]}"
