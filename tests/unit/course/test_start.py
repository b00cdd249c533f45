"""Starting: labs are copied to where the student says, and work that is there is never touched."""

from __future__ import annotations

import json
from pathlib import Path

import nbformat
import pytest

from edl_labs.checks.lab_facts import facts
from edl_labs.course import start as starting
from edl_labs.course.start import labs_folder, start
from edl_labs.errors import UsageError

LAB, OTHER = "lab01_one", "lab02_two"


def notebook(release: str, text: str = "x = 1") -> str:
    """A small notebook of one release."""
    cell = {"cell_type": "code", "source": text, "metadata": {}, "outputs": []}
    return json.dumps({"cells": [cell], "metadata": {"edl_labs": {"release": release}}})


@pytest.fixture
def labs(tmp_path: Path) -> Path:
    """Two released labs, one with a data file."""
    for name in (LAB, OTHER):
        (tmp_path / "labs" / name).mkdir(parents=True)
        (tmp_path / "labs" / name / f"{name}.ipynb").write_text(notebook("aaaaaaaaaaaa"))
    (tmp_path / "labs" / LAB / "runs.csv").write_text("1,2\n")
    (tmp_path / "labs" / "README.md").write_text("# Labs\n")
    return tmp_path / "labs"


def test_all_labs_are_copied_with_their_data(labs: Path, tmp_path: Path) -> None:
    report = start(tmp_path / "mine", open=False, labs=labs)

    labs_files = (f"{LAB}/{LAB}.ipynb", f"{LAB}/runs.csv", f"{OTHER}/{OTHER}.ipynb")
    assert (*labs_files, "README.md", "START.ipynb") == report.copied
    assert "1,2\n" == (tmp_path / "mine" / LAB / "runs.csv").read_text()
    assert (LAB, OTHER) == report.labs


def test_what_a_check_left_beside_a_released_notebook_is_not_copied(labs: Path, tmp_path: Path) -> None:
    for name in (".edl_labs/points.json", ".ipynb_checkpoints/x.ipynb", "__pycache__/x.pyc"):
        (labs / LAB / name).parent.mkdir()
        (labs / LAB / name).write_text("{}")

    report = start(tmp_path / "mine", LAB, open=False, labs=labs)

    assert (f"{LAB}/{LAB}.ipynb", f"{LAB}/runs.csv", "README.md", "START.ipynb") == report.copied
    assert {f"{LAB}.ipynb", "runs.csv"} == {path.name for path in (tmp_path / "mine" / LAB).iterdir()}


@pytest.mark.parametrize("name", [LAB, "lab01"])
def test_one_lab_is_copied_by_its_name_or_number(labs: Path, tmp_path: Path, name: str) -> None:
    report = start(tmp_path / "mine", name, open=False, labs=labs)

    assert ((LAB,), False) == (report.labs, (tmp_path / "mine" / OTHER).exists())


def test_work_on_this_release_is_kept_and_nothing_is_put_beside_it(labs: Path, tmp_path: Path) -> None:
    start(tmp_path / "mine", open=False, labs=labs)
    work = tmp_path / "mine" / LAB / f"{LAB}.ipynb"
    work.write_text(notebook("aaaaaaaaaaaa", "x = 2  # my answer"))

    report = start(tmp_path / "mine", open=False, labs=labs)

    assert notebook("aaaaaaaaaaaa", "x = 2  # my answer") == work.read_text()
    assert ((), ()) == (report.copied, report.beside)
    assert f"{LAB}/{LAB}.ipynb" in report.kept


def test_a_newer_release_is_written_beside_the_work(labs: Path, tmp_path: Path) -> None:
    start(tmp_path / "mine", open=False, labs=labs)
    work = tmp_path / "mine" / LAB / f"{LAB}.ipynb"
    work.write_text(notebook("aaaaaaaaaaaa", "x = 2  # my answer"))
    (labs / LAB / f"{LAB}.ipynb").write_text(notebook("bbbbbbbbbbbb", "x = 3"))

    first = start(tmp_path / "mine", open=False, labs=labs)
    second = start(tmp_path / "mine", open=False, labs=labs)

    newer = tmp_path / "mine" / LAB / f"{LAB}.new-bbbbbbbb.ipynb"
    assert notebook("aaaaaaaaaaaa", "x = 2  # my answer") == work.read_text()
    assert notebook("bbbbbbbbbbbb", "x = 3") == newer.read_text()
    assert ((f"{LAB}/{newer.name}",), ()) == (first.beside, second.beside)


