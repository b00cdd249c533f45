"""A run has beside its notebook what the lab's author handed in with the solution."""

from __future__ import annotations

from pathlib import Path

import nbformat

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_lab
from edl_labs.course.run.process import Job, run

ROOT = Path(__file__).resolve().parents[4]


def test_a_notebook_reads_what_was_handed_in_and_the_folder_stays_as_it_is(tmp_path: Path) -> None:
    path = tmp_path / "lab.ipynb"
    cell = nbformat.v4.new_code_cell("assert open('own.txt').read() == 'mine'")
    nbformat.write(nbformat.v4.new_notebook(cells=[cell]), path)

    finished = run(Job(path, beside={"own.txt": b"mine"}))

    assert finished.ending is None
    assert [path] == list(tmp_path.iterdir())


def test_the_traces_of_lab05s_solution_are_handed_in() -> None:
    assert {"own_before.json.gz", "own_after.json.gz"} == set(read_lab(Course(ROOT), "lab05_profiling").handed_in)
