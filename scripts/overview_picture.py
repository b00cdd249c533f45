"""Draws docs/overview.svg, the picture in README: chunked copies that overlap with kernels on a modelled H200."""

from pathlib import Path

from edl_labs.plots import style
from edl_labs.plots.timeline_picture import draw_timeline
from edl_labs.virtual import VirtualGPU, VirtualMachine

CHUNKS, CHUNK_BYTES = 4, 32 << 20


def timeline():
    """Each chunk is copied in, computed on and copied out on its own stream; the host waits once, at the end."""
    gpu = VirtualGPU(VirtualMachine.of("H200").warm())
    source = gpu.host_empty(CHUNKS * CHUNK_BYTES, pin_memory=True)
    target = gpu.host_empty(CHUNKS * CHUNK_BYTES, pin_memory=True)
    for index in range(CHUNKS):
        chunk = slice(index * CHUNK_BYTES, (index + 1) * CHUNK_BYTES)
        with gpu.stream(gpu.Stream()):
            work = gpu.empty(CHUNK_BYTES)
            gpu.copy(work, source[chunk], non_blocking=True)
            gpu.launch("step", duration_s=0.6e-3, reads=[work], writes=[work])
            gpu.copy(target[chunk], work, non_blocking=True)
    gpu.synchronize()
    return gpu.timeline


figure, axes = style.subplots(figsize=(9, 3))
draw_timeline(axes, timeline())
target = Path(__file__).resolve().parents[1] / "docs" / "overview.svg"
figure.savefig(target, metadata={"Date": None})
