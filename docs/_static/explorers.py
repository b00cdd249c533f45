"""What the site's explorers ask the library for. It runs in the browser (Pyodide), and in tests: standard library only.

Every function takes plain values and returns plain data, which explore.js draws.
"""

from __future__ import annotations

import contextlib
import io
import traceback
from typing import Any

from edl_labs.roofline import Machine, attainable_flop_per_s
from edl_labs.roofline.work import gemm
from edl_labs.ui.bucket_widget import BucketExplorer
from edl_labs.ui.timeline_widget import TimelineExplorer
from edl_labs.units import byte_count, percent, seconds
from edl_labs.units import flop_rate as rate
from edl_labs.virtual import VirtualGPU, VirtualMachine
from edl_labs.virtual.cluster import ClusterMachine, VirtualCluster
from edl_labs.virtual.timeline import Timeline

MOST_SPANS = 1500  # rectangles that a page draws at once without stutter


def _steps(low: float, high: float, number: int) -> list[float]:
    """Values from `low` to `high` in equal ratios, with three digits."""
    return [float(f"{low * (high / low) ** (i / (number - 1)):.3g}") for i in range(number)]


_SIZES = [1, 4, 16, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384]
# Each explorer's controls: name of the argument, its label, its values, how they read, and which one it opens with.
CONTROLS: dict[str, list[tuple[str, str, list[Any], str, int]]] = {
    "streams": [
        ("chunks", "chunks", [1, 2, 3, 4, 6, 8, 12, 16], "", 3),
        ("count", "streams", [1, 2, 4], "", 2),
    ],
    "timeline": [
        ("chip", "GPU", ["T4", "A100", "H200"], "choice", 1),
        ("launch_s", "launch overhead", _steps(1e-6, 50e-6, 25), "s", 10),
        ("kernel_s", "kernel time", _steps(1e-6, 1e-3, 25), "s", 14),
        ("share", "chunk, share of all bytes", [2.0**-power for power in range(8, -1, -1)], "%", 5),
    ],
    "roofline": [
        ("chip", "GPU", ["T4", "V100", "A100", "H100", "H200", "B200"], "choice", 3),
        ("dtype", "precision", ["fp32", "fp16"], "choice", 1),
        ("m", "m (rows)", _SIZES, "", 2),
        ("n", "n (columns)", _SIZES, "", 9),
        ("k", "k (depth)", _SIZES, "", 9),
    ],
    "buckets": [
        ("ranks", "ranks", [2, 4, 8, 16, 64, 256, 1024], "", 2),
        ("cap_bytes", "bucket", [1e6, 16e6, 32e6, 64e6, 96e6, 192e6], "B", 2),
        ("byte_per_s", "link", [1e9, 6e9, 12e9, 25e9, 50e9, 200e9, 450e9], "B/s", 3),
    ],
    "slow_rank": [
        ("ranks", "ranks", [2, 3, 4, 6, 8], "", 2),
        ("slowdown", "time of the last rank", [1, 1.1, 1.2, 1.3, 1.5, 2], "times", 3),
        ("megabytes", "gradients, MB", [1, 4, 16, 64, 256, 1024], "", 3),
    ],
}


def timeline(*, chip: str, launch_s: float, kernel_s: float, share: float) -> dict[str, Any]:
    """Copy in, compute, copy out, chunk by chunk in one stream (labs 01 and 04's `TimelineExplorer`)."""
    explorer = TimelineExplorer(chip)
    setting = {"launch_s": launch_s, "kernel_s": kernel_s, "chunk_bytes": max(1, round(share * explorer.total_bytes))}
    line = explorer.timeline(**setting)
    return lanes(line, explorer.describe(line, **setting))


