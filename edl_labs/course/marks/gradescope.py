"""A zip that Gradescope's autograder runs: the course's lab, the instructors' wheel and two scripts.

Its form is that of Gradescope's autograder specifications (gradescope-autograders.readthedocs.io): `setup.sh` installs
once, `run_autograder` grades one submission by `gradescope_run`, with the judge outside the student's kernel.
"""

from __future__ import annotations

import json
import tempfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from edl_labs.checks.lab_exercises import exercises_folder
from edl_labs.course.course_file import FILE
from edl_labs.course.course_folder import Course
from edl_labs.course.grade.secret_cases import class_draws
from edl_labs.course.lab.own_wheel import is_own_course
from edl_labs.course.lab.publish import build_wheel
from edl_labs.course.own_files import own_files
from edl_labs.errors import UsageError
from edl_labs.values import Value

SETTINGS = "settings.json"
_TIME = (1980, 1, 1, 0, 0, 0)  # the earliest that a zip can say: the same course gives the same bytes
_PROGRAM, _TEXT = 0o755, 0o644  # the usual modes: its owner may change it, everybody may run or read it
_SETUP = """\
#!/usr/bin/env bash
# Gradescope runs this once, as root, when it builds the image.
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive
apt-get update
apt-get install -y --no-install-recommends bubblewrap libseccomp2
python=
for version in 3.13 3.12 3.11; do
  if apt-get install -y --no-install-recommends "python$version" "python$version-venv"; then
    python="python$version"
    break
  fi
done
[ -n "$python" ] || { echo "edl_labs needs python 3.11 or newer: choose a newer Ubuntu as the base image"; exit 1; }
"$python" -m venv /autograder/venv
/autograder/venv/bin/pip install --no-cache-dir "/autograder/source/@wheel@[instructor,lab]"
"""
_RUN = """\
#!/usr/bin/env bash
# Gradescope runs this for each submission. Instructors see its output; students see results.json.
set -euo pipefail
root=${AUTOGRADER_ROOT:-/autograder}
exec "${AUTOGRADER_PYTHON:-$root/venv/bin/python}" -m edl_labs.course.marks.gradescope_run "$root"
"""


@dataclass(frozen=True, repr=False)
class GradescopeZip(Value):
    """The zip, what it holds, and the points that its autograder gives; `by_hand` are those of prose."""

    archive: str
    files: tuple[str, ...]
    points: float
    by_hand: float = 0.0


def gradescope_zip(
    assignment: str, out: Path, *, course: Course | None = None, wheel: Path | None = None, unsafe: bool = False
) -> GradescopeZip:
    """Write the zip `out` for one lab, with the class's own draws of secret cases.

    `wheel` is the instructors' wheel of edl_labs; without it, it is built, which needs a checkout. `unsafe` lets the
    autograder grade without a sandbox where none works; it refuses otherwise. UsageError for a wheel that cannot grade.
    """
    course = course or Course.find_class()
    known = course.assignment(assignment)
    if wheel is not None and "+judge" not in wheel.name:
        why = f"{wheel.name} does not contain the judge's code"
        raise UsageError(
            "this wheel cannot grade", why=why, next="build one with edl-labs wheel --judge in a checkout of edl-labs"
        )
    if wheel is None and is_own_course(course.root):
        why = "the autograder needs edl_labs with the judge's code, which your own course does not contain"
        then = f"run edl-labs wheel --judge in a checkout, then edl-labs gradescope {assignment} --wheel FILE here"
        raise UsageError("the wheel for grading is missing", why=why, next=then)
    draws = class_draws(course.grading(assignment), count=course.limits.draws)
    with tempfile.TemporaryDirectory(prefix="edl-gradescope-") as folder:
        packed = wheel or build_wheel(Course(course.root), Path(folder), judge=True)
        settings = {"assignment": assignment, "seed": draws.seed, "draws": draws.count, "unsafe": unsafe}
        texts = {
            "setup.sh": _SETUP.replace("@wheel@", packed.name),
            "run_autograder": _RUN,
            SETTINGS: json.dumps(settings, indent=1),
        }
        files = {name: text.encode() for name, text in texts.items()} | {packed.name: packed.read_bytes()}
        files[f"course/{FILE}"] = _how_to_grade(course).encode()
        files |= {f"course/{name}": path.read_bytes() for name, path in _course_files(course, assignment)}
    _write(out, files)
    by_hand = sum(cell.points for cell in known.cells if cell.role == "answer")
    return GradescopeZip(out.as_posix(), tuple(files), sum(known.points.values()) - by_hand, by_hand)


def _how_to_grade(course: Course) -> str:
    """What course.toml says of grading; class, groups and dates are Gradescope's own there."""
    said = course.file
    limits = (f"{name} = {json.dumps(value)}" for name, value in said.limits.items())
    lines = ("[limits]", *limits, "[grading]", f"all_cells = {json.dumps(said.grading.all_cells)}")
    return "".join(f"{line}\n" for line in lines)


def _course_files(course: Course, assignment: str) -> Iterator[tuple[str, Path]]:
    """What grading one lab needs of a course, where nbgrader looks for it there; no other lab's."""
    yield "nbgrader_config.py", course.root / "nbgrader_config.py"
    for step in ("source", "release"):
        folder = course.path(step, student=".", assignment=assignment)
        if not folder.resolve().is_relative_to(course.root.resolve()):
            why = f"its {step} folder is outside the course's folder"
            raise UsageError(
                "this course cannot be packed", why=why, next="move build/source and labs into the course's folder"
            )
        for path in own_files(folder):
            yield path.resolve().relative_to(course.root.resolve()).as_posix(), path
    own = exercises_folder()
    if own != Path(__file__).resolve().parents[2] / "exercises":
        for path in sorted(own.rglob("*")):
            if path.is_file() and "__pycache__" not in path.parts:
                yield f"edl_labs/exercises/{path.relative_to(own).as_posix()}", path


def _write(out: Path, files: dict[str, bytes]) -> None:
    out.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, _TIME)
            entry.external_attr = (_PROGRAM if name in ("setup.sh", "run_autograder") else _TEXT) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, content)
