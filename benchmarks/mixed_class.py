"""A class with right, wrong, untouched and endless answers, and the memory of each process that grades it."""

from __future__ import annotations

import os
import random
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path

import psutil

from edl_labs.course.course_folder import Course as Repository
from edl_labs.course.lab.parsed_lab import Lab
from edl_labs.course.lab.read import read_lab
from edl_labs.course.lab.rules import defined_names
from tests.course.course_fixture import Course, cell_of, solved

# Assumed, not counted in a real class: of each exercise, known mistakes and untouched stubs; one endless loop in 30.
WRONG, UNTOUCHED, ENDLESS_OF = 0.17, 0.08, 30
_SAMPLED_S = 0.2
_ROLES = {"judge_process": "judge", "reference_process": "reference", "bounded_call": "reader"}


def submit_mixed(course: Course, *, students: int, root: Path) -> None:
    """Hand in `students` mixed notebooks, the same ones each time; `root` is the checkout that has the lab."""
    lab, drawn = read_lab(Repository(root), course.lab), random.Random(1)
    right, released = solved(course), course.released()
    for number in range(students):
        notebook = deepcopy(right)
        for name in [one.name for one in lab.exercises if one.kind != "explain"]:
            cell = cell_of(notebook, name)
            cell["source"] = _answer(
                lab, name, cell["source"], cell_of(released, name)["source"], drawn.random(), drawn
            )
        if number % ENDLESS_OF == ENDLESS_OF - 1:
            cell = cell_of(notebook, next(one.name for one in lab.exercises if one.kind != "explain"))
            cell["source"] += _endless(lab, cell["metadata"]["nbgrader"]["grade_id"])
        course.submit(f"s{number:03}", notebook)


def _answer(lab: Lab, name: str, right: str, stub: str, share: float, drawn: random.Random) -> str:
    if share < UNTOUCHED:
        return stub
    if share < UNTOUCHED + WRONG:
        return f"{right}\n\n{drawn.choice([one.code for one in lab.mistakes if one.exercise == name])}"
    return right


def _endless(lab: Lab, name: str) -> str:
    first = defined_names(lab.cell("solve", name))[0]
    return f"\n\ndef {first}(*arguments, **keywords):\n    while True:\n        pass\n"


@contextmanager
def watched_memory() -> Iterator[dict[str, int]]:
    """While active, samples the processes below this one: peak bytes by role. A process shorter than that is missed."""
    peaks: dict[str, int] = defaultdict(int)
    done = threading.Event()
    sampler = threading.Thread(target=_sample, args=(peaks, done))
    sampler.start()
    try:
        yield peaks
    finally:
        done.set()
        sampler.join()


def _sample(peaks: dict[str, int], done: threading.Event) -> None:
    while not done.wait(_SAMPLED_S):
        for process in psutil.Process().children(recursive=True):
            try:
                role = _role(process)
                peaks[role] = max(peaks[role], process.memory_info().rss)
            except psutil.Error:
                continue


def _role(process: psutil.Process) -> str:
    words = " ".join(process.cmdline())
    parent = process.ppid()
    if "zygote.main" in words:
        return "kernels' parent" if psutil.Process(parent).ppid() == os.getpid() else "kernel"
    named = next((role for part, role in _ROLES.items() if part in words), "other")
    return "writer" if parent == os.getpid() else named
