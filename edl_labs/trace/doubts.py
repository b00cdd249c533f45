"""What speaks against a trace being what one machine recorded: for a person to judge, never for a mark.

Noise is a recording's fingerprint: durations of one operator differ from step to step in a way that no second run has.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

import numpy as np

from edl_labs.hardware import lookup
from edl_labs.trace.handed_in import OwnTrace
from edl_labs.trace.trace_table import KINDS, NUMBER, Trace
from edl_labs.units import counted

COPIED = (
    0.9  # rank correlation of noise: two runs of one program were seen at 0.1 to 0.4, copies with 1 % jitter at 1.0
)
_SLACK_S = 5e-6  # clocks of host and device drift apart by a few microseconds
_ODD_SHARE = 0.01  # of events: a stray one may be the profiler's own error
_LEAST_EVENTS = 20  # of a step: with fewer, chance alone reaches high correlations
_MOST_STEPS, _MOST_OPERATORS = 8, 500  # a class of 1,000 has 500,000 pairs to compare
_CORE_FLOP_PER_S = 4e11  # two AVX-512 units at 6 GHz; matrix units of newer processors do more in bfloat16
_FASTEST_LINK_BYTE_PER_S = 5e11  # NVLink-C2C, the fastest link between a host and a device
_SAME_LENGTH = 0.9  # of events: real clocks repeat a duration to the nanosecond now and then
Noise = list[dict[str, float]]


def doubts(before: OwnTrace, after: OwnTrace) -> list[str]:
    """What is odd about two traces that were handed in, one sentence each; empty for what a machine recorded."""
    found = [f"{which}: {odd}" for which, one in (("before", before), ("after", after)) for odd in _odd(one)]
    one, other = before.stamp, after.stamp
    differing = [
        key for key in ("device_name", "torch", "python", "driver", "cpu_model") if one.get(key) != other.get(key)
    ]
    if differing:
        found.append(f"stamps before and after differ in {', '.join(differing)}")
    alike = likeness(noise_of(before.trace), noise_of(after.trace))
    if alike > COPIED:
        found.append(f"the noise of the trace after is that of the trace before (correlation {alike:.2f})")
    return found


def _odd(one: OwnTrace) -> Iterator[str]:
    trace = one.trace
    yield from _impossible_order(trace)
    yield from _impossible_rates(one)
    yield from _stamp(one)
    if one.flop_per_step is None:
        yield "no operator has input shapes"
    noise = noise_of(trace)
    values = [value for step in noise for value in step.values()]
    if len(noise) > 1 and values and sum(value == 0 for value in values) > _SAME_LENGTH * len(values):
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
        yield f"{counted(overlaps, 'kernel')} overlap another one on their stream"


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
            yield f"a copy moves {trace.moved_bytes[i] / taken_s / 1e9:,.0f} GB/s, faster than any link"
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
        yield "it is stamped as a CPU's, and holds work of a device"
    elif kind in ("cuda", "xpu") and not one.trace.on_device:
        yield f"it is stamped as {name}'s, and holds no work of a device"
    if kind == "cuda" and one.device_names and name not in one.device_names:
        yield f"it is stamped as {name}'s, and the profiler saw {', '.join(one.device_names[:3])}"


def noise_of(trace: Trace) -> Noise:
    """By step how much longer each operator and kernel took than its median over the steps, as a logarithm.

    What a whole step has in common is taken off, so that a scaled copy has the same noise.
    """
    starts = [start for start, _ in trace.steps]
    step_of = np.searchsorted(starts, trace.start_s, side="right") - 1
    seen: list[dict[int, int]] = [defaultdict(int) for _ in starts]
    counted_steps: list[dict[str, float]] = [{} for _ in starts]
    for i in np.flatnonzero(trace.kind != NUMBER["step"]).tolist():
        step, name = int(step_of[i]), int(trace.name[i])
        taken_s = float(trace.end_s[i] - trace.start_s[i])
        if step < 0 or taken_s <= 0 or len(counted_steps[step]) >= _MOST_OPERATORS:
            continue
        seen[step][name] += 1
        counted_steps[step][f"{KINDS[trace.kind[i]]} {trace.names[name][:80]} {seen[step][name]}"] = taken_s
    kept = counted_steps[1 : 1 + _MOST_STEPS]
    by_key: dict[str, list[float]] = defaultdict(list)
    for durations in kept:
        for key, taken_s in durations.items():
            by_key[key].append(taken_s)
    # What is not in every step has no median to be compared with.
    medians = {key: float(np.median(values)) for key, values in by_key.items() if len(values) == len(kept)}
    found = []
    for durations in kept:
        step_noise = {key: float(np.log(durations[key] / middle)) for key, middle in medians.items()}
        common = float(np.median([*step_noise.values()])) if step_noise else 0.0
        found.append({key: round(value - common, 6) for key, value in step_noise.items()})
    return found


def likeness(one: Noise, other: Noise) -> float:
    """The rank correlation of the noise of steps of `one` with the most alike steps of `other`, at their median."""
    best = []
    for step in one:
        found = [_rank_correlation(step, candidate) for candidate in other]
        best.append(max(found, default=0.0))
    return float(np.median(best)) if best else 0.0


def _rank_correlation(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    """Spearman's, over what both have; 0 where that is too little, or does not vary."""
    common = [key for key in one if key in other]
    if len(common) < _LEAST_EVENTS:
        return 0.0
    first, second = (_ranks(np.array([noise[key] for key in common])) for noise in (one, other))
    if 0 in (first.std(), second.std()):
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])


def _ranks(values: np.ndarray) -> np.ndarray:
    """Ranks, the mean of theirs for equal values."""
    _, where, counts = np.unique(values, return_inverse=True, return_counts=True)
    upper = np.cumsum(counts)
    ranks: np.ndarray = (upper - (counts - 1) / 2)[where]
    return ranks
