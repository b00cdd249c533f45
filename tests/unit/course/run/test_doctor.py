"""The doctor tries things, and no broken thing stops it."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.course.run import doctor
from edl_labs.course.run.doctor import DoctorReport, Row, examine_machine
from edl_labs.errors import UsageError


def looks(monkeypatch: pytest.MonkeyPatch, **named: Any) -> DoctorReport:
    monkeypatch.setattr(doctor, "_LOOKS", named)
    return examine_machine()


def test_every_finding_is_there_with_a_state_and_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for slow in ("kernel", "torchvision"):
        monkeypatch.setitem(doctor._LOOKS, slow, lambda slow=slow: Row(slow, "ok", "not tried in this test"))
    seen: list[tuple[int, int, str]] = []

    report = examine_machine(progress=lambda *step: seen.append(step))
    assert list(doctor._LOOKS) == [row.name for row in report.rows]
    assert {row.state for row in report.rows} <= {"ok", "warn", "missing"}
    assert all(row.next for row in report.rows if row.state != "ok")
    assert (len(report.rows), len(report.rows), "done") == seen[-1]
    assert report.exit_code == json.loads(json.dumps(report.to_json()))["exit_code"]


def test_a_kernel_is_really_started() -> None:
    row = doctor._kernel()

    assert "ok" == row.state
    assert row.what.startswith("a test notebook ran in ")


def test_a_look_that_breaks_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> Row:
        raise OSError("libgone.so: cannot open")

    report = looks(monkeypatch, torch=broken)
    assert ("torch", "missing") == (report.rows[0].name, report.rows[0].state)
    assert "libgone.so" in report.rows[0].what
    assert 2 == report.exit_code


@pytest.mark.parametrize(("who", "exit_code"), [("everyone", 2), ("instructors", 0), ("nobody", 0)])
def test_only_what_everyone_needs_fails_the_doctor(monkeypatch: pytest.MonkeyPatch, who: str, exit_code: int) -> None:
    report = looks(monkeypatch, thing=lambda: Row("thing", "missing", "not here", "get it", who))

    assert exit_code == report.exit_code


@pytest.mark.parametrize(
    ("version", "state"),
    [
        (None, "missing"),
        ("2.10.1+cpu", "warn"),
        ("1.13", "warn"),
        ("2.11.0", "ok"),
        ("2.15.0+cu132", "ok"),
        ("3.0", "ok"),
    ],
)
def test_torch_is_judged_by_its_version(monkeypatch: pytest.MonkeyPatch, version: str | None, state: str) -> None:
    monkeypatch.setattr(doctor, "_version", lambda name: version)

    assert state == doctor._torch().state


@pytest.mark.parametrize(
    ("program", "code", "state"), [(None, 0, "missing"), ("/usr/bin/bwrap", 1, "warn"), ("/usr/bin/bwrap", 0, "ok")]
)
def test_a_sandbox_is_tried_not_assumed(
    monkeypatch: pytest.MonkeyPatch, program: str | None, code: int, state: str
) -> None:
    ran = SimpleNamespace(returncode=code, stderr="no namespaces", stdout="bubblewrap 0.9")
    monkeypatch.setattr(doctor.shutil, "which", lambda name: program)
    monkeypatch.setattr(subprocess, "run", lambda *args, **kwargs: ran)

    assert state == doctor._bubblewrap().state


def test_the_doctor_of_one_lab_names_each_package_that_its_cells_can_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(doctor._LOOKS, "kernel", lambda: Row("kernel", "ok", "not tried in this test"))
    versions = {"h5py": None, "pyarrow": None}
    monkeypatch.setattr(doctor, "_version", lambda name: versions.get(name, "9.9"))
    monkeypatch.setattr(subprocess, "run", lambda command, **_: SimpleNamespace(returncode=0, stdout="", stderr=""))

    rows = {row.name: row for row in examine_machine("lab04").rows}

    assert ("missing", 'pip install "edl-labs[lab]"') == (rows["h5py"].state, rows["h5py"].next)
    assert "the formats parquet and arrow will be left out" in rows["pyarrow"].what
    assert 'pip install "edl-labs[data]"' == rows["pyarrow"].next
    assert ("ok", "9.9: the decoder opencv") == (
        rows["opencv-python-headless"].state,
        rows["opencv-python-headless"].what,
    )
    assert "py-spy" not in rows


def test_a_package_of_a_lab_that_is_installed_and_broken_is_a_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = doctor.LabPackage("numpy", "numpy.no_such_module_of_it", "everything")

    row = doctor._package_tried(broken)

    assert "warn" == row.state
    assert "No module named 'numpy.no_such_module_of_it'" in row.what


def test_the_general_doctor_says_of_a_lab_what_it_will_leave_out(monkeypatch: pytest.MonkeyPatch) -> None:
    absent = {"py-spy", "lmdb", "opencv-python-headless"}
    monkeypatch.setattr(doctor, "_version", lambda name: None if name in absent else "9.9")

    report = looks(monkeypatch, **doctor._lab_looks())

    assert ["lab04", "lab05", "lab09b"] == [row.name for row in report.rows]
    assert "without lmdb: the format lmdb; without opencv-python-headless: the decoder opencv" in report.rows[0].what
    assert 'pip install "edl-labs[lab,data]"' == report.rows[0].next
    assert report.ok


def test_an_unknown_lab_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(UsageError) as caught:
        examine_machine("lab04_data_pipeline")

    assert "did you mean lab04_data_pipelines?" == caught.value.next


def test_each_package_of_a_lab_is_in_the_extra_that_the_doctor_names() -> None:
    import tomllib
    from pathlib import Path

    from packaging.requirements import Requirement

    project = tomllib.loads((Path(__file__).resolve().parents[4] / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    for package in (package for packages in doctor.LAB_PACKAGES.values() for package in packages):
        assert package.name in {Requirement(text).name for text in extras[package.extra]}


def test_a_compiler_is_tried_with_the_headers_of_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: f"/usr/bin/{name}" if name == "clang++" else None)
    asked: list[list[str]] = []

    def run(command: list[str], **_: Any) -> SimpleNamespace:
        asked.append(command)
        return SimpleNamespace(returncode=len(asked) - 1)

    monkeypatch.setattr(doctor.subprocess, "run", run)
    good, bad = doctor._compiler(), doctor._compiler()

    assert ("ok", "warn") == (good.state, bad.state)
    assert "clang++" in good.what
    assert "apt install g++ python3-dev" in bad.next
    assert asked[0][0] == "/usr/bin/clang++"


def test_without_a_compiler_cells_show_recordings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor.shutil, "which", lambda name: None)
    row = doctor._compiler()

    assert ("missing", "some cells") == (row.state, row.who)
    assert "recordings" in row.what