def streams(*, chunks: int, count: int) -> dict[str, Any]:
    """128 MB through an H200 in chunks over some streams: what the landing page drags."""
    gpu = VirtualGPU(VirtualMachine.of("H200").warm())
    total = 128 << 20
    source = gpu.host_empty(total, pin_memory=True)
    target = gpu.host_empty(total, pin_memory=True)
    used = [gpu.Stream() for _ in range(count)]
    for index in range(chunks):
        chunk = slice(index * total // chunks, (index + 1) * total // chunks)
        with gpu.stream(used[index % count]):
            work = gpu.empty(chunk.stop - chunk.start)
            gpu.copy(work, source[chunk], non_blocking=True)
            gpu.launch("step", duration_s=2.4e-3 / chunks, reads=[work], writes=[work])
            gpu.copy(target[chunk], work, non_blocking=True)
    gpu.synchronize()
    line = gpu.timeline
    hidden = percent(line.hidden_copy_fraction, digits=2)
    plural = "" if chunks == 1 else "s"
    told = f"{chunks} chunk{plural}: {seconds(line.makespan_s)}, {hidden} of the copying overlaps with kernels"
    return lanes(line, told)


def program(*, text: str) -> dict[str, Any]:
    """Runs a program with a fresh VirtualGPU called `gpu`; what it prints, and its timeline."""
    gpu = VirtualGPU(VirtualMachine.of("H200").warm())
    out = io.StringIO()
    try:
        with contextlib.redirect_stdout(out):
            exec(compile(text, "<your program>", "exec"), {"gpu": gpu, "__name__": "program"})
            gpu.synchronize()
    except BaseException as error:  # a visitor's SystemExit too
        steps = [step for step in traceback.extract_tb(error.__traceback__) if step.filename == "<your program>"]
        line = f" in line {steps[-1].lineno}" if steps else ""
        return {"printed": out.getvalue(), "told": f"{type(error).__name__}{line}: {error}", "rows": [], "spans": []}
    line = gpu.timeline
    return {**lanes(line, f"modelled: {seconds(line.makespan_s)}"), "printed": out.getvalue()}


def roofline(*, chip: str, dtype: str, m: int, n: int, k: int) -> dict[str, Any]:
    """A matrix product of `m` × `k` and `k` × `n` under a chip's roof."""
    machine = Machine.of(chip)
    product = gemm(m, n, k, dtype=dtype)
    intensity = product.intensity_flop_per_byte
    peak, byte_per_s = machine.peak_flop_per_s(dtype), machine.memory.ceiling().rate
    reached = attainable_flop_per_s(machine, intensity, dtype=dtype)
    limit = "memory" if intensity < peak / byte_per_s else "compute"
    told = (
        f"{intensity:.3g} FLOP/B, ridge at {peak / byte_per_s:.3g} FLOP/B: at most {rate(reached)}, "
        f"limited by {limit}, takes at least {seconds(product.total_flops / reached)}"
    )
    return {"told": told, "peak_flop_per_s": peak, "byte_per_s": byte_per_s, "point": [intensity, reached]}


def buckets(*, ranks: int, cap_bytes: float, byte_per_s: float) -> dict[str, Any]:
    """How much of the gradients' sums hides behind a backward pass of twelve layers (lab07's `BucketExplorer`)."""
    explorer = BucketExplorer([(16e6, 2e-3)] * 12, ranks=ranks, byte_per_s=byte_per_s)
    done = explorer.times(ranks, cap_bytes, byte_per_s)
    spans = [[0, "kernel", "backward pass", 0.0, explorer.backward_s]]
    for start_s, end_s in zip(done.start_s, done.end_s, strict=True):
        spans.append([1, "comm", "all-reduce", start_s, end_s])
    told = explorer.describe(ranks, cap_bytes, byte_per_s)
    return drawn(["backward", "sums"], spans, done.finish_s, told)


def slow_rank(*, ranks: int, slowdown: float, megabytes: float) -> dict[str, Any]:
    """Three data parallel steps on a modelled cluster, the last rank slower: everybody waits in the all-reduce."""
    cluster = VirtualCluster(ClusterMachine.of("8xH100").replace(ranks=ranks))

    def program(dist: Any) -> None:
        gradients = dist.tensor(round(megabytes * 250_000), name="gradients")
        factor = slowdown if dist.get_rank() == ranks - 1 else 1.0
        for _ in range(3):
            dist.launch("step", duration_s=1e-3 * factor, reads=[gradients], writes=[gradients])
            dist.all_reduce(gradients)

    line = cluster.run(program).timeline
    rows = [f"rank {rank}" for rank in range(ranks)]
    spans = []
    for span in line.spans:
        if span.waited_s:
            spans.append([span.rank, "wait", "waits for the other ranks", span.start_s - span.waited_s, span.start_s])
        spans.append([span.rank, "comm" if span.kind == "collective" else span.kind, span.name, *_ends(span)])
    busy = sum(line.of(rank).busy_s("kernel") for rank in range(ranks)) / (ranks * line.makespan_s)
    told = f"{ranks} ranks, {byte_count(megabytes * 1e6)} of gradients: {seconds(line.makespan_s)} for three steps, "
    return drawn(rows, spans, line.makespan_s, f"{told}of which GPUs compute {percent(busy)}")


def _ends(span: Any) -> tuple[float, float]:
    return span.start_s, span.end_s


def lanes(line: Timeline, told: str) -> dict[str, Any]:
    """A timeline as rows and spans: [row, kind, name, start_s, end_s]."""
    rows = list(line.rows)
    spans = [[rows.index(one.row), one.kind, one.name, one.start_s, one.end_s] for one in line.spans]
    if len(spans) > MOST_SPANS:
        told = f"{told} (the first {MOST_SPANS} of {len(spans)} spans are drawn)"
    return drawn(rows, spans[:MOST_SPANS], line.makespan_s, told)


def drawn(names: list[str], spans: list[list[Any]], end_s: float, told: str) -> dict[str, Any]:
    """What explore.js draws as lanes: [row, kind, name, start_s, end_s] for each span."""
    return {"rows": names, "spans": spans, "end_s": end_s, "told": told}
