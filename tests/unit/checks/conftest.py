from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.checks import course


@pytest.fixture
def numbers(exercises) -> Path:
    """The folder of a built course with one lab of two exercises and an explanation."""
    folder = exercises(course.LAB, course.EXERCISES)
    course.write_facts(folder)
    return folder
