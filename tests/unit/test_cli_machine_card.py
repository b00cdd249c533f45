"""`edl-labs doctor` shows the machine card, and stands without one."""

from __future__ import annotations

import json

import pytest
from typer.testing import CliRunner

from edl_labs.cli import app
from edl_labs.course.run import doctor
from edl_labs.course.run.doctor import Row
from edl_labs.errors import EdlError
from edl_labs.roofline import Machine


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(doctor, "_LOOKS", {"thing": lambda: Row("thing", "ok", "fine")})


def measured(monkeypatch, found):
    def ceilings(**_):
        if isinstance(found, Exception):
            raise found
        return found

    monkeypatch.setattr("edl_labs.roofline._ceilings.ceilings", ceilings)


def test_doctor_shows_ceilings_beside_the_datasheet_and_ridge_points(monkeypatch):
    measured(monkeypatch, Machine.of("H200"))
    result = CliRunner().invoke(app, ["doctor"])

    assert 0 == result.exit_code
    assert all(word in result.output for word in ("NVIDIA H200", "bf16 products", "989 TFLOP/s", "ridge bf16", "206"))


def test_doctor_gives_the_machine_as_json(monkeypatch):
    measured(monkeypatch, Machine.of("H200"))
    result = CliRunner().invoke(app, ["doctor", "--json"])

    assert "H200" == json.loads(result.stdout)["machine"]["hardware_key"]


def test_doctor_can_leave_measuring_out(monkeypatch):
    measured(monkeypatch, AssertionError("measured all the same"))
    result = CliRunner().invoke(app, ["doctor", "--no-machine"])

    assert 0 == result.exit_code
    assert "ready" in result.output


def test_doctor_stands_where_nothing_can_be_measured(monkeypatch):
    measured(monkeypatch, EdlError("no memory", why="w", next="n"))
    result = CliRunner().invoke(app, ["doctor"])

    assert 0 == result.exit_code
    assert "ceilings could not be measured" in result.output + (result.stderr or "")
