"""How far a class run is: rate, time left, flags so far."""

from __future__ import annotations

import pytest

from edl_labs.cli.graders import _so_far
from edl_labs.course.grade.classrun import StudentRow, _Done, _next_done, _progress, _Queues, _slow
from edl_labs.course.grade.grader import Step
from edl_labs.errors import EdlError


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


def test_who_is_at_one_cell_for_long_is_told_before_anybody_is_done():
    steps = [Step("ana", "cell 7", 0.0), Step("ben", "check of ring", 90.0), Step("cleo", "cell 2", 99.0)]
    now = _progress({}, 12, "", 100.0, slow=_slow(steps, 130.0))

    assert [("ana", 130.0), ("ben", 40.0), ("cleo", 31.0)] == [(who, seconds) for who, _, seconds in now.slow]
    assert () == _slow(steps[2:], 100.0)
    assert (None, 0) == (now.left_s, now.done)
    assert "0 graded; ana: cell 7 has been running for 130 s; ben: check of ring has been running" in _so_far(now)
    assert ["ana", "cell 7", 130.0] == list(now.to_json()["slow"][0])


def test_the_writer_waits_for_what_is_done_and_hears_of_what_ended_the_run():
    work = _Queues()
    done = _Done("ana", EdlError("nothing"))
    work.done.put(done)
    work.done.put(ValueError("the disk"))

    assert done is _next_done(work, wait_s=0.01)
    with pytest.raises(ValueError, match="the disk"):
        _next_done(work, wait_s=0.01)
    assert _next_done(work, wait_s=0.01) is None


def test_nobody_is_told_how_long_it_takes_while_only_slow_ones_are_left():
    rows = {name: StudentRow(name, "graded", 1.0, 1.0) for name in ("ana", "ben", "cleo")}
    slow = (("dora", "cell 3", 30.0),)

    assert _progress(rows, 4, "cleo", 6.0, slow=slow).left_s is None
    assert 4.0 == _progress(rows, 5, "cleo", 6.0, slow=slow).left_s
