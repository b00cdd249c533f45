"""Cells around the exercises: what they measure, and whether the text beside a plot says what the plot shows."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

import edl_labs.pipeline as pipeline
from edl_labs.pipeline import CacheState
from tests.labs.conftest import cells_of

CELLS = cells_of(__file__)


def cell_with(words: str) -> str:
    """The source of the only plain code cell that holds `words`."""
    (found,) = [cell.source for cell in CELLS if cell.kind == "code" and not cell.role and words in cell.source]
    return found


class Recorded:
    """A store that notes what is read of it."""

    paths, nbytes = (), 1

    def __init__(self, done):
        self.done = done

    def __len__(self):
        return 3

    def read(self, index):
        self.done.append("read")

    def read_many(self, order):
        self.done.append("measured")


def test_the_first_cold_reading_pays_for_no_import_and_no_index(solution, monkeypatch, capsys):
    done = []
    for name in ("make_cold", "make_warm"):
        monkeypatch.setattr(pipeline, name, lambda paths, name=name: done.append(name) or CacheState(1, 0))
    monkeypatch.setattr(pipeline, "write", lambda *what, **how: Recorded(done))
    names = dict(solution)
    exec(cell_with("import image_set, make_cold, make_warm, write"), names)
    exec(cell_with("for prepare in (make_cold, make_warm)"), names)

    assert ["read", "make_cold", "measured", "make_cold", "measured"] == done[:5]


@pytest.mark.parametrize("known", [True, False])
def test_a_plan_is_measured_after_the_requested_order_and_says_the_state(solution, capsys, known):
    def make_cold(path):
        return CacheState(10, 10, known=known)

    with tempfile.TemporaryDirectory() as folder:
        names = {**solution, "scratch": type("Scratch", (), {"name": folder}), "make_cold": make_cold}
        names["reading_s"] = type(solution["reading_s"])(solution["reading_s"].__code__, names)
        exec(cell_with("def scattered_parts"), names)
        exec(cell_with("reads in the requested order take"), names)
        exec(cell_with("reads of your plan take"), names)
        size = (Path(folder) / "parts.bin").stat().st_size
    said = capsys.readouterr().out

    assert 2048 * 16384 == size
    assert 2 == said.count("page cache: warm, 100 %" if known else "page cache: unknown on this system")
    assert "1024 reads in the requested order take" in said
    assert len(names["plan"]) < 1024


def test_the_simulated_loop_levels_off_at_190_of_200(solution):
    machine = {"cores": 8, "cpu_s": 40e-3, "wait_s": 10e-3, "disk_s": 1e-3, "step_s": 4e-3, "step_threads": 0}
    few, enough, many = (solution["simulated_rate"](workers, machine) for workers in (10, 14, 24))

    assert 200 == solution["predict_workers"](24, machine)[0]
    assert few < 170
    assert 187 < min(enough, many) <= max(enough, many) < 193
