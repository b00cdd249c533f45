"""The small wheel of an instructor's own course: what is in it, and that an install finds its labs."""

from __future__ import annotations

import json
import shutil
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from edl_labs.checks import lab_exercises
from edl_labs.checks.lab_facts import facts, lab_of
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.hosts import hosted
from edl_labs.course.lab.install_line import install_line
from edl_labs.course.lab.own_wheel import build_own_wheel, distribution
from edl_labs.course.lab.publish import build_wheel, publish
from edl_labs.course.start import labs_folder, start
from edl_labs.errors import UsageError
from tests.unit.course.lab import kit


def own_course(root: Path, *, about: str = 'name = "Own, 2nd part"\nversion = "1.2"\n') -> Course:
    """The small course, with public files as a build writes them, and a judge's part."""
    course = kit.write_course(root)
    (root / "course.toml").write_text(f"[course]\n{about}")
    facts_of = {"schema": 2, "lab": kit.LAB, "title": "Doubling", "minutes": 30}
    golden = json.dumps({**facts_of, "locked": {}, "goldens": {}, "exercises": []})
    for path, text in {
        root / "edl_labs" / "exercises" / "goldens" / f"{kit.LAB}.json": golden,
        root / "edl_labs" / "exercises" / kit.LAB / "judge" / "draws.py": "SECRET = 7\n",
        root / "labs" / kit.LAB / f"{kit.LAB}.ipynb": '{"cells": []}',
        root / "labs" / "README.md": "# Labs",
    }.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return course


