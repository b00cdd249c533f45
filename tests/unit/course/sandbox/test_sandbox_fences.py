"""The fences hold: each way out is tried; and they stand for root and for an ordinary user alike."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

from edl_labs.course.sandbox import Level, best_level, escape, escapes, landlock, level_problem, stage
from edl_labs.course.sandbox.view import View
from edl_labs.errors import UsageError
from tests.unit.course.sandbox.kernel.conftest import require_namespaces

REPOSITORY = Path(__file__).parents[4]


@pytest.mark.parametrize("level", [Level.NAMESPACES, pytest.param(Level.LANDLOCK, marks=pytest.mark.slow)])
def test_every_way_out_is_closed(level):
    if problem := level_problem(level):
        pytest.skip(f"no sandbox of level {level.value} here: {problem}")
    tried = escapes(level=level, paths=[REPOSITORY / "pyproject.toml"])

    assert [] == [(escape.name, escape.seen) for escape in tried if not escape.held]
    assert len(tried) >= 20


def test_the_attempt_to_read_the_judges_code_finds_it_where_nothing_covers_it():
    attempt = next(one for one in escape._ATTEMPTS if one.name == "read the judge's code")
    names = {"os": os}
    exec(attempt.code, names)

    assert attempt.escaped(None, str(names["seen"]))


def test_without_a_fence_nothing_is_tried_and_nothing_held():
    assert {False} == {escape.held for escape in escapes(level=Level.UNSAFE)}


def test_the_best_level_is_never_unsafe(monkeypatch):
    monkeypatch.setattr("edl_labs.course.sandbox.level.level_problem", lambda level: f"no {level.value} here")

    with pytest.raises(UsageError, match="no namespaces here; landlock: no landlock here"):
        best_level()


def test_a_machine_without_bubblewrap_is_told_so(monkeypatch):
    monkeypatch.setattr("shutil.which", lambda name: None)
    level_problem.cache_clear()
    try:
        assert "bubblewrap is not installed" == level_problem(Level.NAMESPACES)
    finally:
        level_problem.cache_clear()


def test_a_machine_too_busy_to_start_bubblewrap_soon_keeps_its_level(monkeypatch):
    def busy(command, *, timeout, **_):
        if timeout < 60:
            raise subprocess.TimeoutExpired(command, timeout)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr("edl_labs.course.sandbox.level._seccomp_problem", lambda: "")
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr("subprocess.run", busy)
    level_problem.cache_clear()
    try:
        assert "" == level_problem(Level.NAMESPACES)
    finally:
        level_problem.cache_clear()


def test_only_unsafe_marks_are_untrusted():
    assert [Level.UNSAFE] == [level for level in Level if not level.trusted]


def test_landlock_names_what_lies_beside_a_covered_folder(tmp_path):
    for name in ("package/checks", "package/grading"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "package/units.py").touch()
    view = View((str(tmp_path),), (str(tmp_path / "package/grading"),), str(tmp_path))
    fence = landlock.fence(view)

    assert {str(tmp_path), str(tmp_path / "package")} == set(fence.listed)
    assert {"checks", "units.py"} == {Path(path).name for path in fence.read if path.startswith(str(tmp_path))}


def test_the_closed_folder_on_the_way_is_found(tmp_path):
    (tmp_path / "closed" / "inner").mkdir(parents=True)
    (tmp_path / "closed").chmod(0o700)

    assert stage.closed_ancestor(str(tmp_path / "closed" / "inner")) in map(
        str, [*tmp_path.parents, tmp_path / "closed"]
    )


def as_ordinary(code: str) -> subprocess.CompletedProcess[str]:
    """Run `code` as an ordinary user who can read this interpreter and the library, in a mount namespace of its own."""
    if os.geteuid() != 0:
        pytest.skip("already an ordinary user: every other test here shows what this one would")
    start = """
        from edl_labs.course.sandbox.stage import become_ordinary
        from edl_labs.course.sandbox.view import students_view
        view = students_view()
        become_ordinary([*view.shown, view.package_root], uid=59_000)
        """
    text = textwrap.dedent(start) + textwrap.dedent(code)
    return subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, cwd=REPOSITORY, timeout=200, check=False
    )


def test_root_gives_up_everything_but_reading_the_interpreter():
    done = as_ordinary(
        """
        import json, os
        print(json.dumps([os.getresuid(), os.getgroups(), os.access("/etc/shadow", os.R_OK)]))
        """
    )

    assert [[59_000] * 3, [], False] == json.loads(done.stdout)


def test_kernels_work_for_an_ordinary_user_too():
    require_namespaces()
    done = as_ordinary(
        """
        from edl_labs.course.sandbox.kernel import KernelPool
        from edl_labs.course.sandbox import Level
        with KernelPool(level=Level.NAMESPACES, preload=("numpy",)) as pool, pool.kernel() as kernel:
            print(kernel.ask("import os; answer(str(os.getuid()).encode())", timeout_s=60).decode())
        """
    )

    assert ("1000\n", "") == (done.stdout, done.stderr)
