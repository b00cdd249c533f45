"""The rules of `which_sdpa` are what PyTorch does on this machine's CPU, for every drawn call."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from edl_labs.checks.lab_exercises import load_lab
from tests.labs.lab11.test_without_triton import LAB

EXERCISE = next(one for one in load_lab(LAB.name) if one.name == "which_sdpa")


def tensor(shape: list[int], call: dict[str, Any]) -> torch.Tensor:
    """Ones in a storage whose last stride is the call's."""
    step = call["last_stride"]
    whole = torch.ones((*shape[:-1], shape[-1] * step), dtype=getattr(torch, call["dtype"]))
    return whole[..., ::step].requires_grad_(call["requires_grad"])


def runs(call: dict[str, Any], *, backend: Any) -> bool:
    """Whether PyTorch runs a call when it may use one backend alone."""
    q, k, v = (tensor(call[name], call) for name in ("query", "key", "value"))
    mask = None
    if call["mask"] is not None:
        mask = torch.zeros(call["mask"], dtype=q.dtype, requires_grad=call["mask_requires_grad"])
    more = {"attn_mask": mask, "dropout_p": call["dropout_p"], "is_causal": call["is_causal"]}
    try:
        with sdpa_kernel(backend), warnings.catch_warnings(action="ignore"):
            torch.nn.functional.scaled_dot_product_attention(q, k, v, **more)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
def test_the_solution_says_what_pytorch_does(seed: int) -> None:
    names: dict[str, Any] = {}
    exec(next(cell.source for cell in LAB.cells if cell.label == "solve which_sdpa"), names)
    calls = [case["call"] for case in EXERCISE.draw_cases(seed)]

    answers = [names["which_sdpa"](call) for call in calls]
    assert answers == ["flash" if runs(call, backend=SDPBackend.FLASH_ATTENTION) else "math" for call in calls]
    assert len(calls) / 2 == answers.count("flash")
    assert all(runs(call, backend=SDPBackend.MATH) for call in calls)
