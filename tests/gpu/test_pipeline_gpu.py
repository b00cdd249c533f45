"""Stages of a loader with this machine's GPU."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from edl_labs.pipeline import image_set, image_stages, measure_ladder, write

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]


def test_the_ladder_has_pin_and_copy(tmp_path: Path) -> None:
    store = write(image_set(16, size=(120, 160), folder=tmp_path), tmp_path / "s")
    ladder = measure_ladder(image_stages(store, crop=96, device="cuda"), range(16), batch_size=8, budget_s=0.05)

    assert {"pin", "copy"} <= {rung.name for rung in ladder.rungs}
