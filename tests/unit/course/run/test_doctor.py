"""The doctor tries things, and no broken thing stops it."""

from __future__ import annotations

import json
import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from edl_labs.course.run import doctor
from edl_labs.course.run.doctor import DoctorReport, Row, diagnose


def looks(monkeypatch: pytest.MonkeyPatch, **named: Any) -> DoctorReport:
    monkeypatch.setattr(doctor, "_LOOKS", named)
    return diagnose()


def test_every_finding_is_there_with_a_state_and_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    for slow in ("kernel", "torchvision"):
        monkeypatch.setitem(doctor._LOOKS, slow, lambda slow=slow: Row(slow, "ok", "not tried in this test"))
    seen: list[tuple[int, int, str]] = []

    report = diagnose(progress=lambda *step: seen.append(step))
    assert list(doctor._LOOKS) == [row.name for row in report.rows]
    assert {row.state for row in report.rows} <= {"ok", "warn", "missing"}
    assert all(row.next for row in report.rows if row.state != "ok")
    assert (len(report.rows), len(report.rows), "done") == seen[-1]
    assert report.exit_code == json.loads(json.dumps(report.to_json()))["exit_code"]


def test_a_kernel_is_really_started() -> None:
    row = doctor._kernel()

    assert "ok" == row.state
    assert row.what.startswith("a notebook ran in ")


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
