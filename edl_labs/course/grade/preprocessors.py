"""nbgrader's own `autograde` and formgrader's button, with an outside judge; nbgrader_config.py configures them.

`Mend` takes the place of nbgrader's sanitisers, `JudgeOutside` of `Execute`, `SaveMarks` of `SaveAutoGrades`. The
student's code runs in a sandbox, and no output of it is ever read as a score.
"""

from __future__ import annotations

import atexit
import shutil
import threading
from pathlib import Path
from typing import Any

import nbformat
from nbformat.notebooknode import NotebookNode
from nbgrader.preprocessors import (
    ClearOutput,
    DeduplicateIds,
    NbGraderPreprocessor,
    OverwriteCells,
    OverwriteKernelspec,
    SaveAutoGrades,
)

from edl_labs.checks.lab_exercises import module_path
from edl_labs.course.course_folder import Course, use_own_exercises
from edl_labs.course.grade.files import OF_EXCHANGE
from edl_labs.course.grade.gradebook import Writer
from edl_labs.course.grade.graded_notebook import graded_notebook
from edl_labs.course.grade.grader import Grader
from edl_labs.course.grade.nbgrader_assignments import (
    files_beside,
    is_nbgraders,
    remove_scripts,
    run_in_sandbox,
)
from edl_labs.course.grade.other_files import withheld_folder
from edl_labs.course.grade.plan import make_plan
from edl_labs.course.grade.result import Result
from edl_labs.course.grade.run_record import ProbedRun
from edl_labs.course.grade.submitted_folder import module_paths, read_modules, read_submission
from edl_labs.errors import EdlError

IDLE_S = 300.0  # the next click in formgrader comes sooner; a sandbox held for longer keeps 600 MB for nobody
_GRADED = "edl_labs_graded"


class Mend(NbGraderPreprocessor):
    """The submission with the instructor's locked cells and metadata, and nothing that could end the class."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """The repaired notebook, not yet run; without our exercises, what nbgrader's own steps make."""
        course, name, student = _where(self, resources)
        if is_nbgraders(course, name):
            for step in (ClearOutput, DeduplicateIds, OverwriteKernelspec, OverwriteCells):
                nb, resources = step(parent=self.parent).preprocess(nb, resources)
            return nb, resources
        assignment = course.assignment(name)
        submission = read_submission(
            course.path("submitted", student=student, assignment=name), name, limits=course.limits
        )
        plan = make_plan(assignment, submission)
        for note in plan.notes:
            self.log.warning("%s: %s", student, note.text)
        return nbformat.from_dict(graded_notebook(assignment, plan, ProbedRun(), limits=course.limits)), resources


class JudgeOutside(NbGraderPreprocessor):
    """The notebook as it came out of the sandbox, with the judge's verdicts as the outputs of its check cells."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Grade the student, or take the marks of an equal submission that was graded before.

        An assignment without our exercises is run in the sandbox, and has no judge.
        """
        course, name, student = _where(self, resources)
        if is_nbgraders(course, name):
            own = read_modules(course.path("submitted", student=student, assignment=name), limits=course.limits)
            run_in_sandbox(nb, files={**own, **files_beside(course, name)}, limits=course.limits)
            return nb, resources
        with _HELD.grader(course, name) as grader:
            result, _ = grader.grade(student)
            notebook = nbformat.read(grader.results.store.notebook_path(result.key), as_version=4)
        resources[_GRADED] = result
        for event in result.events:
            self.log.warning("%s: %s: %s %s", student, event.where, event.kind, event.why)
        return notebook, resources


