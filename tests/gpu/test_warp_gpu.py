"""VirtualWarp's sectors against a GPU: the profiler's counters where they may be read, and time where they may not.

Kernels are compiled by NVRTC through torch, so that no compiler is needed. Counters are those of Nsight Compute (ncu).
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from edl_labs.virtual.warp import VirtualWarp

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device; torch sees none here"),
]
ELEMENTS = 4096
WARPS = 8
_SOURCE = """
extern "C" __global__ void touch(const float* src, float* dst, int stride, int offset) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    dst[i] = src[(stride * i + offset) % 4096];
}
"""
_SCRIPT = f"""
import sys
import torch
kernel = torch.cuda._compile_kernel('''{_SOURCE}''', "touch")
src, dst = torch.zeros({ELEMENTS}, device="cuda"), torch.zeros({32 * WARPS}, device="cuda")
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStart()
kernel(grid=({WARPS}, 1, 1), block=(32, 1, 1), args=[src, dst, int(sys.argv[1]), int(sys.argv[2])])
torch.cuda.synchronize()
torch.cuda.cudart().cudaProfilerStop()
"""


def modelled_sectors(stride: int, offset: int) -> int:
    """The sectors that VirtualWarp counts for the loads of the same kernel."""

    def touch(cuda, src, dst):
        i = cuda.grid(1)
        dst[i] = src[(stride * i + offset) % ELEMENTS]

    gpu = VirtualWarp()
    gpu.launch(touch, gpu.array("src", ELEMENTS), gpu.array("dst", 32 * WARPS), grid=WARPS, block=32)
    (loads,) = (one for one in gpu.replay().accesses if one.op == "load")
    return loads.sectors


@pytest.mark.skipif(not hasattr(torch.cuda, "_compile_kernel"), reason="this torch does not compile kernels (2.8 does)")
@pytest.mark.parametrize(("stride", "offset"), [(1, 0), (1, 1), (1, 8), (2, 0), (8, 0), (32, 0), (0, 3)])
def test_sectors_are_those_of_the_profilers_counters(stride, offset, tmp_path):
    ncu = shutil.which("ncu")
    if ncu is None:
        pytest.skip("Nsight Compute (ncu) is not installed: no sector counters")
    script = Path(tmp_path, "touch.py")
    script.write_text(_SCRIPT)
    metric = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
    command = [ncu, "--profile-from-start", "off", "--csv", "--print-units", "base", "--metrics", metric]
    run = subprocess.run(
        [*command, sys.executable, str(script), str(stride), str(offset)], capture_output=True, text=True, timeout=300
    )
    if "ERR_NVGPUCTRPERM" in run.stdout + run.stderr:
        pytest.skip("this user may not read performance counters (ERR_NVGPUCTRPERM)")
    rows = [line for line in run.stdout.splitlines() if metric in line]
    measured = sum(int(line.rstrip('"').rpartition('"')[2].replace(",", "")) for line in rows)

    assert modelled_sectors(stride, offset) == measured


def test_scattered_reads_take_as_much_longer_as_their_sectors_say():
    """With torch alone: a copy of each eighth element, far larger than the L2, against one of neighbours."""
    wide = torch.zeros(1 << 28, device="cuda")
    out = torch.zeros(1 << 25, device="cuda")
    took = {}
    for name, source in (("scattered", wide[::8]), ("neighbours", wide[: 1 << 25])):
        times = []
        for _ in range(12):
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            out.copy_(source)
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
        took[name] = sorted(times)[3]
    sectors = (modelled_sectors(8, 0) + 4 * WARPS) / (modelled_sectors(1, 0) + 4 * WARPS)

    assert 4.5 == sectors
    # Row buffers and prefetching of DRAM leave some room to both sides.
    assert 0.6 * sectors < took["scattered"] / took["neighbours"] < 1.6 * sectors
