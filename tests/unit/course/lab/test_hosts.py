"""What a notebook needs on a rented host."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs import __version__
from edl_labs.course.lab.hosts import badges, hosted, repository, unhosted
from edl_labs.course.lab.install_line import install_line
from edl_labs.errors import UsageError


def test_the_set_up_cell_pins_this_release_and_asks_for_no_torch(tmp_path: Path):
    found = hosted("import x", module="edl_labs", install=install_line(tmp_path).release)

    assert found.endswith("import x")
    assert f"edl-labs=={__version__}" in found
    assert all(name in found for name in ("COLAB_RELEASE_TAG", "KAGGLE_KERNEL_RUN_TYPE"))
    compile(found, "setup", "exec")


def test_the_release_is_the_same_whatever_wheel_a_course_hosts(tmp_path: Path):
    usual = hosted("import x", module="edl_labs", install=install_line(tmp_path).release)
    own = hosted("import x", module="edl_course_own", install="https://x.org/own-1.whl")

    assert usual == unhosted(usual) == unhosted(own)


@pytest.mark.parametrize("text", ["owner/name", "https://github.com/owner/name", "https://github.com/owner/name.git"])
def test_badges_lead_to_the_courses_repository(tmp_path: Path, text: str):
    (tmp_path / "course.toml").write_text(f'[course]\nrepository = "{text}"\n')
    found = badges("lab01_x", repository(tmp_path))

    assert 2 == found.count("owner/name/blob/main/labs/lab01_x/lab01_x.ipynb")


def test_without_a_repository_there_are_no_badges(tmp_path: Path):
    assert "" == badges("lab01_x", repository(tmp_path))
    (tmp_path / "course.toml").write_text("[late]\n")
    assert "" == repository(tmp_path)


@pytest.mark.parametrize("text", ['[course]\nrepository = "name"\n', "[course", 'course = "x"\n'])
def test_a_repository_that_is_none_is_refused(tmp_path: Path, text: str):
    (tmp_path / "course.toml").write_text(text)
    with pytest.raises(UsageError, match=r"course\.toml"):
        repository(tmp_path)
