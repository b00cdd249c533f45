"""The benchmark of one's own GPU, on a small model and the CPU: what is said before is written before."""

from __future__ import annotations

import json
import runpy
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]


class Broken(torch.nn.Module):
    """It is predicted, and does not run."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if x.device.type != "meta":
            raise RuntimeError("no kernel for this")
        return x * torch.ones_like(x)


@pytest.fixture(scope="module")
def own() -> dict[str, Any]:
    return runpy.run_path(str(ROOT / "benchmarks" / "own_steps.py"), run_name="own_steps")


def small() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 8))


def rows() -> torch.Tensor:
    return torch.randn(16, 64)


@pytest.mark.slow  # it compiles
def test_predictions_are_written_before_anything_is_measured(own: dict[str, Any], tmp_path: Path) -> None:
    seen, out = [], tmp_path / "new" / "steps.json"

    def example() -> torch.Tensor:
        if out.exists():  # asked for a measurement
            seen.append(json.loads(out.read_text())["steps"][0])
        return rows()

    steps = own["own_steps"]([("small", small, example)], "A100-80GB", out, device="cpu", budget_s=0.05)
    kept = json.loads(out.read_text())

    assert seen[0]["predicted_s"] > 0 == seen[0]["measured_s"]
    assert [False, True] == [one.compiled for one in steps]
    assert steps[0].measured_s > 0
    assert ("A100-80GB", "cpu") == (kept["machine"], kept["stamp"]["kind"])
    assert kept["steps"][0]["measured_s"] == steps[0].measured_s
    assert "| small | eager |" in own["table"](steps)


def test_what_does_not_run_says_why_and_is_in_no_median(own: dict[str, Any], tmp_path: Path) -> None:
    out = tmp_path / "steps.json"
    made = lambda: torch.nn.Sequential(small(), Broken())  # noqa: E731
    steps = own["own_steps"]([("broken", made, rows)], "A100-80GB", out, device="cpu", budget_s=0.05)

    assert "no kernel for this" in steps[0].why_not
    assert "median" not in own["table"](steps)


@pytest.mark.skipif(torch.cuda.is_available(), reason="with CUDA it measures for minutes")
def test_without_cuda_it_says_so(own: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    assert 3 == own["main"]([])
    assert "needs a CUDA device, but this machine has none" in capsys.readouterr().err


def test_there_are_ten_models_or_more(own: dict[str, Any]) -> None:
    assert len(own["workloads"]()) >= 10
