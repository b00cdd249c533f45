"""memory_plan on CUDA: against a measured step, and what it says without a driver against what it says with one."""

from __future__ import annotations

import pytest
import torch

from edl_labs.numerics import memory_plan

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]


def layers() -> torch.nn.Sequential:
    parts = [
        torch.nn.Sequential(torch.nn.Linear(512, 512), torch.nn.LayerNorm(512), torch.nn.GELU(), torch.nn.Dropout(0.1))
        for _ in range(6)
    ]
    return torch.nn.Sequential(*parts)


@pytest.mark.parametrize("batch", [64, 16384])
def test_the_peak_is_the_measured_one_and_needs_no_driver(batch: int, monkeypatch: pytest.MonkeyPatch) -> None:
    model, example = layers(), torch.randn(batch, 512)
    held = memory_plan(model, example, "H200", device="cuda").peak.held_bytes
    with monkeypatch.context() as patched:
        patched.setattr(torch.cuda, "is_available", lambda: False)
        without = memory_plan(model, example, "H200", device="cuda").peak.held_bytes
    before = sum(held[name] for name in ("parameters", "inputs", "optimizer"))

    model, example = model.cuda(), example.cuda()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    for _ in range(2):
        # The first step makes the state, and cuBLAS's workspace, which stays.
        torch.cuda.reset_peak_memory_stats()
        there = torch.cuda.memory_allocated()
        model(example).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    own = torch.cuda.max_memory_allocated() - there

    assert sum(held.values()) - before == pytest.approx(own, rel=0.1)
    assert sum(without.values()) == pytest.approx(sum(held.values()), rel=0.02)
