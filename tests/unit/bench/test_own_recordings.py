"""Recordings that students bring home: written by a real machine, shown with its device, preferred where they fit."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from edl_labs.bench import measured_here, own_recordings
from edl_labs.cli import app
from edl_labs.device import describe
from edl_labs.hardware import recordings


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder that a notebook runs in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_what_this_machine_measures_is_shown_with_its_name(here: Path) -> None:
    paths = own_recordings.record_mine(here / recordings.MINE, device="cpu", scale=0.02)
    name = describe("cpu").device_name

    assert [f"{experiment}.json" for experiment in own_recordings.EXPERIMENTS] == [path.name for path in paths]
    for experiment in own_recordings.EXPERIMENTS:
        found = recordings.find(experiment)

        assert f"measured by you on {name}" == found.title
        assert not found.modelled
        assert all(value > 0 for series in found.series for value in series.values)
        assert f"measured here ({name}):" in measured_here(experiment)


def test_a_row_is_shown_for_each_point_in_its_unit(here: Path) -> None:
    own_recordings.record_mine(here / recordings.MINE, device="cpu", scale=0.02)
    lines = measured_here("layer_by_batch").splitlines()

    assert 6 == len(lines)
    assert "batch 1:" in lines[1]
    assert "FLOP/s" in lines[1]


def test_without_a_recording_of_ones_own_it_is_said_how_to_get_one(here: Path) -> None:
    assert "edl-labs record --mine" in measured_here("roofs")
    assert "measured by you" not in recordings.find("async_launch").title


def test_a_file_that_is_no_recording_is_as_none(here: Path) -> None:
    (here / recordings.MINE).mkdir()
    (here / recordings.MINE / "async_launch.json").write_text('{"name": "async_launch"}')

    assert recordings.mine("async_launch") is None
    assert "measured by you" not in recordings.find("async_launch").title


def test_the_command_writes_into_the_folder_that_notebooks_read(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_recordings, "EXPERIMENTS", {"roofs": lambda *_: own_recordings._roofs(*_[:2], 0.02)})
    done = CliRunner().invoke(app, ["record", "--mine", "--device", "cpu"])

    assert 0 == done.exit_code
    assert "roofs.json" in done.output
    assert recordings.mine("roofs") is not None
