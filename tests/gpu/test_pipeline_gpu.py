"""Overlap and stages on this machine's GPU: pinned copies in a stream of their own hide, others do not."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from edl_labs.pipeline import device_overlap, image_set, image_stages, measure_ladder, write

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]


def test_pinned_copies_in_a_second_stream_hide_and_pageable_ones_do_not() -> None:
    hidden = device_overlap(pin_memory=True, streams=2).fraction
    one_stream = device_overlap(pin_memory=True, streams=1).fraction

    assert hidden > 0.5
    assert one_stream < 0.1


def test_the_ladder_has_pin_and_copy(tmp_path: Path) -> None:
    store = write(image_set(16, size=(120, 160), folder=tmp_path), tmp_path / "s")
    ladder = measure_ladder(image_stages(store, crop=96, device="cuda"), range(16), batch_size=8, budget_s=0.05)

    assert {"pin", "copy"} <= {rung.name for rung in ladder.rungs}
