"""What is judged of two traces that were handed in, as plain data: another process than the judge's reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any

from edl_labs.trace._what_if import what_if
from edl_labs.trace.errors import TraceError
from edl_labs.trace.handed_in import OwnTrace, hides_operators, read_handed_in
from edl_labs.trace.notes import is_device_missing
from edl_labs.trace.packed_trace import FILES

_LARGEST = 2  # causes among which the named one must be: two of nearly equal shares may change places
_PLACE_LETTERS = 2000  # a line and its function have fewer
_MARK_LETTERS = 200  # of a name that hand_in writes itself


@dataclass(frozen=True)
class Side:
    """What one trace tells about a loop. Times are seconds a step.

    `bounds_s` has for each of the largest causes the least time without it, and
    `places` by cause what is blamed. `hides_operators`: products in graphs or in generated code have no shapes.
    """

    which: str
    pair: str
    device: str
    origin: str
    input_shapes: str
    step_s: float
    flop_per_step: float | None
    hides_operators: bool
    shares: Mapping[str, float]
    places: Mapping[str, list[str]]
    bounds_s: Mapping[str, float]


def pair_facts(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The facts of both files by name, as plain data, or why there are none: `refused` with what, why and next."""
    missing = [name for name in FILES if name not in files]
    if missing:
        what = f"{' and '.join(missing)} cannot be found"
        why = "the traces of your loop are read from two files next to the notebook, each of at most 5 MB"
        then = "run trace.hand_in(before, after) in this folder, and submit both files with the notebook"
        return {"refused": [what, why, then]}
    try:
        # One after the other: a table of the largest file takes 100 MB.
        return {name: asdict(facts(read_handed_in(files[name], name=name))) for name in FILES}
    except TraceError as error:
        return {"refused": [error.what, error.why, error.next]}


def facts(one: OwnTrace) -> Side:
    """What is judged of a trace."""
    found, trace = one.attribution, one.trace
    largest = sorted(found.shares, key=lambda cause: -found.shares[cause])[:_LARGEST]
    # The bound is asked of the first trace alone.
    bounds = {cause: _bound_s(one, cause) for cause in largest} if one.about.get("which") == "before" else {}
    return Side(
        which=_text(one.about.get("which")),
        pair=_text(one.about.get("pair")),
        device=f"{_text(one.stamp.get('kind'))} {_text(one.stamp.get('device_name'))}",
        origin=trace.origin,
        input_shapes=_digest(one.about.get("input_shapes")),
        step_s=float(one.step_s),
        flop_per_step=one.flop_per_step,
        hides_operators=hides_operators(trace),
        shares=dict(found.shares),
        places={
            cause: [text[:_PLACE_LETTERS] for blame in blames for text in (blame.line, blame.what) if text]
            for cause, blames in found.blames.items()
        },
        bounds_s=bounds,
    )


def _bound_s(one: OwnTrace, cause: str) -> float:
    """Seconds of a step without `cause`, at least: by a replay of the trace, or by the cause's share if less.

    The share is the upper end of its interval.
    """
    found = one.attribution
    times_s = [found.wall_s * (1 - found.intervals[cause][1])]
    gain = None if is_device_missing(one.trace) else what_if(one.analysed, cause, skip=1)
    if gain is not None and gain.is_reliable:
        times_s.append(gain.after_s)
    return min(times_s) * one.step_s / found.wall_s


def _digest(value: object) -> str:
    """A text that is equal for equal values, and short whatever they are."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()


def _text(value: object) -> str:
    return value[:_MARK_LETTERS] if isinstance(value, str) else ""
