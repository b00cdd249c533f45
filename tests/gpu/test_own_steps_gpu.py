"""Steps of this machine's GPU beside predictions that were made before: the table is printed, the recording kept."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(3600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]


def test_steps_are_measured_beside_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    own = runpy.run_path(str(ROOT / "benchmarks" / "own_steps.py"), run_name="own_steps")
    out = ROOT / "build" / "own_steps" / "steps.json"
    own["main"](["--out", str(out), "--budget", "1"])
    kept = json.loads(out.read_text())
    ran = [one for one in kept["steps"] if not one["why_not"]]

    assert kept["stamp"]["hardware_key"]
    assert len({one["model"] for one in ran}) >= 10, capsys.readouterr().out
    assert all(one["predicted_s"] > 0 < one["measured_s"] for one in ran)
