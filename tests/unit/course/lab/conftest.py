from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab import library_calls
from edl_labs.course.lab.build import build
from tests.unit.course.lab import kit

TRIED = ("math.exp2", "math.frexp", "math.sqrt", "builtins.abs", "os._exit", "statistics.median")


@pytest.fixture(autouse=True)
def few_library_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A proof tries a handful of library functions, not all."""
    tried = {path: inspect.signature(lambda x: x) for path in TRIED}
    monkeypatch.setattr(library_calls, "library_functions", lambda: tried)
    monkeypatch.setattr(library_calls, "private_functions", dict)


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """The small course, not built."""
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    return kit.write_course(tmp_path / "course")


@pytest.fixture
def built(course: Course) -> Course:
    """The small course, built."""
    build(course)
    return course
