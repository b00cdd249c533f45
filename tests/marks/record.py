"""Record the marks of a lab: python -m tests.marks.record LAB [--only PATTERN] [--draws N] [--jobs N] [--compare]."""

from __future__ import annotations

import argparse
import fnmatch
import sys
import tempfile
from pathlib import Path

from edl_labs.checks.lab_exercises import lab_names
from edl_labs.course.grade.classrun import ClassProgress
from tests.marks.grading import graded
from tests.marks.oracle import as_recorded, differences, draws_of, path_of, read_marks, write_marks
from tests.marks.submissions import DRAWS, full_marks, lab_of, make_oracle_course, submissions


def main() -> int:
    """Record, or with --compare print what differs from the record; 1 where something does."""
    asked = _arguments()
    lab = lab_of(asked.lab)
    every = list(submissions(lab))
    recorded = read_marks(lab.name)
    chosen = [(one, min(one.draws, asked.draws)) for one in every if fnmatch.fnmatchcase(one.name, asked.only)]
    if asked.compare:
        chosen = [(one, min(draws, draws_of(recorded[one.name]))) for one, draws in chosen if one.name in recorded]
    with tempfile.TemporaryDirectory(prefix="edl-marks-") as folder:
        course = make_oracle_course(Path(folder), lab.name)
        found = as_recorded(lab, graded(course, chosen, jobs=asked.jobs, progress=_show))
    if asked.compare:
        known = {name: recorded[name] for name in found if name in recorded}
        lines = differences(lab.name, known, found, full=full_marks(lab))
        print("\n".join(lines) or f"{lab.name}: as recorded")
        return int(bool(lines))
    write_marks(lab.name, {**recorded, **found}, [one.name for one in every])
    print(f"{path_of(lab.name).name}: {sum(draws for _, draws in chosen)} submissions")
    return 0


def _show(progress: ClassProgress) -> None:
    slow = "".join(f"; {student}: {where}, {passed_s:.0f} s" for student, where, passed_s in progress.slow)
    print(f"{progress.done}/{progress.total} {progress.student} {progress.elapsed_s:.0f} s{slow}", file=sys.stderr)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.marks.record", description=__doc__)
    parser.add_argument("lab", choices=lab_names())
    parser.add_argument("--only", default="*", help="a pattern of submissions")
    parser.add_argument("--draws", type=int, default=DRAWS, help="of each submission, at most")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--compare", action="store_true", help="record nothing; print what differs")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
