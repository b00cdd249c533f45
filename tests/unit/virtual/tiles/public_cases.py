"""The kernels of public style, each with a grid and arguments."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.unit.virtual.tiles import public_kernels, public_row_kernels, public_tile_kernels

SOURCE = public_kernels.SOURCE + public_row_kernels.SOURCE + public_tile_kernels.SOURCE
Cases = dict[str, tuple[tuple[int, ...], dict[str, Any]]]
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


def first_cases() -> Cases:
    """Of public_kernels."""
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
        "layer_norm_forward": ((ROWS,), {"X": real(ROWS, COLUMNS), "Y": zeros(ROWS, COLUMNS), "W": real(COLUMNS),
            "B": real(COLUMNS), "Mean": zeros(ROWS), "Rstd": zeros(ROWS), "stride": COLUMNS, "N": COLUMNS, "eps": 1e-5,
            "BLOCK_SIZE": 16}),
        "swiglu": ((ROWS,), {"a_ptr": real(ROWS, COLUMNS), "b_ptr": real(ROWS, COLUMNS), "c_ptr": zeros(ROWS, COLUMNS),
            "stride": COLUMNS, "n_cols": COLUMNS, "BLOCK_SIZE": 64}),
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


def row_cases() -> Cases:
    """Of public_row_kernels."""
    flat = {"n": 300, "BLOCK": 128}
    line = {"stride": COLUMNS, "n": COLUMNS, "BLOCK": 64}
    long = {"stride": COLUMNS, "n": COLUMNS, "BLOCK": 16}
    share = np.abs(real(ROWS, COLUMNS)) / 40
    share[:, ::7] = 0
    x, y = real(ROWS, COLUMNS), zeros(ROWS, COLUMNS)
    return {
        "gelu_tanh": ((3,), {"x_ptr": real(300), "y_ptr": zeros(300), **flat}),
        "gelu_erf": ((3,), {"x_ptr": real(300), "y_ptr": zeros(300), **flat}),
        "adam_step": ((3,), {"w_ptr": real(300), "g_ptr": real(300), "m_ptr": real(300), "v_ptr": np.abs(real(300)),
            "lr": 0.01, "beta1": 0.9, "beta2": 0.999, "eps": 1e-8, **flat}),
        "lion_step": ((3,), {"w_ptr": real(300), "g_ptr": real(300), "m_ptr": real(300), "lr": 0.01, "wd": 0.1,
            "beta1": 0.9, "beta2": 0.99, **flat}),
        "huber_loss": ((3,), {"x_ptr": real(300), "y_ptr": real(300), "loss_ptr": zeros(3), "delta": 0.7, **flat}),
        "log_softmax": ((ROWS,), {"x_ptr": x, "y_ptr": y, **line}),
        "online_softmax": ((ROWS,), {"x_ptr": x, "y_ptr": y, **long}),
        "softmax_backward": ((ROWS,), {"y_ptr": share, "dy_ptr": x, "dx_ptr": y, **line}),
        "layer_norm_backward": ((ROWS,), {"x_ptr": x, "w_ptr": real(COLUMNS), "mean_ptr": real(ROWS),
            "rstd_ptr": np.abs(real(ROWS)), "dy_ptr": real(ROWS, COLUMNS), "dx_ptr": y, "dw_ptr": zeros(COLUMNS),
            "db_ptr": zeros(COLUMNS), **line}),
        "group_norm": ((4,), {"x_ptr": real(4, 3, 20), "y_ptr": zeros(4, 3, 20), "channels": 3, "size": 20, "eps": 1e-5,
            "BLOCK_C": 4, "BLOCK_S": 32}),
        "quantize_rows": ((ROWS,), {"x_ptr": x, "q_ptr": zeros(ROWS, COLUMNS, kind=np.int8), "scale_ptr": zeros(ROWS),
            **line}),
        "pack_signs": ((ROWS,), {"x_ptr": real(ROWS, 4 * 32), "packed_ptr": zeros(ROWS, 4, kind=np.int32), "BLOCK": 4}),
        "row_argmax": ((ROWS,), {"x_ptr": x, "at_ptr": zeros(ROWS, kind=np.int32), "largest_ptr": zeros(ROWS), **line}),
        "prefix_sums": ((ROWS,), {"x_ptr": x, "y_ptr": y, "n": COLUMNS, "BLOCK": 16}),
        "kl_divergence": ((ROWS,), {"p_ptr": share, "log_q_ptr": x, "loss_ptr": zeros(ROWS), **long}),
        "cosine_similarity": ((ROWS,), {"a_ptr": x, "b_ptr": real(ROWS, COLUMNS), "y_ptr": zeros(ROWS), **long}),
    }  # fmt: skip


def tile_cases() -> Cases:
    """Of public_tile_kernels."""
    size = {"M": 40, "N": 24, "K": 50, "BM": 16, "BN": 16, "BK": 16}
    head = {"n": 40, "scale": 0.25, "D": 16, "BM": 16, "BN": 16}
    half = np.float16
    back = {"q_ptr": real(40, 16), "k_ptr": real(40, 16), "v_ptr": real(40, 16), "do_ptr": real(40, 16),
        "lse_ptr": real(40) + 8, "delta_ptr": real(40)}  # fmt: skip
    pages = _RNG.permutation(12).astype(np.int32).reshape(3, 4)
    return {
        "batched_product": ((3, 2, 2), {"a_ptr": real(2, 40, 50, kind=half), "b_ptr": real(2, 50, 24, kind=half),
            "c_ptr": zeros(2, 40, 24, kind=half), **size}),
        "split_k_product": ((3, 2, 2), {"a_ptr": real(40, 50), "b_ptr": real(50, 24), "c_ptr": zeros(40, 24), **size,
            "SPLIT": 2}),
        "matrix_vector": ((3,), {"a_ptr": real(40, 50, kind=half), "x_ptr": real(50, kind=half),
            "y_ptr": zeros(40, kind=half), "M": 40, "N": 50, "BM": 16, "BN": 32}),
        "integer_product": ((3, 2), {"a_ptr": whole(256, 40, 50, kind=np.int16).astype(np.int8),
            "b_ptr": whole(256, 50, 24, kind=np.int16).astype(np.int8), "scale_ptr": real(24), "c_ptr": zeros(40, 24),
            **size, "BK": 32}),
        "attention_delta": ((3,), {"o_ptr": real(40, 16), "do_ptr": real(40, 16), "delta_ptr": zeros(40), "n": 40,
            "D": 16, "BM": 16}),
        "flash_backward_dk": ((3,), {**back, "dk_ptr": zeros(40, 16), **head}),
        "flash_backward_dq": ((3,), {**back, "dq_ptr": zeros(40, 16), **head}),
        "paged_decode": ((3,), {"q_ptr": real(3, 16), "k_ptr": real(12, 8, 16), "v_ptr": real(12, 8, 16),
            "table_ptr": pages, "length_ptr": np.array([5, 32, 17], np.int32), "o_ptr": zeros(3, 16), "pages": 4,
            "scale": 0.25, "PAGE": 8, "D": 16}),
        "embedding": ((9,), {"ids_ptr": whole(20, 9), "table_ptr": real(20, 32), "out_ptr": zeros(9, 30), "stride": 32,
            "n": 30, "D": 32}),
        "embedding_backward": ((9,), {"ids_ptr": whole(4, 9), "dy_ptr": whole(9, 9, 30, kind=np.float32),
            "dtable_ptr": zeros(20, 32), "stride": 32, "n": 30, "D": 32}),
        "segment_max": ((3,), {"x_ptr": whole(90, 300), "segment_ptr": whole(7, 300), "y_ptr": zeros(7, kind=np.int32),
            "n": 300, "BLOCK": 128}),
        "causal_conv1d": ((5, 2), {"x_ptr": real(5, 50), "w_ptr": real(5, 4), "y_ptr": zeros(5, 50), "n": 50,
            "WIDTH": 4, "BLOCK": 32}),
        "selective_scan": ((5,), {"x_ptr": real(5, 20), "a_ptr": np.abs(real(20, 16)), "b_ptr": real(20, 16),
            "y_ptr": zeros(5, 20), "n": 20, "D": 16}),
        "average_pool": ((4,), {"x_ptr": real(4, 12, 10), "y_ptr": zeros(4, 6, 5), "H": 12, "W": 10, "BH": 8, "BW": 8}),
        "column_totals": ((2,), {"x_ptr": real(40, 24), "y_ptr": zeros(24), "M": 40, "N": 24, "BM": 16, "BN": 16}),
        "add_bias_residual": ((ROWS,), {"x_ptr": real(ROWS, COLUMNS), "bias_ptr": real(COLUMNS),
            "residual_ptr": real(ROWS, COLUMNS), "y_ptr": zeros(ROWS, COLUMNS), "N": COLUMNS, "BN": 16}),
    }  # fmt: skip


def cases() -> Cases:
    """Grid and arguments of each kernel."""
    return {**first_cases(), **row_cases(), **tile_cases()}


def copied(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments whose arrays can be changed."""
    return {name: one.copy() if isinstance(one, np.ndarray) else one for name, one in arguments.items()}
