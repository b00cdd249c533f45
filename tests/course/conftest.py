"""One released course for the whole session, whichever worker runs a test; copy it to change it."""

from __future__ import annotations

import pytest

from tests.course.course_fixture import Course, make_course
from tests.course.once import once


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A released course that no test changes."""
    return Course(once(tmp_path_factory, "released", make_course))
