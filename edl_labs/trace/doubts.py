"""What speaks against a trace being what one machine recorded: for a person to judge, never for a mark."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from edl_labs.hardware import lookup
from edl_labs.trace.handed_in import OwnTrace, hides_operators
from edl_labs.trace.own_change import SAME_FLOP
from edl_labs.trace.recording_noise import COPIED, likeness, noise_of
from edl_labs.trace.trace_table import Trace
from edl_labs.units import counted, percent

_CALL_SLACK_S = 1e-7  # one clock times operators, in nanoseconds
_SLACK_S = 5e-6  # clocks of host and device drift apart by a few microseconds
_ODD_SHARE = 0.01  # of events: a stray one may be the profiler's own error
_CORE_FLOP_PER_S = 4e11  # two AVX-512 units at 6 GHz; matrix units of newer processors do more in bfloat16
_FASTEST_LINK_BYTE_PER_S = 5e11  # NVLink-C2C, the fastest link between a host and a device
_SAME_LENGTH = 0.9  # of events: real clocks repeat a duration to the nanosecond now and then


def doubts(before: OwnTrace, after: OwnTrace) -> list[str]:
    """What is odd about two traces that were handed in, one sentence each; empty for what a machine recorded."""
    found = [f"{which}: {odd}" for which, one in (("before", before), ("after", after)) for odd in _odd(one)]
    one, other = before.stamp, after.stamp
    differing = [
        key for key in ("device_name", "torch", "python", "driver", "cpu_model") if one.get(key) != other.get(key)
    ]
    if differing:
        found.append(f"the environment stamps of the two traces differ in {', '.join(differing)}")
    if before.flop_per_step and hides_operators(after.trace):
        hidden = 1 - (after.flop_per_step or 0.0) / before.flop_per_step
        if hidden > SAME_FLOP:
            found.append(f"after: {percent(hidden, digits=2)} of the products are inside generated code or graphs")
    alike = likeness(noise_of(before), noise_of(after))
    if alike > COPIED:
        found.append(f"the trace after the change has the same noise as the one before (correlation {alike:.2f})")
    return found


def _odd(one: OwnTrace) -> Iterator[str]:
    trace = one.trace
    yield from _impossible_order(trace)
    yield from _impossible_rates(one)
    yield from _stamp(one)
    if one.flop_per_step is None:
        yield "no operator has input shapes"
    spans = [max(values) - min(values) for values in noise_of(one)["named"].values() if len(values) > 1]
    if spans and sum(span == 0 for span in spans) > _SAME_LENGTH * len(spans):
        yield "durations repeat exactly from step to step"


def _impossible_order(trace: Trace) -> Iterator[str]:
    device = trace.select("kernel", "copy", "communication")
    calls = {
        int(trace.link[i]): float(trace.start_s[i]) for i in trace.select("launch", "copy call") if trace.link[i] >= 0
    }
    early = [i for i in device.tolist() if trace.start_s[i] < calls.get(int(trace.link[i]), -1.0) - _SLACK_S]
    if len(early) > _ODD_SHARE * len(device):
        yield f"{counted(len(early), 'kernel')} of {len(device):,} start before their launch"
    lanes: dict[tuple[int, int], list[int]] = defaultdict(list)
    for i in trace.select("kernel", "copy").tolist():
        lanes[int(trace.row[i]), int(trace.stream[i])].append(i)
    overlaps = 0
    for lane in lanes.values():
        ends = np.maximum.accumulate(trace.end_s[lane])
        overlaps += int((trace.start_s[lane][1:] < ends[:-1] - _SLACK_S).sum())
    if overlaps > _ODD_SHARE * len(device):
        yield f"{counted(overlaps, 'kernel')} overlap with another one on the same stream"
    operators = trace.select("operator")
    crossing = _crossing(trace, operators)
    if crossing > _ODD_SHARE * len(operators):
        yield f"{counted(crossing, 'operator')} of {len(operators):,} end after the operator that called them"


def _crossing(trace: Trace, operators: np.ndarray) -> int:
    """How many operators begin inside another one of their thread, and end after it: calls cannot."""
    found = 0
    open_ends: dict[int, list[float]] = defaultdict(list)
    columns = (column[operators].tolist() for column in (trace.row, trace.start_s, trace.end_s))
    for row, start_s, end_s in zip(*columns, strict=True):
        ends = open_ends[row]
        while ends and ends[-1] <= start_s + _CALL_SLACK_S:
            ends.pop()
        found += bool(ends) and end_s > ends[-1] + _CALL_SLACK_S
        ends.append(end_s)
    return found


def _impossible_rates(one: OwnTrace) -> Iterator[str]:
    trace, stamp = one.trace, one.stamp
    copies = [
        i
        for i in trace.select("copy").tolist()
        if trace.moved_bytes[i] > 0 and "DtoD" not in trace.names[trace.name[i]]
    ]
    for i in copies:
        taken_s = max(float(trace.end_s[i] - trace.start_s[i]), 1e-9)
        if trace.moved_bytes[i] / taken_s > _FASTEST_LINK_BYTE_PER_S and trace.moved_bytes[i] > 1_000_000:
            yield f"a copy transfers {trace.moved_bytes[i] / taken_s / 1e9:,.0f} GB/s, faster than any link"
            break
    peak = _peak_flop_per_s(stamp)
    busy_s = _computing_s(one)
    if one.flop_per_step and peak and one.flop_per_step > peak * busy_s:
        over = one.flop_per_step / (peak * busy_s) if busy_s else float("inf")
        yield f"its products run at {over:.1f} times the peak of {stamp.get('device_name')}"


def _peak_flop_per_s(stamp: Mapping[str, object]) -> float:
    """The fastest dense rate of the stamped device; 0 where it is not known."""
    if stamp.get("kind") == "cpu":
        cores = stamp.get("cores")
        return _CORE_FLOP_PER_S * cores if type(cores) is int and cores > 0 else 0.0
    entry = lookup(str(stamp.get("device_name", "")))
    return max(map(entry.peak_flop_per_s, entry.dtypes()), default=0.0) if entry else 0.0


def _computing_s(one: OwnTrace) -> float:
    """Seconds a step in which something computes: the device where there is one, else the whole step."""
    trace = one.trace
    if not trace.on_device:
        return one.step_s
    kernels = trace.select("kernel")
    return float((trace.end_s[kernels] - trace.start_s[kernels]).sum()) / len(trace.steps)


def _stamp(one: OwnTrace) -> Iterator[str]:
    kind, name = one.stamp.get("kind"), one.stamp.get("device_name")
    if kind not in ("cpu", "cuda", "xpu", "mps"):
        yield "it has no environment stamp"
    elif kind == "cpu" and one.trace.on_device:
        yield "its stamp names a CPU, but it contains work of a device"
    elif kind in ("cuda", "xpu") and not one.trace.on_device:
        yield f"its stamp names {name}, but it contains no work of a device"
    if kind == "cuda" and one.device_names and name not in one.device_names:
        yield f"its stamp names {name}, but the profiler saw {', '.join(one.device_names[:3])}"
