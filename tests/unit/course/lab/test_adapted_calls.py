"""Library functions behind adapters: what is tried, what is read, and what is found where it answers."""

from __future__ import annotations

import inspect
import os
import select
from dataclasses import dataclass

import pytest

from edl_labs.checks import Case
from edl_labs.checks.worker import Worker
from edl_labs.course.course_folder import Course
from edl_labs.course.lab import adapted_calls
from edl_labs.course.lab.adapted_calls import adapters
from edl_labs.course.lab.arranged_arguments import arranged, readings, same
from edl_labs.errors import EdlError
from edl_labs.roofline.work import Work


def arrangements(function, given, **hints):
    return list(arranged(inspect.signature(function), hints, given))


def test_arguments_of_the_same_name_are_matched_from_the_entries_of_dicts_too():
    found = arrangements(lambda ridge, itemsize: 0, {"machine": {"ridge": 2.0}, "itemsize": 4})

    assert "ridge=machine['ridge'], itemsize=itemsize" == found[0]


def test_what_has_no_name_of_its_own_is_tried_in_every_order():
    found = arrangements(lambda x, y: 0, {"a": 1, "b": 2})

    assert {"a, b", "b, a", "x=a, y=b", "x=b, y=a", "a", "b"} - {"a", "b"} <= set(found)


def test_types_that_an_annotation_excludes_are_not_tried():
    found = arrangements(lambda x: 0, {"a": 1, "name": "fp16"}, x=str)

    assert {"x=name", "name"} == set(found)


@dataclass(frozen=True)
class Nodes:
    nodes: int
    node_flop_per_s: float
    link_byte_per_s: float
    link_latency_s: float = 0.0


def test_a_dataclass_that_is_asked_for_is_made_of_what_there_is():
    given = {"batch": 64, "nodes": 2, "node_flop_per_s": 6e12, "link_byte_per_s": 6e9}

    found = arrangements(lambda cluster, minibatch: 0, given, cluster=Nodes)

    made = "_made['Nodes'](nodes=nodes, node_flop_per_s=node_flop_per_s, link_byte_per_s=link_byte_per_s)"
    assert f"cluster={made}, minibatch=batch" in found


@pytest.mark.parametrize(
    ("found", "want", "expected"),
    [
        (Work(2e9, 0, 1e8), 20.0, "found.intensity_flop_per_byte"),
        (Work(2e9, 0, 1e8), [2e9, 1e8], "[found.contraction_flops, found.moved_bytes]"),
        ({"a": 3, "b": 4.5}, 4.5, "found['b']"),
        ((7, 8.5), 8.5, "found[1]"),
        (range(3), [0, 1, 2], "found"),
    ],
)
def test_an_answer_is_read_from_a_result_in_one_step(found, want, expected):
    assert expected in list(readings(found, want))


@pytest.mark.parametrize(
    ("got", "want"), [("1", 1), (None, 0), ([1, 2], [1, 3]), ({"a": 1}, [1]), (True, 1), (2, 1), (object(), 1.0)]
)
def test_other_answers_are_not_the_same(got, want):
    assert not same(got, want)


def found_for(course: Course, solution: str, paths: list[str]) -> list[list[str]]:
    code = f"import math\n\ndef doubled_time(duration_s):\n    return {solution}\n"
    asked, cases = (
        {"doubled_time": ["doubled_time"]},
        {"doubled_time": [Case(given={"x": x}) for x in (1.25, 1.5, 2.75)]},
    )

    found, first = adapters([("solve", code)], asked, cases, paths, exercises_folder=course.exercises)

    assert {"doubled_time": 0} == first
    return found["doubled_time"]


def test_one_item_of_a_librarys_answer_is_found_and_defines_the_function_that_is_asked_for(course: Course) -> None:
    [[path, code]] = found_for(course, "duration_s - math.floor(duration_s)", ["math.sqrt", "math.modf", "math.fsum"])
    names: dict = {}
    exec(code, names)

    assert ("math.modf", 0.5) == (path, names["doubled_time"](3.5))
    assert 3 >= len([line for line in code.splitlines() if not line.startswith("def")])


def test_what_agrees_once_by_chance_is_not_found(course: Course) -> None:
    assert [] == found_for(course, "math.floor(duration_s) if duration_s > 2 else 1.25", ["math.floor", "math.fabs"])


def test_a_function_that_ends_its_process_costs_the_others_nothing(course: Course) -> None:
    found = found_for(course, "math.sqrt(duration_s)", ["os.abort", "os._exit", "math.sqrt"])

    assert ["math.sqrt"] == [path for path, _ in found]


def has_ended(pid: int) -> bool:
    """Whether a process ends within seconds: one that was killed may need its turn on a busy machine."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    with open(handle, closefd=True):
        return bool(select.select([handle], [], [], 10.0)[0])


def test_a_process_that_a_function_leaves_behind_is_ended_and_nobody_waits_for_it(
    course: Course, tmp_path, monkeypatch
):
    left = tmp_path / "left"
    code = f"""
import os, time

def leaves(duration_s):
    child = os.fork()
    if child == 0:
        time.sleep(600)
    open({str(left)!r}, "w").write(str(child))
"""
    (tmp_path / "leaving.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))

    found = found_for(course, "math.sqrt(duration_s)", ["leaving.leaves", "os.abort", "math.sqrt"])

    assert ["math.sqrt"] == [path for path, _ in found]
    assert has_ended(int(left.read_text()))


def test_what_was_left_when_the_time_was_up_is_no_proof(course: Course, monkeypatch):
    monkeypatch.setattr(adapted_calls, "_search", lambda *_: ({}, 3))

    with pytest.raises(EdlError, match="with adapters, so nothing is proved") as caught:
        adapted_calls.adapters([], {}, {}, ["math.sqrt"] * 7)

    assert "3 of 7 had not been tried" in caught.value.why


def test_an_origin_that_ends_before_it_forks_is_told(monkeypatch):
    def fork(self: Worker) -> Worker:
        self.close()
        return real(self)

    real = Worker.fork
    monkeypatch.setattr(Worker, "fork", fork)

    with pytest.raises(EdlError, match="nothing is proved") as caught:
        adapted_calls.adapters([], {}, {}, ["math.sqrt"])

    assert "the process that tried them had already ended" == caught.value.why


def test_a_search_without_time_leaves_everything(monkeypatch):
    monkeypatch.setattr(adapted_calls, "_LIMIT_S", -1.0)

    assert ({"f": []}, 2) == adapted_calls._search(None, ["math.sqrt", "math.floor"], ["f"])


def test_a_process_that_does_not_end_is_told(monkeypatch):
    monkeypatch.setattr(adapted_calls, "_LIMIT_S", 0.1)

    with pytest.raises(EdlError, match="nothing is proved"):
        adapted_calls.adapters([("endless", "while True: pass")], {}, {}, [])


def test_a_solution_that_fails_is_told():
    with pytest.raises(EdlError, match="could not be tried") as caught:
        adapted_calls.adapters([("broken", "1 / 0")], {}, {}, [])

    assert "ZeroDivisionError: division by zero" == caught.value.why
