"""Publishing: the students' tree and nothing else, never mixed with other files, never with a leak."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import pytest

from edl_labs import __version__
from edl_labs.checks.progress_store import STATE_DIR
from edl_labs.course.course_folder import Course
from edl_labs.course.lab import publish as publishing
from edl_labs.course.lab.build import build
from edl_labs.course.lab.install_line import install_line
from edl_labs.course.lab.leaks import LeakError
from edl_labs.course.lab.publish import MANIFEST, build_wheel, publish
from edl_labs.errors import EdlError, UsageError
from tests.unit.course.lab import kit

LINE = "twice_as_long_s = 4 * half_of(duration_s)"
FILES = ["LICENSE", "README.md", "labs/README.md", f"labs/{kit.LAB}/{kit.LAB}.ipynb", "labs/START.ipynb"]


def tree(folder) -> list[str]:
    """The files in a folder."""
    return sorted(p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())


def test_the_published_tree_holds_labs_readme_and_licence(built: Course, tmp_path) -> None:
    report = publish(built, tmp_path / "out")

    assert sorted([*FILES, MANIFEST]) == tree(tmp_path / "out")
    assert sorted(FILES) == sorted(report.files)
    assert (built.labs / kit.LAB / f"{kit.LAB}.ipynb").read_bytes() == (tmp_path / "out" / FILES[3]).read_bytes()


def test_a_course_of_ones_own_says_what_to_install(built: Course, tmp_path) -> None:
    (built.root / "course.toml").write_text('[course]\nname = "Slow runs"\nversion = "2.1"\n')
    assert build(built).ok
    publish(built, tmp_path / "out")

    told = (tmp_path / "out" / "README.md").read_text()
    assert told.startswith("# Labs: Slow runs\n")
    assert 'pip install "edl-course-slow-runs==2.1"' in told
    assert "efficient deep learning" not in told


@pytest.mark.parametrize(
    ("install", "line", "release"),
    [
        ("https://example.org/w.whl", "edl-labs[lab] @ https://example.org/w.whl", "https://example.org/w.whl"),
        ("dist/edl_labs-1.0.0-py3-none-any.whl", "edl_labs-1.0.0-py3-none-any.whl[lab]", f"edl-labs=={__version__}"),
        ("edl-labs[lab]==0.9", "edl-labs[lab]==0.9", "edl-labs[lab]==0.9"),
    ],
)
def test_the_wheel_that_the_course_hosts_is_in_the_first_cell_start_and_readme(
    built: Course, tmp_path, install: str, line: str, release: str
) -> None:
    (built.root / "edl_labs" / "__init__.py").touch()  # the package's own course, not one of one's own
    (built.root / "dist").mkdir()
    with zipfile.ZipFile(built.root / "dist" / "edl_labs-1.0.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("edl_labs/__init__.py", "")
    (built.root / "course.toml").write_text(f'[course]\ninstall = "{install}"\n')
    assert build(built).ok
    publish(built, tmp_path / "out")
    notebook, start = (
        json.loads((tmp_path / "out" / name).read_text()) for name in (f"labs/{kit.LAB}/{kit.LAB}.ipynb", FILES[-1])
    )

    assert f'"EDL_LABS_INSTALL", "{release}"' in "".join(notebook["cells"][1]["source"])
    assert f'`pip install "{line}"`' in "".join(start["cells"][0]["source"])
    for readme in ("README.md", "labs/README.md"):
        assert f'`pip install "{line}"`' in (tmp_path / "out" / readme).read_text()
    assert install.startswith("dist/") == (tmp_path / "out" / "edl_labs-1.0.0-py3-none-any.whl").is_file()


def test_a_published_wheel_comes_from_the_repository_on_a_rented_host(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x-1.0.0.whl", "w") as wheel:
        wheel.writestr("x.py", "")
    (tmp_path / "course.toml").write_text('[course]\ninstall = "x-1.0.0.whl"\nrepository = "owner/labs"\n')

    assert "https://github.com/owner/labs/raw/main/x-1.0.0.whl" == install_line(tmp_path).release


@pytest.mark.parametrize(
    ("install", "said"),
    [
        ("none.whl", "no such wheel"),
        ("https://x.org/edl_labs-1.0.0+judge-py3-none-any.whl", "the code that draws secret"),
    ],
)
def test_a_wheel_that_students_cannot_have_is_refused(tmp_path: Path, install: str, said: str) -> None:
    (tmp_path / "course.toml").write_text(f'[course]\ninstall = "{install}"\n')
    with pytest.raises(UsageError) as caught:
        install_line(tmp_path)

    assert said in caught.value.why


def renamed_wheel(root: Path, held: str) -> None:
    with zipfile.ZipFile(root / "edl_labs-1.0.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr(held, "")
    (root / "course.toml").write_text('[course]\ninstall = "edl_labs-1.0.0-py3-none-any.whl"\n')


def test_a_renamed_instructors_wheel_is_known_by_its_version(tmp_path: Path) -> None:
    renamed_wheel(tmp_path, "edl_labs-1.0.0+judge.dist-info/METADATA")
    with pytest.raises(UsageError, match="an instructors' wheel"):
        install_line(tmp_path)


def test_a_wheel_with_solutions_is_not_published(built: Course, tmp_path: Path) -> None:
    renamed_wheel(built.root, "edl_labs/course/solutions/lab01_gpu_basics/lab01_gpu_basics.py")
    build(built)
    with pytest.raises(LeakError, match="the judge's code"):
        publish(built, tmp_path / "out")

    assert not (tmp_path / "out").exists()


LEFT = [".edl_labs/points.json", f".ipynb_checkpoints/{kit.LAB}-checkpoint.ipynb", "__pycache__/x.pyc", ".DS_Store"]


def leave_files(folder: Path) -> None:
    """What a check, Jupyter, an import and a file manager leave in a folder."""
    for name in LEFT:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text("my points")


def test_students_are_told_what_a_check_leaves_beside_a_notebook(built: Course, tmp_path) -> None:
    publish(built, tmp_path / "out")

    told = " ".join((tmp_path / "out" / "README.md").read_text().split())
    assert f"in a folder `{STATE_DIR}` next to each notebook" in told
    assert "delete it whenever you like" in told


def test_what_a_check_left_beside_a_notebook_is_not_published(built: Course, tmp_path) -> None:
    leave_files(built.labs / kit.LAB)

    publish(built, tmp_path / "out")

    assert sorted([*FILES, MANIFEST]) == tree(tmp_path / "out")


@pytest.mark.parametrize("judge", [False, True])
def test_what_a_check_left_beside_a_notebook_is_in_no_wheel(built: Course, tmp_path, judge: bool) -> None:
    leave_files(built.labs / kit.LAB)
    project = '[project]\nname = "small"\nversion = "1"\nrequires-python = ">=3.11"\n[tool.hatch.build]\nexclude = []\n'
    target = '[tool.hatch.build.targets.wheel]\npackages = ["edl_labs"]\nforce-include = {labs = "edl_labs/labs"}\n'
    (built.root / "pyproject.toml").write_text(project + target)

    made = build_wheel(built, tmp_path / "dist", judge=judge)

    labs = [name for name in zipfile.ZipFile(made).namelist() if name.startswith("edl_labs/labs/")]
    assert sorted(f"edl_labs/{name}" for name in FILES[2:4]) == sorted(labs)


def test_a_course_without_exercises_or_a_project_has_no_wheel(built: Course, tmp_path) -> None:
    (built.root / "edl_labs").rename(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="this course has no wheel"):
        build_wheel(built, tmp_path / "dist")


def test_a_students_wheel_with_a_leak_is_not_made(built: Course, tmp_path) -> None:
    project = '[project]\nname = "small"\nversion = "1"\nrequires-python = ">=3.11"\n'
    target = '[tool.hatch.build.targets.wheel]\npackages = ["edl_labs"]\n'
    (built.root / "pyproject.toml").write_text(project + target)
    assert "small-1-py3-none-any.whl" == build_wheel(built, tmp_path / "dist").name
    (built.exercises / "notes.txt").write_text(LINE)

    with pytest.raises(LeakError, match=r"any\.whl/edl_labs/exercises/notes\.txt"):
        build_wheel(built, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_an_own_courses_wheel_with_a_leak_is_not_made(built: Course, tmp_path) -> None:
    assert "edl_course_course-0.1.0-py3-none-any.whl" == build_wheel(built, tmp_path / "dist").name
    (built.exercises / "notes.txt").write_text(LINE)

    with pytest.raises(LeakError, match=r"any\.whl/edl_course_course/exercises/notes\.txt"):
        build_wheel(built, tmp_path / "again")
    assert not (tmp_path / "again").exists()


def test_publishing_again_updates_and_removes_what_is_gone(built: Course, tmp_path) -> None:
    publish(built, tmp_path / "out")
    manifest = tmp_path / "out" / MANIFEST
    data = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**data, "files": [*data["files"], "labs/lab99_gone/lab99_gone.ipynb"]}))
    gone = tmp_path / "out" / "labs" / "lab99_gone" / "lab99_gone.ipynb"
    gone.parent.mkdir()
    gone.write_text("{}")

    report = publish(built, tmp_path / "out")

    assert ("labs/lab99_gone/lab99_gone.ipynb",) == report.removed
    assert sorted([*FILES, MANIFEST]) == tree(tmp_path / "out")
    assert not gone.parent.exists()


def test_a_git_folder_in_the_target_is_left_alone(built: Course, tmp_path) -> None:
    (tmp_path / "out" / ".git").mkdir(parents=True)
    (tmp_path / "out" / ".git" / "HEAD").write_text("ref")

    publish(built, tmp_path / "out")
    publish(built, tmp_path / "out")

    assert "ref" == (tmp_path / "out" / ".git" / "HEAD").read_text()


def test_a_target_with_other_files_is_refused_and_untouched(built: Course, tmp_path) -> None:
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("mine")

    with pytest.raises(UsageError, match=r"out contains files that publish did not write: thesis\.tex"):
        publish(built, tmp_path / "out")
    assert ["thesis.tex"] == tree(tmp_path / "out")


def test_a_file_added_to_a_published_tree_is_refused_and_untouched(built: Course, tmp_path) -> None:
    publish(built, tmp_path / "out")
    (tmp_path / "out" / "labs" / "mine.txt").write_text("mine")

    with pytest.raises(UsageError, match=r"labs/mine\.txt"):
        publish(built, tmp_path / "out")
    assert "mine" == (tmp_path / "out" / "labs" / "mine.txt").read_text()


def test_a_manifest_cannot_make_publish_remove_files_elsewhere(built: Course, tmp_path) -> None:
    publish(built, tmp_path / "out")
    other = tmp_path / "other.txt"
    other.write_text("mine")
    manifest = tmp_path / "out" / MANIFEST
    data = json.loads(manifest.read_text())
    manifest.write_text(json.dumps({**data, "files": [*data["files"], "../other.txt", str(other)]}))

    publish(built, tmp_path / "out")

    assert "mine" == other.read_text()


@pytest.mark.parametrize("inside", [".", "solutions/out", "labs", "edl_labs/out"])
def test_a_target_inside_the_course_is_refused(built: Course, inside: str) -> None:
    with pytest.raises(UsageError, match="cannot publish to"):
        publish(built, built.root / inside)


def test_a_target_that_is_a_file_is_refused(built: Course, tmp_path) -> None:
    (tmp_path / "out").write_text("x")

    with pytest.raises(UsageError, match="out is a file"):
        publish(built, tmp_path / "out")


def test_stale_labs_are_not_published(built: Course, tmp_path) -> None:
    kit.replace(kit.source(built), "print(size)", "print(label)")

    with pytest.raises(EdlError, match="labs/ is out of date"):
        publish(built, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_leak_is_refused_before_anything_is_visible(built: Course, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(publishing, "_README", f"# Labs\n\n{LINE}\n")

    with pytest.raises(LeakError, match=r"README\.md contains"):
        publish(built, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert [] == [p.name for p in tmp_path.iterdir() if p.name.startswith(".edl-publish")]
