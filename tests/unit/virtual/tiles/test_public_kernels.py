"""Kernels in the style of published ones give what Triton's interpreter gives."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest

from edl_labs.virtual.tiles import evaluate, parse_kernels
from tests.unit.virtual.tiles.interpreter_oracle import interpreted
from tests.unit.virtual.tiles.public_kernels import SOURCE

ROWS, COLUMNS = 6, 50
_RNG = np.random.default_rng(5)


def real(*shape: int, kind: Any = np.float32) -> Any:
    """Real values."""
    return _RNG.standard_normal(shape).astype(kind)


def whole(high: int, *shape: int, kind: Any = np.int32) -> Any:
    """Integers below `high`."""
    return _RNG.integers(0, high, shape).astype(kind)


def zeros(*shape: int, kind: Any = np.float32) -> Any:
    """An output."""
    return np.zeros(shape, kind)


def cases() -> dict[str, tuple[tuple[int, ...], dict[str, Any]]]:
    """Grid and arguments of each kernel."""
    flat = {"n_elements": 300, "BLOCK_SIZE": 128}
    line = {"stride": COLUMNS, "n": COLUMNS, "BLOCK": 64}
    head = {"n": 40, "scale": 0.25, "D": 16, "BM": 16, "BN": 16}
    labels = np.array([3, 7, -100, 0, 49, 20], np.int32)
    strides = {"stride_am": 20, "stride_ak": 1, "stride_bk": 24, "stride_bn": 1, "stride_cm": 24, "stride_cn": 1}
    tiles = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": 16, "GROUP_SIZE_M": 2}
    return {
        "vector_add": ((3,), {"x_ptr": real(300), "y_ptr": real(300), "output_ptr": zeros(300), **flat}),
        "fused_softmax": ((4,), {"output_ptr": zeros(ROWS, COLUMNS), "input_ptr": real(ROWS, COLUMNS),
            "input_row_stride": COLUMNS, "output_row_stride": COLUMNS, "n_rows": ROWS, "n_cols": COLUMNS,
            "BLOCK_SIZE": 64, "num_stages": 2}),
        "rms_norm": ((ROWS,), {"x_ptr": real(ROWS, COLUMNS), "w_ptr": real(COLUMNS), "y_ptr": zeros(ROWS, COLUMNS),
            "eps": 1e-5, **line}),
        "matmul_grouped": ((6,), {"a_ptr": real(40, 20, kind=np.float16), "b_ptr": real(20, 24, kind=np.float16),
            "c_ptr": zeros(40, 24, kind=np.float16), "M": 40, "N": 24, "K": 20, **strides, **tiles,
            "ACTIVATION": "leaky_relu"}),
        "dropout": ((3,), {"x_ptr": real(300), "keep_ptr": whole(2, 300), "output_ptr": zeros(300), "p": 0.5, **flat}),
        "cross_entropy": ((ROWS,), {"logits_ptr": real(ROWS, COLUMNS), "labels_ptr": labels, "loss_ptr": zeros(ROWS),
            **line}),
        "rotary": ((ROWS,), {"x_ptr": real(ROWS, 32), "cos_ptr": real(ROWS, 16), "sin_ptr": real(ROWS, 16),
            "y_ptr": zeros(ROWS, 32), "stride": 32, "HALF": 16}),
        "segmented_sum": ((3,), {"x_ptr": whole(9, 300, kind=np.float32), "segment_ptr": whole(7, 300),
            "y_ptr": zeros(7), "n": 300, "BLOCK": 128}),
        "transpose": ((2, 4), {"x_ptr": real(20, 50), "y_ptr": zeros(50, 20), "M": 20, "N": 50, "BM": 16, "BN": 16}),
        "histogram": ((3,), {"x_ptr": whole(16, 300), "y_ptr": zeros(16, kind=np.int32), "n": 300, "BINS": 16,
            "BLOCK": 128}),
        "dequantize_int4": ((2,), {"packed_ptr": whole(256, 100, kind=np.uint8), "scale_ptr": real(8),
            "y_ptr": zeros(200), "n": 100, "GROUP": 32, "BLOCK": 64}),
        "flash_forward": ((3,), {"q_ptr": real(40, 16), "k_ptr": real(40, 16), "v_ptr": real(40, 16),
            "o_ptr": zeros(40, 16), "lse_ptr": zeros(40), **head, "CAUSAL": True}),
        "flash_backward_dv": ((3,), {"q_ptr": real(40, 16), "k_ptr": real(40, 16), "do_ptr": real(40, 16),
            "lse_ptr": real(40) + 8, "dv_ptr": zeros(40, 16), **head}),
    }  # fmt: skip


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    return {name: one.copy() if isinstance(one, np.ndarray) else one for name, one in arguments.items()}


@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="Triton has wheels for Linux alone")
def test_values_are_those_of_the_interpreter() -> None:
    drawn = cases()
    sources = {name: SOURCE.replace(f"def {name}(", "def kernel(") for name in drawn}
    theirs = interpreted([(sources[name], grid, copied(one)) for name, (grid, one) in drawn.items()])
    wrong = {}
    for (name, (grid, one)), expected in zip(drawn.items(), theirs, strict=True):
        arguments = copied(one)
        record = evaluate(parse_kernels(SOURCE), name, grid, arguments)
        if isinstance(expected, str) or record.races:
            wrong[name] = expected if isinstance(expected, str) else record.races
            continue
        arrays = {key: value for key, value in arguments.items() if isinstance(value, np.ndarray)}
        close = [np.allclose(expected[key], value, rtol=3e-3, atol=2e-6) for key, value in arrays.items()]
        if not all(close):
            wrong[name] = [key for key, same in zip(arrays, close, strict=True) if not same]

    assert {} == wrong
