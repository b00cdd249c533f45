"""Host code as evidence: it allocates and launches on tensors without values, and nothing else is recorded."""

from __future__ import annotations

import json

import pytest
import torch

from edl_labs.exercises.lab11_tiles.host_programs import HostError, host_evidence, meta_tensor
from edl_labs.virtual.tiles import jit, tl


@jit
def copy_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):  # noqa: N803  (Triton's way to write constants)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def copy(x):
    y = torch.empty_like(x)
    copy_kernel[lambda meta: (x.numel() // meta["BLOCK"],)](x, y, x.numel(), BLOCK=16)
    return y


def of(function, *more):
    return host_evidence(function, {"x": meta_tensor((4, 8), "float32", (10, 1))}, more)


def test_launches_name_tensors_and_carry_numbers():
    found = of(copy)
    program = json.loads(found["program"])

    assert [{"tensor": "x"}, {"tensor": "buffer 0"}, 32] == program["launches"][0]["arguments"]
    assert ("copy_kernel", [2], {"BLOCK": 16}) == tuple(
        program["launches"][0][key] for key in ("kernel", "grid", "named")
    )
    assert [{"name": "buffer 0", "elements": 32, "dtype": "float32", "zeros": False}] == program["allocated"]
    assert "buffer 0" == program["returned"]
    assert "def copy_kernel" in found["source"][0]
    assert found["ran"] == found["source"]


def test_a_view_of_a_tensor_is_that_tensor():
    program = json.loads(of(lambda x: copy(x.t()))["program"])

    assert {"tensor": "x"} == program["launches"][0]["arguments"][0]


@pytest.mark.parametrize(
    "compute",
    [
        lambda x: x + 1,
        lambda x: torch.relu(x),
        lambda x: x.sum().item(),
        lambda x: x.contiguous(),
        lambda x: torch.ones(3),
        lambda x: torch.full((3,), 2.0),
        lambda x: torch.tensor([1.0]),
        lambda x: bool(x.max() > 0),
    ],
    ids=["plus", "relu", "item", "contiguous", "ones", "full", "tensor", "branch"],
)
def test_host_code_that_computes_is_refused(compute):
    with pytest.raises(HostError, match="host function calls torch"):
        of(compute)


def test_a_tensor_from_elsewhere_cannot_be_returned_or_passed():
    elsewhere = torch.zeros(32)

    with pytest.raises(HostError, match="not one of the tensors of this call"):
        of(lambda x: elsewhere)
    with pytest.raises(HostError, match="not one of the tensors of this call"):
        of(lambda x: copy_kernel[(2,)](elsewhere, x, 32, BLOCK=16))
    with pytest.raises(HostError, match="is a list"):
        of(lambda x: [1.0])


def test_part_of_a_tensor_is_no_argument_and_launches_have_a_limit():
    with pytest.raises(HostError, match=r"calls torch's `(slice|select)`|slice that begins inside x"):
        of(lambda x: copy(x[1:]))
    with pytest.raises(HostError, match="more than 100 kernels"):
        of(lambda x: [copy(x) for _ in range(101)])
