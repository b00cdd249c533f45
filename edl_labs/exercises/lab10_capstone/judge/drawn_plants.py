"""The cases of rank_gains: training steps with plants, some of them hidden, and what wrong replays give."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab10_capstone.ranked_gains import COUNT, machine_of
from edl_labs.virtual.operation_runs import run_spans

_TRIES = 1500  # about one draw in twenty is asked
_AGAIN = 0.5  # what a second mend of the same operations leaves of their seconds
_MS = 1e-3  # seconds: times are drawn in milliseconds
# Which resource is meant to be short first: each kind of run once.
_SHORT = ("host", "copies", "gpu", "network")
_READ = ("gpu",)  # where a host that is early waits for the loss: a mend of it uncovers what the GPU then hides
_REORDERED = ("host", "gpu")  # runs in which the first mend changes the order of the others
# What some of the runs have to tell from a right replay: they are short of the host, where calls cost, or read a loss.
_TOLD = {"host": ("calls", "issued"), "gpu": ("kept",)}


@case_source("rank_gains")
def planted_runs(rng: Any) -> list[Case]:
    return [
        Case.split(_decided(rng, _SHORT[at], reordered=_SHORT[at] in _REORDERED), "step", "machine", "slips")
        for at in rng.permutation(len(_SHORT))
    ]


def _decided(rng: Any, short: str, *, reordered: bool) -> dict[str, Any]:
    """A run in which no two mends are near a tie, and which tells the slips that it is there to tell."""
    for _ in range(_TRIES):
        case = _case(rng, short)
        if _is_asked(case, reordered=reordered, hides=short not in _READ):
            spans, slips = run_spans(case["step"], machine_of(case), count=COUNT), slips_of(case)
            if all(_is_told(spans, case["mends"], slips[one]) for one in _TOLD.get(short, ())):
                return {**case, "spans": spans, "slips": slips, "twice": _twice(spans, case["mends"])}
    raise AssertionError(f"no drawn run that {short} limits has a clear answer; draw other times")


def _is_asked(case: Any, *, reordered: bool, hides: bool) -> bool:
    """Whether gains are told apart, something large hides, and the first mends change the order of the others."""
    spans, mends = run_spans(case["step"], machine_of(case), count=COUNT), case["mends"]
    whole, done = _slipping(spans, {}), dict[str, float]()
    alone = {name: whole - _slipping(spans, _left(mends[name])) for name in mends}
    hidden = [name for name in alone if alone[name] < 0.01 * whole and _share(spans, mends[name]) > 0.1 * whole]
    if (hides and not hidden) or sum(gain > 0.04 * whole for gain in alone.values()) < 2:
        return False
    order: list[str] = []
    for _ in range(3):
        now = _slipping(spans, done)
        gains = {name: now - _slipping(spans, {**done, **_left(mends[name])}) for name in mends if name not in order}
        best, second = sorted(gains, key=lambda name: -gains[name])[:2]
        if gains[best] - gains[second] < 0.01 * whole or gains[best] < 0.02 * whole:
            return False
        order.append(best)
        done |= _left(mends[best])
    return not reordered or order != sorted(alone, key=lambda name: -alone[name])[:3]


def _is_told(spans: Sequence[Any], mends: Any, slip: Any) -> bool:
    """Whether a slip's gain of some mend is clearly not the right one."""
    whole = _slipping(spans, {})
    rights = {name: whole - _slipping(spans, _left(mend)) for name, mend in mends.items()}
    return any(abs(slip[name] - right) > max(0.015 * whole, 0.15 * right) for name, right in rights.items())


def _twice(spans: Sequence[Any], mends: Any) -> list[dict[str, Any]]:
    """Two mends of the same operations, those whose product differs most from either factor."""

    def apart_s(mend: Any) -> float:
        both, *either = (
            _slipping(spans, dict.fromkeys(mend["names"], times))
            for times in (mend["times"] * _AGAIN, mend["times"], _AGAIN)
        )
        return min(either) - both

    most = max((mend for mend in mends.values() if mend["times"]), key=apart_s)
    return [{"names": list(most["names"]), "times": times} for times in (most["times"], _AGAIN)]


def _left(mend: Any) -> dict[str, float]:
    return dict.fromkeys(mend["names"], mend["times"])


def _share(spans: Sequence[Any], mend: Any, *, besides: Sequence[str] = ()) -> float:
    mended = [one for one in spans if one["name"] in mend["names"] and one["kind"] not in besides]
    taken = sum(one["end_s"] - one["start_s"] for one in mended)
    return float((1 - mend["times"]) * taken)


