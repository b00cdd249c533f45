"""What an attack is tried on."""

from __future__ import annotations

from dataclasses import dataclass

from edl_labs.course.assignment import Assignment
from edl_labs.course.grade.mark import Examiner
from tests.course.course_fixture import Course


@dataclass
class Bench:
    """A course with a gradebook, its assignment, and an examiner that grades in sandboxes."""

    course: Course
    assignment: Assignment
    examiner: Examiner
