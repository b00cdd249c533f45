"""How far a class run is: rate, time left, flags so far."""

from __future__ import annotations

from edl_labs.course.grade.classrun import StudentRow, _progress


def test_progress_has_rate_time_left_and_flags():
    rows = {
        "ana": StudentRow("ana", "graded", flags=("late",)),
        "ben": StudentRow("ben", "kept", flags=("late", "tampered")),
        "cleo": StudentRow("cleo", "failed"),
    }
    now = _progress(rows, 12, "cleo", 6.0)

    assert (3, 12, 18.0, 30.0) == (now.done, now.total, now.left_s, now.per_minute)
    assert {"failed": 1, "late": 2, "tampered": 1} == dict(now.flags)
    assert {"done": 3, "total": 12, "student": "cleo", "per_minute": 30.0}.items() <= now.to_json().items()