def _case(rng: Any, short: str) -> dict[str, Any]:
    """A step: decode, copy, forward, backward with a sum over the network beside it, update, a loss that is read."""

    def ms(low: float, high: float, *, more: float = 1.0, when: str = "") -> float:
        return round(float(rng.uniform(low, high)) * (more if when == short else 1.0) * _MS, 6)

    pinned = bool(rng.integers(2))
    row = "copies" if pinned else "gpu"
    megabytes = ms(20, 50, more=3.0, when="copies") / _MS
    blocks = int(rng.integers(2, 4))
    step: list[dict[str, Any]] = [
        {"op": "host", "name": "decode", "duration_s": ms(4, 9, more=2.0, when="host")},
        {"op": "host", "name": "augment", "duration_s": ms(2, 5, more=1.5, when="host")},
        {"op": "copy", "name": "to device", "nbytes": int(megabytes * 2**20), "pinned": pinned, "row": row},
        {"op": "kernel", "name": "forward", "duration_s": ms(3, 6, more=2.0, when="gpu"), "after": "to device"},
    ]
    for block in range(blocks):
        step.append({"op": "kernel", "name": f"zero {block}", "duration_s": ms(0.1, 0.3)})
    for block in range(blocks):
        back = ms(2, 4, more=2.0, when="gpu")
        step.append({"op": "kernel", "name": f"backward {block}", "duration_s": back})
        sent = {"op": "kernel", "name": f"all-reduce {block}", "row": "network", "after": f"backward {block}"}
        step.append({**sent, "duration_s": ms(1.5, 4, more=3.0, when="network")})
    step.append({"op": "kernel", "name": "update", "duration_s": ms(2, 5), "after": f"all-reduce {blocks - 1}"})
    if short in _READ or rng.integers(2):
        step.append({"op": "read", "name": "read loss"})
    step.append({"op": "host", "name": "log", "duration_s": ms(1.5, 5)})
    return {"step": step, "machine": _machine(rng), "mends": _mends(rng, step)}


def _machine(rng: Any) -> dict[str, float]:
    link = float(rng.choice([12e9, 20e9]))
    overheads = {"launch_overhead_s": 7e-4, "copy_overhead_s": 1e-4}
    return {**overheads, "link_byte_per_s": link, "pageable_byte_per_s": link / 3, "sm_count": 108}


def _mends(rng: Any, step: Sequence[Any]) -> dict[str, Any]:
    names = [one["name"] for one in step]
    sums = [name for name in names if name.startswith("all-reduce")]
    zeros = [name for name in names if name.startswith("zero")]
    passes = ["forward", *(name for name in names if name.startswith("backward"))]
    mends = {
        "decode once": {"names": ["decode"], "times": 0.1},
        "augment on the device": {"names": ["augment"], "times": 0.0},
        "bytes, not floats": {"names": ["to device"], "times": 0.25},
        "half precision": {"names": passes, "times": 0.5},
        "half gradients": {"names": sums, "times": 0.5},
        "fused update": {"names": ["update"], "times": 0.3},
        "log less": {"names": ["log"], "times": 0.0},
        "no gradients, not zeros": {"names": zeros, "times": 0.0},
    }
    if "read loss" in names:
        mends["read the loss late"] = {"names": ["read loss"], "times": 0.0}
    order = rng.permutation(len(mends))
    return {list(mends)[at]: mends[list(mends)[at]] for at in order}


def slips_of(case: Any) -> dict[str, Any]:
    """What replays with a slip give for each fix alone: seconds gained, by slip."""
    spans = run_spans(case["step"], machine_of(case), count=COUNT)
    found: dict[str, Any] = {"shares": {name: _share(spans, mend) for name, mend in case["mends"].items()}}
    work = {name: _share(spans, mend, besides=("call", "wait")) for name, mend in case["mends"].items()}
    found["shares of work"] = work
    for slip in ("waits", "rows", "after", "gone", "calls", "issued", "kept", "started", "turned"):
        whole = _slipping(spans, {}, slip)
        gained = {name: whole - _slipping(spans, _left(mend), slip) for name, mend in case["mends"].items()}
        found[slip] = {name: round(gain, 12) for name, gain in gained.items()}
    return found


def _slipping(spans: Sequence[Any], left: dict[str, float], slip: str = "") -> float:
    """The seconds of a run with some operations shorter, and one thing about it mistaken."""
    ends: list[float] = []
    rows: dict[str, float] = {}
    for span in spans:
        times, lasts = left.get(span["name"], 1.0), span["end_s"] - span["start_s"]
        times = 0.0 if slip == "gone" and times < 1 else times
        times = 1 - times if slip == "turned" and span["name"] in left else times
        after = [] if slip == "after" else span["after"]
        if span["kind"] == "wait":
            lasts = lasts * times if slip == "waits" else 0.0
            after = after if times or slip == "kept" else []
        elif span["kind"] == "call" and slip != "calls":
            lasts *= times > 0 or slip == "issued"
        else:
            lasts *= times
        began = span["start_s"] if slip == "started" else 0.0
        queued = 0.0 if slip == "rows" else rows.get(span["row"], 0.0)
        start = max([began, queued, *(ends[at] for at in after)])
        ends.append(start + lasts)
        rows[span["row"]] = ends[-1]
    return max(ends)
