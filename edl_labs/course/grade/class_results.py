"""The results of one assignment, by submission: each name is computed from everything that the result depends on."""

from __future__ import annotations

from edl_labs.course.assignment import Assignment
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.result import Result, ResultStore, result_key
from edl_labs.course.grade.secret_cases import class_draws
from edl_labs.course.grade.submission import Submission
from edl_labs.course.groups import read_groups
from edl_labs.course.sandbox import Level, Limits


class ClassResults:
    """Where an assignment's results are, and what they are called. It reads, and grades nothing.

    `seed` has one draw for everybody, or `draws` of them; without it the class's own count. `all_cells` means runs of
    demonstrations too; without it, as course.toml says. `on_gpu`: what was graded with a GPU.
    """

    def __init__(
        self,
        course: Course,
        assignment: Assignment,
        *,
        seed: int | None = None,
        draws: int | None = None,
        level: Level = Level.NAMESPACES,
        limits: Limits | None = None,
        on_gpu: bool = False,
        all_cells: bool | None = None,
    ) -> None:
        self.course, self.assignment, self.level, self.on_gpu = course, assignment, level, on_gpu
        self.limits = limits or course.limits
        self.all_cells = course.all_cells if all_cells is None else all_cells
        self.folder = course.grading(assignment.name)
        self.groups = read_groups(course.root, assignment.name)
        count = draws or (self.limits.draws if seed is None else 1)
        self.draws = class_draws(self.folder, seed=seed, count=count)
        self.store = ResultStore(self.folder / "results")

    def draw_of(self, submission: Submission, student: str) -> int:
        """The draw that counts; a group's members have one, so that equal work gets equal marks."""
        return self.draws.number(self.groups.named(student), submission.digest)

    def stored(self, submission: Submission, student: str) -> Result | None:
        """The result of a submission, if it was graded as it would be now. One of all cells serves for both."""
        ways = (True,) if self.all_cells else (False, True)
        keys = (self.key(submission, student, all_cells=way) for way in ways)
        return next(filter(None, map(self.store.load, keys)), None)

    def graded(self, submission: Submission, student: str) -> Result | None:
        """The result of a submission on whatever machine it was graded, the best fenced first.

        For who reads results: this machine may fence in students' code better than that one could, or not at all.
        """
        keys = (
            self.key(submission, student, all_cells=all_cells, level=level, on_gpu=on_gpu)
            for level in Level
            for on_gpu in (self.on_gpu, not self.on_gpu)
            for all_cells in (True, False)
        )
        return next(filter(None, map(self.store.load, keys)), None)

    def key(
        self,
        submission: Submission,
        student: str,
        *,
        all_cells: bool | None = None,
        level: Level | None = None,
        on_gpu: bool | None = None,
    ) -> str:
        """The name of a submission's result; without `all_cells` it has another one."""
        asked = self.all_cells if all_cells is None else all_cells
        on_gpu = self.on_gpu if on_gpu is None else on_gpu
        limits = self.limits.key() + ("/gpu" if on_gpu else "") + ("" if asked else "/needed")
        seed, fence = self.draws.seed_of(self.draw_of(submission, student)), level or self.level
        return result_key(submission.digest, self.assignment.digest, seed=seed, level=fence.value, limits=limits)
