"""Kernels of public style on this machine's GPU: Triton's values are the evaluator's; measured beside modelled time."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest
import torch

from edl_labs.bench import measure
from edl_labs.device import describe
from edl_labs.hardware import accelerator
from edl_labs.virtual.tiles import launch
from tests.unit.virtual.tiles.public_cases import SOURCE, cases, copied

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]
CASES = cases()


@pytest.fixture(scope="module")
def kernels(tmp_path_factory):
    """The public kernels, written to a file with our import line."""
    path = tmp_path_factory.mktemp("tiles") / "public_tile_kernels.py"
    path.write_text("from edl_labs.virtual.tiles import jit, tl\n" + SOURCE.replace("@triton.jit", "@jit"))
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def on_device(arguments):
    """Arrays as CUDA tensors, the rest as it is."""
    return {
        name: torch.from_numpy(value).cuda() if isinstance(value, np.ndarray) else value
        for name, value in copied(arguments).items()
    }


@pytest.mark.parametrize("name", CASES)
def test_triton_gives_what_the_evaluator_gives(kernels, name):
    grid, arguments = CASES[name]
    kernel = getattr(kernels, name)
    ours, theirs = copied(arguments), on_device(arguments)
    launch(kernel, grid, **ours)
    launch(kernel, grid, on="cuda", **theirs)
    torch.cuda.synchronize()

    for key, value in ours.items():
        if isinstance(value, np.ndarray):
            np.testing.assert_allclose(theirs[key].cpu().numpy(), value, rtol=1e-2, atol=5e-3, err_msg=key)


def test_a_large_copy_takes_what_its_bytes_take(kernels):
    """The model's time is bytes over bandwidth, so it is a lower bound; a plain kernel comes within a half of it."""
    chip = accelerator(describe().hardware_key or "H200")
    n, block = 1 << 26, 1024
    x = torch.randn(n, device="cuda")
    y, out = torch.randn(n, device="cuda"), torch.empty(n, device="cuda")
    add = kernels.vector_add
    taken = measure(lambda: launch(add, (n // block,), x, y, out, n, on="cuda", BLOCK_SIZE=block))
    modelled_s = 3 * 4 * n / chip.memory_bandwidth_byte_per_s
    print(f"vector_add of {n} floats: measured {taken.median_s:.3e} s, modelled {modelled_s:.3e} s")

    assert modelled_s <= 1.02 * taken.median_s
    assert taken.median_s <= 2 * modelled_s
