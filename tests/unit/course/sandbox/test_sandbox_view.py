"""What a sandboxed kernel is shown, and what is covered."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

import edl_labs
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.view import HOME, View, gpu_nodes, students_view
from edl_labs.course.sandbox.zygote.box import MADE_ETC, bubblewrap_arguments, write_etc

PACKAGE = Path(edl_labs.__file__).parent


def test_the_package_is_shown_without_the_instructors_parts_and_without_the_repository():
    view = students_view()

    assert any(str(PACKAGE).startswith(folder) for folder in view.shown)
    judges = {str(path) for path in PACKAGE.glob("exercises/*/judge")}
    assert str(PACKAGE / "exercises/lab01_gpu_basics/judge") in judges
    assert {str(PACKAGE / "course"), *judges} == set(view.covered)
    assert str(PACKAGE.parent) not in view.shown or str(PACKAGE.parent) == sys.prefix


def test_the_interpreter_and_its_base_are_shown():
    shown = [*students_view().shown, "/usr"]

    for prefix in (sys.prefix, sys.base_prefix):
        assert any(Path(prefix).is_relative_to(folder) for folder in shown)


def test_packages_that_another_environment_lends_are_shown_and_no_other_folder_of_the_path(tmp_path, monkeypatch):
    lent, repository = tmp_path / "lib" / "site-packages", tmp_path / "repository"
    for folder in (lent / "edl_labs" / "course", repository):
        folder.mkdir(parents=True)
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.syspath_prepend(str(lent))
    view = students_view()

    assert str(lent) in view.shown
    assert str(repository) not in view.shown
    assert str(lent / "edl_labs" / "course") in view.covered


def test_a_view_survives_json():
    import json

    view = students_view()

    assert view == View.from_dict(json.loads(json.dumps(view.as_dict())))


def test_no_gpu_is_shown_unless_leased():
    assert () == students_view().devices


def test_a_lease_shows_the_nodes_of_one_gpu(monkeypatch):
    present = {"/dev/nvidia0", "/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm"}
    monkeypatch.setattr("os.path.exists", lambda path: path in present)

    assert ("/dev/nvidia1", "/dev/nvidiactl", "/dev/nvidia-uvm") == gpu_nodes(1)


def test_arguments_close_what_bubblewrap_leaves_writable_last(tmp_path):
    view = View(("/opt/env",), (), "/opt", ("/dev/nvidia0",))
    made = bubblewrap_arguments(view, Limits(home_bytes=123), etc=str(tmp_path))

    assert ["--remount-ro", "/dev", "--remount-ro", "/"] == made[-4:]
    assert follows(made, "--size", "123", "--tmpfs", HOME)
    assert follows(made, "--ro-bind", "/opt/env", "/opt/env")
    assert follows(made, "--dev-bind", "/dev/nvidia0", "/dev/nvidia0")
    assert made.index("--dev") < made.index("--dev-bind")


@pytest.mark.parametrize("option", ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--clearenv", "--new-session"])
def test_arguments_isolate(option, tmp_path):
    assert option in bubblewrap_arguments(students_view(), Limits(), etc=str(tmp_path))


def test_every_tmpfs_has_a_size(tmp_path):
    made = bubblewrap_arguments(students_view(), Limits(), etc=str(tmp_path))

    assert all(made[index - 2] == "--size" for index, word in enumerate(made) if word == "--tmpfs")


def test_the_made_etc_knows_one_user_and_no_host_of_ours(tmp_path):
    write_etc(str(tmp_path))

    assert set(MADE_ETC) == {path.name for path in tmp_path.iterdir()}
    assert 1 == len((tmp_path / "passwd").read_text().splitlines())


def follows(words: list[str], *wanted: str) -> bool:
    return any(list(wanted) == words[start : start + len(wanted)] for start in range(len(words)))
