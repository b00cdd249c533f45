"""Copies that hold the host: which of its calls wait for one, and whether that copy is a read.

The device's own copying is copying; what the call takes beyond that is waiting. A read waits for a value: only leaving
it out helps. An upload waits because its memory is pageable, or because the call lacks `non_blocking`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from edl_labs.trace.device_work import is_to_host
from edl_labs.trace.trace_table import KINDS, Trace

# PyTorch synchronises right after a blocking copy: the next call of its own code comes later than this.
_RIGHT_AFTER_S = 2e-6
# A call that is shorter only issues its copy: about four launches.
_ISSUE_S = 20e-6
# The clocks of host and device agree to about this.
_TOUCH_S = 1e-6


class BlockingCopy(NamedTuple):
    """The index of a device's copy that a call waits for, and whether it brings data to the host."""

    copy: int
    is_read: bool


def blocking_copies(trace: Trace) -> Mapping[int, BlockingCopy]:
    """By index of a call, or of the synchronisation right after it, the copy that it waits for."""
    copies = {int(trace.link[i]): i for i in trace.select("copy").tolist() if trace.link[i] >= 0}
    found: dict[int, BlockingCopy] = {}
    # By row its last call.
    last: dict[int, int] = {}
    for i in trace.select("launch", "copy call", "sync", "alloc").tolist():
        row, kind = int(trace.row[i]), KINDS[trace.kind[i]]
        call = last.get(row, -1) if kind == "sync" else i
        copy = copies.get(int(trace.link[call]), -1) if call >= 0 and KINDS[trace.kind[call]] == "copy call" else -1
        if copy >= 0 and (_waits(trace, i, copy) if call == i else _belongs(trace, call, i)):
            found[i] = BlockingCopy(copy, is_to_host(trace, copy))
        last[row] = i
    return found


def _waits(trace: Trace, call: int, copy: int) -> bool:
    """Whether a call lasts until its copy is over, and is more than an issue."""
    if trace.end_s[call] < trace.end_s[copy] - _TOUCH_S:
        return False
    to_pageable = is_to_host(trace, copy) and "Pinned" not in trace.names[trace.name[copy]]
    return bool(to_pageable or trace.end_s[call] - trace.start_s[call] > _ISSUE_S)


def _belongs(trace: Trace, call: int, sync: int) -> bool:
    """Whether a synchronisation is the second half of a blocking copy."""
    name = trace.names[trace.name[sync]]
    if name == "copy":
        return True
    around = int(trace.parent[sync])
    together = around >= 0 and around == trace.parent[call] and KINDS[trace.kind[around]] == "operator"
    near = trace.start_s[sync] - trace.end_s[call] < _RIGHT_AFTER_S
    return bool(("Stream" in name or "Queue" in name) and (together or near))