class SaveMarks(NbGraderPreprocessor):
    """The judge's marks in the gradebook. Marks and comments given by hand stay while the prose is unchanged."""

    def preprocess(self, nb: NotebookNode, resources: dict[str, Any]) -> tuple[NotebookNode, dict[str, Any]]:
        """Write what `JudgeOutside` found; of an assignment without our exercises, what nbgrader reads in outputs."""
        course, name, student = _where(self, resources)
        if is_nbgraders(course, name):
            nb, resources = SaveAutoGrades(parent=self.parent).preprocess(nb, resources)
            remove_scripts(nb, limits=course.limits)
            return nb, resources
        result: Result = resources[_GRADED]
        with Writer(course, course.assignment(name)) as writer:
            writer.merge(student, result, timestamp=None)
        return nb, resources


def set_files_aside(*, notebooks: list[str], **_: Any) -> None:
    """A hook for nbgrader: what was sent next to a notebook, modules apart, is moved to `withheld/`.

    nbgrader would copy it along, links followed, into what is graded, shown and given back; and the instructor's own
    files could be what a link points to. A lab has one notebook: others are moved too, and nbgrader is not given them.
    """
    for folder in {Path(notebook).parent for notebook in notebooks}:
        more = [notebook for notebook in notebooks if Path(notebook).parent == folder and _is_one_more(Path(notebook))]
        notebooks[:] = [notebook for notebook in notebooks if notebook not in more]
        kept = {Path(notebook).name for notebook in notebooks} | set(OF_EXCHANGE)
        kept |= {path.name for path in module_paths(folder)}
        for entry in list(folder.iterdir()):
            if entry.name in kept and entry.is_file() and not entry.is_symlink():
                continue
            away = withheld_folder(folder)
            away.mkdir(parents=True, exist_ok=True)
            _move(entry, away)


def _is_one_more(notebook: Path) -> bool:
    """Whether a lab's own notebook stands beside this one; an assignment of nbgrader's form may have several."""
    lab = notebook.parent.name
    use_own_exercises(notebook.absolute().parents[4])
    return notebook.stem != lab and notebook.with_stem(lab).is_file() and module_path(lab).is_file()


def _move(entry: Path, away: Path) -> None:
    target, count = away / entry.name, 0
    while target.exists() or target.is_symlink():
        count += 1
        target = away / f"{entry.name}.{count}"
    shutil.move(entry, target)


def _where(step: NbGraderPreprocessor, resources: dict[str, Any]) -> tuple[Course, str, str]:
    """The course that the running converter works on, the assignment, the student."""
    converter = step.parent.parent
    about = resources["nbgrader"]
    course = Course.around(converter.coursedir, step.config)
    if about["notebook"] != about["assignment"] and not is_nbgraders(course, about["assignment"]):
        raise EdlError(
            f"{about['notebook']} is not a notebook of {about['assignment']}",
            why="a lab has one notebook, with the same name as the lab",
            next=f"rename it to {about['assignment']}.ipynb",
        )
    return course, about["assignment"], about["student"]


class _Held:
    """One grader kept between students, so that its libraries are imported once; given up when idle for long."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._grader: Grader | None = None
        self._timer: threading.Timer | None = None

    def grader(self, course: Course, name: str) -> _Held:
        """The grader of an assignment; use it in a `with`."""
        self._lock.acquire()
        try:
            assignment = course.assignment(name)
            held = self._grader
            known = (course.root, assignment.digest, course.limits)
            if held is None or (held.course.root, held.assignment.digest, held.results.limits) != known:
                self.close()
                self._grader = Grader(course, assignment)
        except BaseException:
            self._lock.release()
            raise
        return self

    def __enter__(self) -> Grader:
        if self._timer is not None:
            self._timer.cancel()
        assert self._grader is not None
        return self._grader

    def __exit__(self, *_: object) -> None:
        self._timer = threading.Timer(IDLE_S, self.close)
        self._timer.daemon = True
        self._timer.start()
        self._lock.release()

    def close(self) -> None:
        """End the grader's processes."""
        with self._lock:
            if self._grader is not None:
                self._grader.close()
                self._grader = None


_HELD = _Held()
atexit.register(_HELD.close)
