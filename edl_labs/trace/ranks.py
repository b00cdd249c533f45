"""Several ranks in one trace: which events belong to which process, each rank as a trace of its own.

Correlation ids count from 1 in each process, so that those of two ranks are alike: a device's row belongs to the
process whose calls come right before its work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from edl_labs.trace.errors import TraceError
from edl_labs.trace.trace_table import CALL_KINDS, DEVICE_KINDS, Trace

# Of the work on a row of the device that one rank must have issued; on rows of one rank a few ids meet by chance.
_MOST = 0.75
# Device and host clocks of real traces agree to about a microsecond.
_TOUCH_S = 1e-6


def by_rank(trace: Trace, processes: Sequence[Any], *, label: str) -> tuple[Trace, ...]:
    """A trace for each process that issues device work (without a device: that marks steps); itself where it is one.

    `processes` says by row which process it belongs to. TraceError where the work of two cannot be separated.
    """
    issuing = trace.select("launch", "copy call") if trace.on_device else trace.select("step")
    ranks = _in_order(processes[row] for row in trace.row[issuing].tolist())
    if len(ranks) < 2:
        return (trace,)
    owners = list(processes)
    for row, votes in _votes(trace, processes, ranks).items():
        owner, count = votes.most_common(1)[0]
        if count < _MOST * votes.total():
            raise TraceError(
                f"{label} contains {len(ranks)} ranks that cannot be separated",
                why=f"row {trace.rows[row]} contains work that was issued by {len(votes)} of their processes",
                next="use a separate file for each rank",
            )
        owners[row] = owner
    owner_of = np.array([ranks.index(owner) if owner in ranks else -1 for owner in owners])
    return tuple(_part(trace, owner_of[trace.row] == number, number) for number in range(len(ranks)))


def _in_order(processes: Any) -> list[Any]:
    """Each process once, by its number where it has one: ranks are started in turn."""
    found = list(dict.fromkeys(processes))
    return sorted(found) if all(type(process) is int for process in found) else sorted(found, key=str)


def _votes(trace: Trace, processes: Sequence[Any], ranks: list[Any]) -> dict[int, Counter[Any]]:
    """By row of the device how much of its work each process issued: of calls of one id the last one before it."""
    calls: dict[int, list[tuple[float, Any]]] = {}
    for event in trace.select(*CALL_KINDS).tolist():
        link, process = int(trace.link[event]), processes[int(trace.row[event])]
        if link >= 0 and process in ranks:
            calls.setdefault(link, []).append((float(trace.start_s[event]), process))
    votes: dict[int, Counter[Any]] = {}
    for event in trace.select(*DEVICE_KINDS).tolist():
        row, start_s = int(trace.row[event]), float(trace.start_s[event]) + _TOUCH_S
        before = [call for call in calls.get(int(trace.link[event]), ()) if call[0] <= start_s]
        if before and processes[row] not in ranks:
            latest = max(moment for moment, _ in before)
            votes.setdefault(row, Counter()).update(process for moment, process in before if moment == latest)
    return votes


def _part(trace: Trace, mine: np.ndarray, rank: int) -> Trace:
    """The events of one rank, its time from its own first event."""
    first_s = float(trace.start_s[mine].min())
    used, rows = np.unique(trace.row[mine], return_inverse=True)
    kept = ("kind", "name", "link", "stream", "moved_bytes", "line", "collective")
    columns = {name: getattr(trace, name)[mine] for name in kept}
    return replace(
        trace,
        **columns,
        row=rows.astype(trace.row.dtype),
        rows=tuple(trace.rows[row] for row in used.tolist()),
        start_s=trace.start_s[mine] - first_s,
        end_s=trace.end_s[mine] - first_s,
        meta={**trace.meta, "rank": rank},
    )
