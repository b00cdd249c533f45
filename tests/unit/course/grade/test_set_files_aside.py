"""What lies beside a submitted notebook is moved out of nbgrader's way, links unfollowed."""

from __future__ import annotations

import os
from pathlib import Path

from edl_labs.course.grade.preprocessors import set_files_aside


def test_the_notebook_its_modules_and_what_the_exchange_wrote_stay(tmp_path: Path):
    folder = tmp_path / "course" / "submitted" / "ann" / "lab"
    (folder / "data").mkdir(parents=True)
    secret = tmp_path / "gradebook.db"
    secret.write_text("marks")
    for name in ("lab.ipynb", "timestamp.txt", "submission_secret.txt", "random.py", "2.py", "data/x.csv"):
        (folder / name).write_text(name)
    (folder / "marks").symlink_to(secret)
    os.mkfifo(folder / "pipe")
    set_files_aside(notebooks=[str(folder / "lab.ipynb")], assignment="lab", student="*")
    away = tmp_path / "course" / "withheld" / "ann" / "lab"

    kept = {"lab.ipynb", "timestamp.txt", "submission_secret.txt", "random.py"}

    assert kept == {path.name for path in folder.iterdir()}  # random.py is what the notebook may import
    assert {"data", "marks", "pipe", "2.py"} == {path.name for path in away.iterdir()}
    assert (away / "marks").is_symlink()
    assert "marks" == secret.read_text()


def test_notebook_that_is_a_link_is_moved_too(tmp_path: Path):
    folder = tmp_path / "course" / "submitted" / "ann" / "lab"
    folder.mkdir(parents=True)
    (folder / "lab.ipynb").symlink_to("/etc/passwd")
    set_files_aside(notebooks=[str(folder / "lab.ipynb")])

    assert [] == list(folder.iterdir())


def test_second_hand_in_takes_no_others_place(tmp_path: Path):
    folder = tmp_path / "course" / "submitted" / "ann" / "lab"
    folder.mkdir(parents=True)
    for text in ("first", "second"):
        (folder / "lab.ipynb").write_text("{}")
        (folder / "x.csv").write_text(text)
        set_files_aside(notebooks=[str(folder / "lab.ipynb")])
    away = tmp_path / "course" / "withheld" / "ann" / "lab"

    assert {"first", "second"} == {path.read_text() for path in away.iterdir()}
