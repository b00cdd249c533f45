"""Labs of edl_labs in an instructor's own course: copied, and brought to a release without losing what was changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.course import taken_labs
from edl_labs.course.course_folder import Course
from edl_labs.course.taken_labs import chosen_labs, labs_to_upgrade, take_labs
from edl_labs.errors import NothingToDo, UsageError
from tests.unit.course.lab import kit

SOURCE, TOML = f"solutions/{kit.LAB}/{kit.LAB}.py", f"solutions/{kit.LAB}/lab.toml"
MODULE = f"edl_labs/exercises/{kit.LAB}.py"
MISTAKES = f"solutions/{kit.LAB}/mistakes"


@pytest.fixture
def release(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    """A checkout of edl_labs that has the small lab alone."""
    checkout = kit.write_course(tmp_path / "checkout")
    (checkout.root / "pyproject.toml").touch()
    checkout.goldens.mkdir()
    (checkout.goldens / f"{kit.LAB}.json").write_text("{}")
    monkeypatch.setattr(taken_labs, "_PACKAGE", checkout.root / "edl_labs")
    return checkout


@pytest.fixture
def course(release: Course, tmp_path: Path) -> Course:
    """A course that took the lab."""
    found = Course(tmp_path / "course")
    take_labs(found, [kit.LAB])
    return found


def change(course: Course, *files: str) -> None:
    for file in files:
        path = course.root / file
        path.write_text(f"{path.read_text()}# {course.root.name}\n")


def test_a_lab_comes_with_its_exercises(release: Course, course: Course):
    for file in (SOURCE, TOML, MODULE, f"{MISTAKES}/doubled_time.py"):
        assert (release.root / file).read_bytes() == (course.root / file).read_bytes()
    assert [kit.LAB] == course.lab_names() == labs_to_upgrade(course.root)
    assert () == take_labs(course, [kit.LAB]).written


def test_an_upgrade_takes_the_releases_changes_and_keeps_the_instructors(release: Course, course: Course):
    change(release, SOURCE, MODULE)
    change(course, TOML, MODULE)
    (release.root / MISTAKES / "doubled_time.py").rename(release.root / MISTAKES / "alike.py")
    found = take_labs(course, [kit.LAB])

    assert (SOURCE, f"{MISTAKES}/alike.py") == found.written
    assert (f"{MISTAKES}/doubled_time.py",) == found.removed
    assert (TOML,) == found.kept
    assert (MODULE,) == found.conflicts
    assert (release.root / SOURCE).read_bytes() == (course.root / SOURCE).read_bytes()
    assert not (course.root / MISTAKES / "doubled_time.py").exists()
    assert all((course.root / file).read_text().endswith("# course\n") for file in (TOML, MODULE))
    assert (release.root / MODULE).read_bytes() == (course.root / "build" / "upgrade" / MODULE).read_bytes()


def test_a_changed_file_that_the_release_dropped_stays_and_is_no_conflict(release: Course, course: Course):
    change(course, f"{MISTAKES}/doubled_time.py")
    (release.root / MISTAKES / "doubled_time.py").unlink()
    found = take_labs(course, [kit.LAB])

    assert ((f"{MISTAKES}/doubled_time.py",), ()) == (found.orphans, found.conflicts)
    assert (course.root / MISTAKES / "doubled_time.py").read_text().endswith("# course\n")
    assert not (course.root / "build").exists()


def test_a_merged_conflict_is_the_instructors_change_afterwards(release: Course, course: Course):
    change(release, MODULE)
    change(course, MODULE)
    take_labs(course, [kit.LAB])
    found = take_labs(course, [kit.LAB])

    assert (MODULE,) == found.kept
    assert () == found.conflicts


def test_a_lab_of_ones_own_is_not_written_over(release: Course, tmp_path: Path):
    own = kit.write_course(tmp_path / "own")
    change(own, SOURCE)
    before = (own.root / SOURCE).read_bytes()
    with pytest.raises(UsageError, match="has a lab of its own called lab80_doubling"):
        take_labs(own, [kit.LAB])

    assert before == (own.root / SOURCE).read_bytes()
    with pytest.raises(NothingToDo, match="has no labs of edl_labs"):
        labs_to_upgrade(own.root)


def test_labs_are_chosen_by_name(release: Course):
    assert [kit.LAB] == chosen_labs("all") == chosen_labs(f" {kit.LAB},")
    with pytest.raises(UsageError, match="edl_labs has no lab named 'lab80_dubling'") as refused:
        chosen_labs("lab80_dubling")
    assert kit.LAB in refused.value.next


def test_a_students_install_has_no_labs_to_copy(release: Course):
    (release.root / "pyproject.toml").unlink()
    with pytest.raises(UsageError, match="no labs to copy") as refused:
        chosen_labs("all")

    assert "edl-labs wheel --judge" in refused.value.next


def test_an_instructors_wheel_has_them(release: Course):
    (release.root / "pyproject.toml").unlink()
    release.solutions.rename(release.root / "edl_labs" / "course.tmp")
    (release.root / "edl_labs" / "course").mkdir()
    (release.root / "edl_labs" / "course.tmp").rename(release.root / "edl_labs" / "course" / "solutions")

    assert [kit.LAB] == chosen_labs("all")
