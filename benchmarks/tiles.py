"""How fast kernels are evaluated and recorded, compared with Triton's own interpreter, which records nothing.

It measures the processor time of a product of 256³ in tiles of 64, attention of 512 × 64, and causal attention.
Run with `python benchmarks/tiles.py`; Triton must be installed. Exit status 1 means that a target is missed.
"""

from __future__ import annotations

import importlib.util
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

os.environ["TRITON_INTERPRET"] = "1"  # before Triton is imported

import numpy as np
import torch

from edl_labs.virtual.tiles import evaluate, parse_kernels

TARGET_RATIO, ROUNDS = 5.0, 5
SOURCE = """
@triton.jit
def product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_ptr + rows[:, None] * K + inner[None, :], mask=a_mask, other=0.0)
        b = tl.load(b_ptr + inner[:, None] * N + columns[None, :], mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], acc, mask=c_mask)


@triton.jit
def attention(q_ptr, k_ptr, v_ptr, o_ptr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    end = n
    if CAUSAL:
        end = tl.minimum((tl.program_id(0) + 1) * BM, n)
    for first in range(0, end, BN):
        columns = first + tl.arange(0, BN)
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=columns[:, None] < n, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        seen = columns[None, :] < n
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        scores = tl.where(seen, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        shrink = tl.exp(top - new_top)
        weights = tl.exp(scores - new_top[:, None])
        v = tl.load(v_ptr + kv_at, mask=columns[:, None] < n, other=0.0)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
        top = new_top
    tl.store(o_ptr + rows[:, None] * D + at[None, :], acc / total[:, None], mask=rows[:, None] < n)
"""  # noqa: E501
HEAD = "import triton\nimport triton.language as tl\n\n"


def cases() -> list[tuple[str, str, tuple[int, ...], dict[str, object]]]:
    """Name, kernel, grid and arguments of each benchmark."""
    rng = np.random.default_rng(0)

    def square(rows: int, columns: int) -> np.ndarray:
        return rng.standard_normal((rows, columns)).astype(np.float32)

    a, b, c = square(256, 256), square(256, 256), square(256, 256)
    sizes = {"M": 256, "N": 256, "K": 256, "BM": 64, "BN": 64, "BK": 64}
    blocks = {name: square(512, 64) for name in ("q_ptr", "k_ptr", "v_ptr", "o_ptr")}
    more = {"n": 512, "scale": 0.125, "D": 64, "BM": 64, "BN": 64}
    return [
        ("product of 256³", "product", (4, 4), {"a_ptr": a, "b_ptr": b, "c_ptr": c, **sizes}),
        ("attention of 512 × 64", "attention", (8,), {**blocks, **more, "CAUSAL": False}),
        ("causal attention", "attention", (8,), {**blocks, **more, "CAUSAL": True}),
    ]


def processor_s(call: Callable[[], object]) -> float:
    """Median processor time of a call."""
    call()
    times = []
    for _ in range(ROUNDS):
        start_s = time.process_time()
        call()
        times.append(time.process_time() - start_s)
    return statistics.median(times)


def main() -> int:
    """Print the table."""
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "kernels.py")
        path.write_text(HEAD + SOURCE)
        spec = importlib.util.spec_from_file_location("kernels", path)
        assert spec is not None
        assert spec.loader is not None
        theirs = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(theirs)
        ratios = []
        module = parse_kernels(SOURCE)
        for name, kernel, grid, arguments in cases():
            given = {
                key: torch.from_numpy(one) if isinstance(one, np.ndarray) else one for key, one in arguments.items()
            }
            ours_s = processor_s(lambda k=kernel, g=grid, a=arguments: evaluate(module, k, g, a))
            theirs_s = processor_s(lambda k=kernel, g=grid, a=given: getattr(theirs, k)[g](**a))
            ratios.append(theirs_s / ours_s)
            print(f"{name}: {1e3 * ours_s:.1f} ms, interpreter {1e3 * theirs_s:.0f} ms, ratio {ratios[-1]:.1f}")
    return 0 if min(ratios) >= TARGET_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
