"""What a reader of a diagnosis has to know first: what the trace lacks or holds unread, and what that changes."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from edl_labs.trace.device_work import merged_s
from edl_labs.trace.trace_table import DEVICE_KINDS, Trace
from edl_labs.units import counted, percent, seconds

# Kernels of the last launches are often cut off, and some calls launch nothing; more than this is a loss.
_MOST_LOST = 0.2
# The verdict and the advice where the device itself does not show.
MISSING = (
    "host only: device events are missing",
    "record the device too: use activities=[CPU, CUDA], with permission to read the GPU's counters (CUPTI, "
    "rocprofiler)",
)


def notes_of(trace: Trace) -> tuple[str, ...]:
    """Each note as a sentence: device events that are missing, several devices, and what was not read."""
    return (*_device_missing(trace), *_devices(trace), *_unread(trace))


def is_device_missing(trace: Trace) -> bool:
    """Whether the host issues work to a device of which the trace shows nothing, or launches and no kernel."""
    if not trace.on_device:
        return trace.uses_device
    return bool(len(trace.select("launch"))) and not len(trace.select("kernel", "communication"))


def _device_missing(trace: Trace) -> list[str]:
    calls = trace.select("launch", "copy call")
    linked = calls[trace.link[calls] >= 0]
    if is_device_missing(trace):
        lacks = "kernel" if trace.on_device else "device event"
        what = f"the host issues work {len(calls):,} times, but the trace contains no {lacks}"
        return [f"{what}; the shares cover only the host, and computing and communication are unknown"]
    work = set(trace.link[trace.select(*DEVICE_KINDS)].tolist())
    lost = sum(link not in work for link in trace.link[linked].tolist())
    if trace.origin == "VirtualGPU" or lost <= _MOST_LOST * len(linked):
        return []
    what = f"{lost:,} of {len(linked):,} calls that issue work have no device event"
    why = "their events were cut off or lost, or the calls were captured into a graph"
    return [f"{what} ({why}): if an event was lost, the device was busier than the shares show"]


def _devices(trace: Trace) -> list[str]:
    by_row: dict[str, Any] = trace.meta.get("devices") or {}
    if len({str(device) for device in by_row.values()}) < 2:
        return []
    spans: dict[Any, list[tuple[float, float]]] = defaultdict(list)
    for i in trace.select(*DEVICE_KINDS).tolist():
        device = by_row.get(trace.rows[trace.row[i]])
        if device is not None:
            spans[device].append((float(trace.start_s[i]), float(trace.end_s[i])))
    if len(spans) < 2:
        return []
    shares = {device: merged_s(spans[device]) / trace.span_s for device in sorted(spans, key=str)}
    busy = ", ".join(f"device {device} {percent(share, digits=2)}" for device, share in shares.items())
    what = f"this process drives {len(spans)} devices (busy: {busy})"
    return [f"{what}; time counts as busy when any of them is busy, so the idle time of a single device is not shown"]


def other_ranks(trace: Trace) -> tuple[str, ...]:
    """A note where the trace is one rank of several, and says so."""
    world: dict[str, Any] = trace.meta.get("distributedInfo") or {}
    size = world.get("world_size")
    if type(size) is not int or size < 2:
        return ()
    what = f"this is rank {world.get('rank', 'unknown')} of {size}"
    return (
        f"{what}; waiting for other ranks counts as communication, and diagnosing the files of all ranks together "
        "shows it",
    )


def _unread(trace: Trace) -> list[str]:
    found: dict[str, tuple[int, float]] = trace.meta.get("unread") or {}
    why = "if this is device work, the shares and gains are wrong"
    return [
        f"{counted(count, 'event')} not read: {label} ({seconds(taken_s)} in total); {why}"
        for label, (count, taken_s) in sorted(found.items(), key=lambda item: -item[1][1])
    ]
