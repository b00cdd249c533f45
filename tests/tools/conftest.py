from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from tests.unit.course.lab import kit


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """The small course, not built."""
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    return kit.write_course(tmp_path / "course")
