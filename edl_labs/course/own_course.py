"""An instructor's own course: nbgrader's configuration for it, and a new folder with everything that it needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.course.course_folder import Course
from edl_labs.errors import UsageError
from edl_labs.values import Value

Progress = Callable[[int, int, str], None]
_FIRST_LAB = "lab01_medians"
# The steps of nbgrader's GenerateAssignment, in its order (0.9.6).
GENERATE_STEPS = (
    *("IncludeHeaderFooter", "InstantiateTests", "LockCells", "ClearSolutions", "ClearOutput", "CheckCellMetadata"),
    *("ComputeChecksums", "SaveCells", "ClearHiddenTests", "ClearMarkScheme", "ComputeChecksums", "CheckCellMetadata"),
)
_CONFIG = '''\
"""An nbgrader course: source = build/source, release = labs, class = course/. Settings that you add below win."""

from edl_labs.course.own_course import configure

c = get_config()  # noqa: F821  (nbgrader puts it there)
configure(c, __file__, course_id="@id@")
'''
_TOML = """\
# Due dates, late policy, groups, limits: docs/grading.md of edl_labs lists every key; a misspelt key is an error.
[course]
name = "@name@"
timezone = "UTC"
# roster = "roster.csv"
# groups = "groups.csv"

# [late]
# grace_minutes = 10
# per_day = 0.1

"""
_DATES = """
# [[assignment]]
# name = "@lab@"
# due = 2026-11-01T23:59:00
"""
_IGNORE = "/build/\n/course/\n__pycache__/\n.ipynb_checkpoints/\n.edl_labs/\n"
_README = """\
# @name@

A course with labs in the format of edl_labs. Every command works anywhere in this folder.

| you want to | command |
|---|---|
| add a lab, or an exercise to one | `edl-labs new lab02_name`, `edl-labs new @lab@ EXERCISE` |
| edit a lab as a notebook | `edl-labs edit @lab@` |
| build the files for students, in `labs/` | `edl-labs build` |
| test every exercise, or only one | `edl-labs test`, `edl-labs test @lab@ EXERCISE` |
| run the solutions as notebooks | `edl-labs run --smoke` |
| add labs of edl_labs | `edl-labs course . --labs LAB,LAB` |
| upgrade these to the installed release | `edl-labs course . --upgrade` |
| grade submissions, return feedback and marks | `edl-labs collect`, `grade`, `feedback`, `export`, `report` |

