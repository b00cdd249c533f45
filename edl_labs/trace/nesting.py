"""Which event lies inside which, and what time is its own."""

from __future__ import annotations

import numpy as np

# Profilers round times to a nanosecond: a child may seem to end that much after its parent.
_SLACK_S = 2e-9


def nest(row: np.ndarray, start_s: np.ndarray, end_s: np.ndarray, *, flat: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(parent, self time) of events that are sorted by start, outer ones first.

    An event's parent is the innermost event of its row that contains it (where none does, the innermost that has not
    ended when it starts, of which it takes their common time). Time is the parent's own where no child runs. `flat`
    events have no parent.
    """
    count = len(row)
    parent, own = [-1] * count, (end_s - start_s).tolist()
    starts, ends, rows, skip = start_s.tolist(), end_s.tolist(), row.tolist(), flat.tolist()
    stacks: list[list[int]] = [[] for _ in range(int(row.max()) + 1 if count else 0)]
    covered = starts[:]
    for i in range(count):
        if skip[i]:
            continue
        stack, begin = stacks[rows[i]], starts[i] + _SLACK_S
        while stack and ends[stack[-1]] <= begin:
            stack.pop()
        if stack:
            # Annotations begin inside the frame that opens them, and outlast it.
            above = next((j for j in reversed(stack) if ends[j] >= ends[i] - _SLACK_S), stack[-1])
            parent[i] = above
            # Children that overlap each other are counted once.
            fresh = min(ends[i], ends[above]) - max(starts[i], covered[above])
            if fresh > 0:
                own[above] -= fresh
                covered[above] = min(ends[i], ends[above])
        stack.append(i)
    return np.array(parent, dtype=np.int64), np.maximum(np.array(own, dtype=float), 0.0)