@pytest.fixture
def course(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Course:
    monkeypatch.delenv("EDL_LABS_EXERCISES", raising=False)
    return own_course(tmp_path / "course")


@pytest.fixture
def installed(course: Course, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of site-packages with the course's wheel in it, and no other course's."""
    site = tmp_path / "site"
    install(build_own_wheel(course, tmp_path), site)
    monkeypatch.setattr(sys, "path", [str(site), *sys.path])
    lab_exercises.installed_courses.cache_clear()
    yield site
    lab_exercises.installed_courses.cache_clear()


def install(wheel: Path, site: Path) -> None:
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)


def test_a_wheel_holds_what_students_may_have_and_needs_edl_labs(course: Course, tmp_path: Path):
    wheel = build_own_wheel(course, tmp_path)
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        said = packed.read("edl_course_own_2nd_part-1.2.dist-info/METADATA").decode()

    package = "edl_course_own_2nd_part"
    assert {f"{package}/__init__.py", f"{package}/labs/{kit.LAB}/{kit.LAB}.ipynb", f"{package}/labs/README.md"} < names
    assert f"{package}/exercises/goldens/{kit.LAB}.json" in names
    assert not [name for name in names if "judge" in name or "solutions" in name or "wrong" in name]
    assert "Requires-Dist: edl-labs[lab]" in said


def test_an_installed_course_is_found_without_a_variable(installed: Path):
    package = installed / "edl_course_own_2nd_part"

    assert {"edl_course_own_2nd_part": package / "exercises"} == lab_exercises.installed_courses()
    assert package / "exercises" == lab_exercises.folder_of(kit.LAB)
    assert "Doubling" == facts(kit.LAB).title
    assert "lab01_gpu_basics" == lab_of("honest_timer").lab
    assert package / "labs" == labs_folder()
    assert package / "labs" != labs_folder("edl_labs")


def test_a_variable_hides_installed_courses(installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("EDL_LABS_EXERCISES", str(tmp_path))

    assert (tmp_path,) == lab_exercises.exercises_folders()


def test_start_copies_the_installed_course_and_no_other_is_guessed(installed: Path, tmp_path: Path):
    assert (kit.LAB,) == start(tmp_path / "mine", open=False).labs
    with pytest.raises(UsageError, match="no course is called 'other'") as refused:
        start(tmp_path / "mine", open=False, course="other")
    assert "edl_course_own_2nd_part, edl_labs" in refused.value.why


def test_of_several_courses_one_has_to_be_named(installed: Path, tmp_path: Path):
    second = own_course(tmp_path / "second", about='name = "Second"\n')
    install(build_own_wheel(second, tmp_path), installed)
    lab_exercises.installed_courses.cache_clear()

    with pytest.raises(UsageError, match="several courses are installed"):
        labs_folder()
    assert installed / "edl_course_second" / "labs" == labs_folder("edl_course_second")


TAKEN = "lab08b_layouts"


def take(course: Course) -> Path:
    """Put a lab of edl_labs into the course as it is; its exercises' folder."""
    package, here = Path(lab_exercises.__file__).resolve().parents[1] / "exercises", course.exercises
    (course.solutions / TAKEN).mkdir()
    shutil.copytree(package / TAKEN, here / TAKEN)
    shutil.copy(package / "goldens" / f"{TAKEN}.json", here / "goldens")
    return here / TAKEN


def test_a_lab_of_edl_labs_is_not_packed_again(course: Course, tmp_path: Path):
    take(course)
    wheel = build_own_wheel(course, tmp_path)
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()

    assert f"edl_course_own_2nd_part/exercises/goldens/{kit.LAB}.json" in names
    assert not [name for name in names if TAKEN in name]


def test_a_lab_of_edl_labs_with_other_exercises_is_refused(course: Course, tmp_path: Path):
    changed = take(course) / "__init__.py"
    changed.write_text(changed.read_text() + "# mine\n")

    with pytest.raises(UsageError, match=f"exercises of {TAKEN} differ from those of edl_labs"):
        build_own_wheel(course, tmp_path)
    with pytest.raises(UsageError, match=f"exercises of {TAKEN} differ from those of edl_labs"):
        publish(course, tmp_path / "out")


def test_students_of_labs_of_edl_labs_alone_install_edl_labs(course: Course, tmp_path: Path):
    take(course)
    shutil.rmtree(course.solutions / kit.LAB)
    next(course.exercises.glob(f"{kit.LAB}*.py")).unlink()
    shutil.rmtree(course.exercises / kit.LAB)

    assert 'pip install "edl-labs[lab]"' == install_line(course.root).line
    with pytest.raises(UsageError, match="needs no wheel"):
        build_own_wheel(course, tmp_path)


def test_an_own_course_has_no_instructors_wheel(course: Course, tmp_path: Path):
    with pytest.raises(UsageError, match="is graded in its folder"):
        build_wheel(course, tmp_path, judge=True)


@pytest.mark.parametrize(
    ("about", "install"),
    [
        ('name = "Own"\nversion = "2.0rc1"', "edl-course-own==2.0rc1"),
        ('name = "Own"\ninstall = "https://example.org/own.whl"', "https://example.org/own.whl"),
        ("", "edl-course-course==0.1.0"),
    ],
)
def test_a_rented_host_installs_the_course(about: str, install: str, tmp_path: Path):
    root = own_course(tmp_path / "course", about=about).root
    found, release = distribution(root), install_line(root).release
    cell = hosted("import x", module=found.package, install=release)

    assert install == release
    assert f'"{install}"' in cell
    assert f'find_spec("{found.package}")' in cell


def test_a_version_that_pip_refuses_is_told(tmp_path: Path):
    course = own_course(tmp_path / "course", about='version = "spring"')

    with pytest.raises(UsageError, match="version is 'spring'"):
        distribution(course.root)


def test_a_course_says_where_edl_labs_is_when_no_index_has_it(tmp_path: Path):
    address = "https://example.org/edl_labs-1.0.0-py3-none-any.whl"
    wheel = build_own_wheel(own_course(tmp_path / "course", about=f'edl_labs = "{address}"\n'), tmp_path)
    with zipfile.ZipFile(wheel) as packed:
        about = next(packed.read(name).decode() for name in packed.namelist() if name.endswith("METADATA"))

    assert f"Requires-Dist: edl-labs[lab]@ {address}" in about.replace(" @ ", "@ ")


def test_a_wheel_of_edl_labs_is_published_with_that_of_the_course(tmp_path: Path):
    about = 'install = "own-1.whl"\nedl_labs = "edl_labs-1.whl"\n'
    course = own_course(tmp_path / "course", about=about)
    for name in ("own-1.whl", "edl_labs-1.whl"):
        with zipfile.ZipFile(course.root / name, "w") as wheel:
            wheel.writestr("x.py", "")
    line = install_line(course.root)

    assert 'pip install "edl_labs-1.whl[lab]" "own-1.whl"' == line.line
    assert ("edl_labs-1.whl", "own-1.whl") == tuple(wheel.name for wheel in line.wheels)


@pytest.mark.parametrize("said", ["https://x.org/edl_labs-1.0.0+judge-py3-none-any.whl", "none.whl", "edl-labs"])
def test_a_wheel_of_edl_labs_that_students_cannot_have_is_refused(said: str, tmp_path: Path):
    course = own_course(tmp_path / "course", about=f'edl_labs = "{said}"\n')
    with pytest.raises(UsageError, match="edl_labs is"):
        install_line(course.root)
