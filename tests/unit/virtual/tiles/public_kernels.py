# ruff: noqa: E501 (the lines are those of published kernels)
"""Kernels in the style of published ones. Each runs unchanged apart from its import line."""

from __future__ import annotations

SOURCE = """
@triton.jit
def vector_add(x_ptr, y_ptr, output_ptr, n_elements, BLOCK_SIZE: tl.constexpr):
    pid = tl.program_id(axis=0)
    block_start = pid * BLOCK_SIZE
    offsets = block_start + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    output = x + y
    tl.store(output_ptr + offsets, output, mask=mask)


@triton.jit
def fused_softmax(output_ptr, input_ptr, input_row_stride, output_row_stride, n_rows, n_cols, BLOCK_SIZE: tl.constexpr, num_stages: tl.constexpr):
    row_start = tl.program_id(0)
    row_step = tl.num_programs(0)
    for row_idx in tl.range(row_start, n_rows, row_step, num_stages=num_stages):
        row_start_ptr = input_ptr + row_idx * input_row_stride
        col_offsets = tl.arange(0, BLOCK_SIZE)
        input_ptrs = row_start_ptr + col_offsets
        mask = col_offsets < n_cols
        row = tl.load(input_ptrs, mask=mask, other=-float('inf'))
        row_minus_max = row - tl.max(row, axis=0)
        numerator = tl.exp(row_minus_max)
        denominator = tl.sum(numerator, axis=0)
        softmax_output = numerator / denominator
        output_row_start_ptr = output_ptr + row_idx * output_row_stride
        output_ptrs = output_row_start_ptr + col_offsets
        tl.store(output_ptrs, softmax_output, mask=mask)


@triton.jit
def layer_norm_forward(X, Y, W, B, Mean, Rstd, stride, N, eps, BLOCK_SIZE: tl.constexpr):
    row = tl.program_id(0)
    Y += row * stride
    X += row * stride
    mean = 0
    _mean = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        a = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        _mean += a
    mean = tl.sum(_mean, axis=0) / N
    _var = tl.zeros([BLOCK_SIZE], dtype=tl.float32)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        x = tl.load(X + cols, mask=cols < N, other=0.).to(tl.float32)
        x = tl.where(cols < N, x - mean, 0.)
        _var += x * x
    var = tl.sum(_var, axis=0) / N
    rstd = 1 / tl.sqrt(var + eps)
    tl.store(Mean + row, mean)
    tl.store(Rstd + row, rstd)
    for off in range(0, N, BLOCK_SIZE):
        cols = off + tl.arange(0, BLOCK_SIZE)
        mask = cols < N
        w = tl.load(W + cols, mask=mask)
        b = tl.load(B + cols, mask=mask)
        x = tl.load(X + cols, mask=mask, other=0.).to(tl.float32)
        x_hat = (x - mean) * rstd
        y = x_hat * w + b
        tl.store(Y + cols, y, mask=mask)


@triton.jit
def rms_norm(x_ptr, w_ptr, y_ptr, stride, n, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + row * stride + at, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, 0) / n + eps)
    tl.store(y_ptr + row * stride + at, x * scale * tl.load(w_ptr + at, mask=mask, other=0.0), mask=mask)


@triton.jit
def leaky_relu(x):
    return tl.where(x >= 0, x, 0.01 * x)


@triton.jit
def matmul_grouped(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
                   BLOCK_SIZE_M: tl.constexpr, BLOCK_SIZE_N: tl.constexpr, BLOCK_SIZE_K: tl.constexpr,
                   GROUP_SIZE_M: tl.constexpr, ACTIVATION: tl.constexpr):
    pid = tl.program_id(axis=0)
    num_pid_m = tl.cdiv(M, BLOCK_SIZE_M)
    num_pid_n = tl.cdiv(N, BLOCK_SIZE_N)
    num_pid_in_group = GROUP_SIZE_M * num_pid_n
    group_id = pid // num_pid_in_group
    first_pid_m = group_id * GROUP_SIZE_M
    group_size_m = min(num_pid_m - first_pid_m, GROUP_SIZE_M)
    pid_m = first_pid_m + ((pid % num_pid_in_group) % group_size_m)
    pid_n = (pid % num_pid_in_group) // group_size_m
    tl.assume(pid_m >= 0)
    offs_am = (pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)) % M
    offs_bn = (pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)) % N
    offs_k = tl.arange(0, BLOCK_SIZE_K)
    a_ptrs = a_ptr + (offs_am[:, None] * stride_am + offs_k[None, :] * stride_ak)
    b_ptrs = b_ptr + (offs_k[:, None] * stride_bk + offs_bn[None, :] * stride_bn)
    accumulator = tl.zeros((BLOCK_SIZE_M, BLOCK_SIZE_N), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK_SIZE_K)):
        a = tl.load(a_ptrs, mask=offs_k[None, :] < K - k * BLOCK_SIZE_K, other=0.0)
        b = tl.load(b_ptrs, mask=offs_k[:, None] < K - k * BLOCK_SIZE_K, other=0.0)
        accumulator = tl.dot(a, b, accumulator)
        a_ptrs += BLOCK_SIZE_K * stride_ak
        b_ptrs += BLOCK_SIZE_K * stride_bk
    if ACTIVATION == "leaky_relu":
        accumulator = leaky_relu(accumulator)
    c = accumulator.to(tl.float16)
    offs_cm = pid_m * BLOCK_SIZE_M + tl.arange(0, BLOCK_SIZE_M)
    offs_cn = pid_n * BLOCK_SIZE_N + tl.arange(0, BLOCK_SIZE_N)
    c_ptrs = c_ptr + stride_cm * offs_cm[:, None] + stride_cn * offs_cn[None, :]
    c_mask = (offs_cm[:, None] < M) & (offs_cn[None, :] < N)
    tl.store(c_ptrs, c, mask=c_mask)


@triton.jit
def dropout(x_ptr, keep_ptr, output_ptr, n_elements, p, BLOCK_SIZE: tl.constexpr):
    offsets = tl.program_id(axis=0) * BLOCK_SIZE + tl.arange(0, BLOCK_SIZE)
    mask = offsets < n_elements
    x = tl.load(x_ptr + offsets, mask=mask)
    x_keep = tl.load(keep_ptr + offsets, mask=mask)
    output = tl.where(x_keep != 0, x / (1 - p), 0.0)
    tl.store(output_ptr + offsets, output, mask=mask)


@triton.jit
def cross_entropy(logits_ptr, labels_ptr, loss_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    if label == -100:
        tl.store(loss_ptr + row, 0.0)
        return
    at = tl.arange(0, BLOCK)
    x = tl.load(logits_ptr + row * stride + at, mask=at < n, other=-float("inf")).to(tl.float32)
    top = tl.max(x, axis=0)
    total = tl.log(tl.sum(tl.exp(x - top), axis=0)) + top
    tl.store(loss_ptr + row, total - tl.load(logits_ptr + row * stride + label).to(tl.float32))


@triton.jit
def silu(x):
    return x * tl.sigmoid(x)


@triton.jit
def swiglu(a_ptr, b_ptr, c_ptr, stride, n_cols: tl.constexpr, BLOCK_SIZE: tl.constexpr):
    program = tl.program_id(0).to(tl.int64)
    a_ptr += program * stride
    b_ptr += program * stride
    c_ptr += program * stride
    col_offsets = tl.arange(0, BLOCK_SIZE)
    mask = col_offsets < n_cols
    a = tl.load(a_ptr + col_offsets, mask=mask, other=0).to(tl.float32)
    b = tl.load(b_ptr + col_offsets, mask=mask, other=0)
    tl.store(c_ptr + col_offsets, silu(a) * b, mask=mask)


@triton.jit
def rotary(x_ptr, cos_ptr, sin_ptr, y_ptr, stride, HALF: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, HALF)
    first = tl.load(x_ptr + row * stride + at)
    second = tl.load(x_ptr + row * stride + HALF + at)
    cos = tl.load(cos_ptr + row * HALF + at)
    sin = tl.load(sin_ptr + row * HALF + at)
    tl.store(y_ptr + row * stride + at, first * cos - second * sin)
    tl.store(y_ptr + row * stride + HALF + at, second * cos + first * sin)


@triton.jit
def dequantize_int4(packed_ptr, scale_ptr, y_ptr, n, GROUP: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    packed = tl.load(packed_ptr + at, mask=at < n, other=0).to(tl.int32)
    low = (packed & 0xF) - 8
    high = ((packed >> 4) & 0xF) - 8
    both = tl.interleave(low, high)
    out = 2 * tl.program_id(0) * BLOCK + tl.arange(0, 2 * BLOCK)
    scale = tl.load(scale_ptr + out // GROUP, mask=out < 2 * n, other=0.0)
    tl.store(y_ptr + out, both * scale, mask=out < 2 * n)


@triton.jit
def segmented_sum(x_ptr, segment_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = at < n
    x = tl.load(x_ptr + at, mask=mask, other=0.0)
    segment = tl.load(segment_ptr + at, mask=mask, other=0)
    tl.atomic_add(y_ptr + segment, x, mask=mask)


@triton.jit
def transpose(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :], mask=(rows[:, None] < M) & (columns[None, :] < N), other=0.0)
    tl.store(y_ptr + columns[:, None] * M + rows[None, :], tl.trans(x), mask=(columns[:, None] < N) & (rows[None, :] < M))


@triton.jit
def histogram(x_ptr, y_ptr, n, BINS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n, other=0)
    counts = tl.histogram(x, BINS)
    missing = tl.sum((at >= n).to(tl.int32), 0)
    bins = tl.arange(0, BINS)
    tl.atomic_add(y_ptr + bins, counts - tl.where(bins == 0, missing, 0))


@triton.jit
def flash_forward(q_ptr, k_ptr, v_ptr, o_ptr, lse_ptr, n, scale, CAUSAL: tl.constexpr, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    start = tl.program_id(0)
    rows = start * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
    m_i = tl.zeros([BM], dtype=tl.float32) - float("inf")
    l_i = tl.zeros([BM], dtype=tl.float32) + 1.0
    acc = tl.zeros([BM, D], dtype=tl.float32)
    hi = n
    if CAUSAL:
        hi = min((start + 1) * BM, n)
    for first in range(0, hi, BN):
        first = tl.multiple_of(first, BN)
        columns = first + tl.arange(0, BN)
        k = tl.load(k_ptr + columns[None, :] * D + at[:, None], mask=columns[None, :] < n, other=0.0)
        qk = tl.dot(q, k) * scale * 1.44269504
        seen = columns[None, :] < n
        if CAUSAL:
            seen = seen & (columns[None, :] <= rows[:, None])
        qk = tl.where(seen, qk, -1.0e6)
        m_ij = tl.maximum(m_i, tl.max(qk, 1))
        p = tl.math.exp2(qk - m_ij[:, None])
        alpha = tl.math.exp2(m_i - m_ij)
        l_i = l_i * alpha + tl.sum(p, 1)
        acc = acc * alpha[:, None]
        v = tl.load(v_ptr + columns[:, None] * D + at[None, :], mask=columns[:, None] < n, other=0.0)
        acc = tl.dot(p.to(v.dtype), v, acc)
        m_i = m_ij
    l_i = l_i
    tl.store(lse_ptr + rows, m_i + tl.math.log2(l_i), mask=rows < n)
    tl.store(o_ptr + rows[:, None] * D + at[None, :], acc / l_i[:, None], mask=rows[:, None] < n)


@triton.jit
def flash_backward_dv(q_ptr, k_ptr, do_ptr, lse_ptr, dv_ptr, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    at = tl.arange(0, D)
    k = tl.load(k_ptr + columns[:, None] * D + at[None, :], mask=columns[:, None] < n, other=0.0)
    dv = tl.zeros([BN, D], dtype=tl.float32)
    for first in range(0, n, BM):
        rows = first + tl.arange(0, BM)
        qT = tl.load(q_ptr + rows[None, :] * D + at[:, None], mask=rows[None, :] < n, other=0.0)
        lse = tl.load(lse_ptr + rows, mask=rows < n, other=0.0)
        pT = tl.math.exp2(tl.dot(k, qT) * scale * 1.44269504 - lse[None, :])
        pT = tl.where(rows[None, :] < n, pT, 0.0)
        do = tl.load(do_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
        dv += tl.dot(pT, do)
    tl.store(dv_ptr + columns[:, None] * D + at[None, :], dv, mask=columns[:, None] < n)
"""
