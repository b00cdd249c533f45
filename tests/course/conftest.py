"""One released course for the whole session, and a copy of it for tests that change it."""

from __future__ import annotations

import pytest
from course_fixture import Course, make_course


@pytest.fixture(scope="session")
def released(tmp_path_factory: pytest.TempPathFactory) -> Course:
    """A released course that no test changes."""
    return make_course(tmp_path_factory.mktemp("released") / "course")