def test_work_in_the_newer_version_is_not_touched_either(labs: Path, tmp_path: Path) -> None:
    start(tmp_path / "mine", open=False, labs=labs)
    (labs / LAB / f"{LAB}.ipynb").write_text(notebook("bbbbbbbbbbbb", "x = 3"))
    start(tmp_path / "mine", open=False, labs=labs)
    newer = tmp_path / "mine" / LAB / f"{LAB}.new-bbbbbbbb.ipynb"
    newer.write_text("work")

    start(tmp_path / "mine", open=False, labs=labs)

    assert "work" == newer.read_text()


@pytest.mark.parametrize("broken", ["", "{", "[]", '{"metadata": 3}', "\x00\xff"])
def test_a_notebook_that_cannot_be_read_is_kept_too(labs: Path, tmp_path: Path, broken: str) -> None:
    work = tmp_path / "mine" / LAB / f"{LAB}.ipynb"
    work.parent.mkdir(parents=True)
    work.write_bytes(broken.encode("latin-1"))

    report = start(tmp_path / "mine", open=False, labs=labs)

    assert broken.encode("latin-1") == work.read_bytes()
    assert (f"{LAB}/{LAB}.new-aaaaaaaa.ipynb",) == report.beside


def test_changed_data_is_kept_and_the_new_data_put_beside_it(labs: Path, tmp_path: Path) -> None:
    start(tmp_path / "mine", open=False, labs=labs)
    (labs / LAB / "runs.csv").write_text("3,4\n")

    report = start(tmp_path / "mine", open=False, labs=labs)

    assert "1,2\n" == (tmp_path / "mine" / LAB / "runs.csv").read_text()
    assert [True] == [name.startswith(f"{LAB}/runs.new-") and name.endswith(".csv") for name in report.beside]


def test_a_link_that_leads_nowhere_is_not_followed(labs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine" / LAB).mkdir(parents=True)
    (tmp_path / "mine" / LAB / f"{LAB}.ipynb").symlink_to(tmp_path / "elsewhere.ipynb")

    start(tmp_path / "mine", open=False, labs=labs)

    assert not (tmp_path / "elsewhere.ipynb").exists()


def test_jupyterlab_is_opened_where_the_labs_are(labs: Path, tmp_path: Path) -> None:
    opened: list[Path] = []

    start(tmp_path / "mine", labs=labs, launch=opened.append)
    start(tmp_path / "mine", LAB, labs=labs, launch=opened.append)

    assert [tmp_path / "mine" / "START.ipynb", tmp_path / "mine" / LAB] == opened


def test_the_start_page_names_each_lab_and_how_to_hand_in(tmp_path: Path) -> None:
    start(tmp_path / "mine", "lab02", open=False)
    page = nbformat.read(tmp_path / "mine" / "START.ipynb", as_version=4)
    nbformat.validate(page)
    (text,) = (cell.source for cell in page.cells)

    for name in (path.parent.name for path in labs_folder().glob("lab*/*.ipynb")):
        known = facts(name)
        assert f"[{name}]({name}/{name}.ipynb) | {known.title} | {known.minutes_said} | {known.points:g} |" in text
    assert "How to hand in" in text


def test_a_start_page_that_was_saved_is_kept_and_none_is_put_beside_it(labs: Path, tmp_path: Path) -> None:
    start(tmp_path / "mine", LAB, open=False, labs=labs)
    page = nbformat.read(tmp_path / "mine" / "START.ipynb", as_version=4)
    page.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3"}
    nbformat.write(page, tmp_path / "mine" / "START.ipynb")

    report = start(tmp_path / "mine", open=False, labs=labs)

    assert ("START.ipynb" in report.kept, ()) == (True, report.beside)


def test_without_jupyterlab_nothing_is_copied_and_the_way_out_is_said(
    labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "find_spec", lambda name: None)

    with pytest.raises(UsageError, match="JupyterLab is not installed") as caught:
        start(tmp_path / "mine", labs=labs)
    assert 'pip install "edl-labs[lab]"' in caught.value.next
    assert not (tmp_path / "mine").exists()


def test_an_unknown_lab_is_told_with_the_nearest_name(labs: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no lab called 'lab02_tow'") as caught:
        start(tmp_path / "mine", "lab02_tow", open=False, labs=labs)
    assert f"did you mean {OTHER}?" == caught.value.next


def test_a_target_that_is_a_file_is_refused(labs: Path, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("x")

    with pytest.raises(UsageError, match="is not a folder"):
        start(tmp_path / "mine", open=False, labs=labs)


def test_a_published_tree_around_us_is_where_the_labs_come_from(
    labs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    before = labs_folder()
    (tmp_path / starting.PUBLISHED).write_text("{}")

    assert tmp_path / "labs" == labs_folder()
    assert tmp_path / "labs" != before


def test_without_any_labs_the_way_out_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(starting, "_PACKAGE", tmp_path / "edl_labs")
    monkeypatch.chdir(tmp_path)

    with pytest.raises(UsageError, match="no labs were found"):
        labs_folder()