`solutions/` and `edl_labs/exercises/` are for you only. Give students `labs/`, or what `edl-labs publish DIR` writes.
"""


@dataclass(frozen=True, repr=False)
class CourseReport(Value):
    """The new course: its folder, what was written, and its first lab."""

    root: str
    written: tuple[str, ...]
    lab: str


def make_course(
    folder: Path,
    *,
    name: str = "",
    labs: Sequence[str] = (),
    progress: Progress | None = None,
) -> CourseReport:
    """Make a course in `folder`: nbgrader's configuration, course.toml, and a lab that passes `test` at once.

    With `labs`, it has these labs of edl_labs instead of that one. UsageError where the folder holds anything but
    hidden files: nothing is written over.
    """
    root = folder.resolve()
    if root.exists() and (not root.is_dir() or any(not path.name.startswith(".") for path in root.iterdir())):
        why = "a new course needs a folder of its own, and existing files are never overwritten"
        then = "name a folder that does not exist yet; to add labs to an existing course, use --labs"
        raise UsageError(f"{folder.name} is not empty", why=why, next=then)
    called = name or root.name.replace("_", " ").replace("-", " ").strip().capitalize() or "Labs"
    texts = {
        "nbgrader_config.py": _CONFIG,
        "course.toml": _TOML + "".join(_DATES.replace("@lab@", lab) for lab in labs or (_FIRST_LAB,)),
        ".gitignore": _IGNORE,
        "README.md": _README,
    }
    identity = "".join(letter if letter.isalnum() else "_" for letter in root.name) or "course"
    first = labs[0] if labs else _FIRST_LAB
    (root / "solutions").mkdir(parents=True, exist_ok=True)
    for path, text in texts.items():
        filled = text.replace("@name@", called.replace('"', "'")).replace("@lab@", first).replace("@id@", identity)
        (root / path).write_text(filled, encoding="utf-8")
    written = _take(Course(root), labs, progress) if labs else _new(Course(root), progress)
    return CourseReport(root.as_posix(), (*texts, *written), first)


def _new(course: Course, progress: Progress | None) -> tuple[str, ...]:
    from edl_labs.course.lab.scaffold import new  # the build chain, which nbgrader's configuration does not need

    return new(course, _FIRST_LAB, progress=progress).written


def _take(course: Course, labs: Sequence[str], progress: Progress | None) -> tuple[str, ...]:
    from edl_labs.course.lab.build import build
    from edl_labs.course.taken_labs import STAMP, take_labs

    take_labs(course, labs)
    build(course, progress=progress)
    return (STAMP, *(f"solutions/{lab}/" for lab in labs))


def configure(c: Any, config_file: str, *, course_id: str = "edl") -> None:
    """Set nbgrader up for the course whose nbgrader_config.py is `config_file`; `c` is what `get_config()` gave."""
    root = Path(config_file).resolve().parent
    (root / "course").mkdir(exist_ok=True)  # sqlite makes files, not folders
    c.CourseDirectory.root = str(root)
    c.CourseDirectory.course_id = os.environ.get("EDL_LABS_COURSE", course_id)
    c.CourseDirectory.source_directory = "build/source"
    c.CourseDirectory.release_directory = "labs"
    for step in ("submitted", "autograded", "feedback", "solution"):
        setattr(c.CourseDirectory, f"{step}_directory", f"course/{step}")
    c.CourseDirectory.db_url = os.environ.get("EDL_LABS_DB", f"sqlite:///{root / 'course' / 'gradebook.db'}")
    # A notebook, what it imports, and what nbgrader's exchange needs; nothing else.
    c.CourseDirectory.include = ["*.ipynb", "*.py", "timestamp.txt", "submission_secret.txt"]

    # Students' code runs in a sandbox and is judged from outside it: no output of a notebook is ever read as a score.
    ours, theirs = "edl_labs.course.grade.preprocessors", "nbgrader.preprocessors"
    c.Autograde.pre_convert_hook = f"{ours}.set_files_aside"
    c.Autograde.sanitize_preprocessors = [f"{ours}.Mend", f"{theirs}.CheckCellMetadata"]
    c.Autograde.autograde_preprocessors = [
        *(f"{ours}.JudgeOutside", f"{theirs}.IgnorePattern", f"{ours}.SaveMarks"),
        *(f"{theirs}.AssignLatePenalties", f"{theirs}.CheckCellMetadata"),
    ]

    # A student's own name, and the folder's, are text in formgrader's page, whatever is in them; model answer and
    # rubric stand there alone.
    plugins = "edl_labs.course.marks.nbgrader_plugins"
    c.HTMLExporter.preprocessors = [f"{plugins}.{name}" for name in ("EscapedNames", "NotesForGraders", "TableBorders")]

    # Comments of feedback.toml are spelt out, and every page can be released, whichever way the work came in.
    head = "nbconvert.preprocessors.CSSHTMLHeaderPreprocessor"
    c.GenerateFeedback.preprocessors = [f"{theirs}.GetGrades", head, f"{plugins}.ReadyForRelease"]

    # nbgrader's own steps, then ours: what its command writes is what `edl-labs build` writes, byte for byte.
    c.GenerateAssignment.preprocessors = [
        *(f"{theirs}.{step}" for step in GENERATE_STEPS),
        f"{plugins}.ReleaseStamp",
    ]

    # Due dates, extensions and what lateness costs are in course.toml; without that file nbgrader's own rules hold.
    c.AssignLatePenalties.plugin_class = f"{plugins}.CourseLatePolicy"
