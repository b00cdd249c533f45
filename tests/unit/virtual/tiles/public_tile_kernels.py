# ruff: noqa: E501 (the lines are those of published kernels)
"""Products, attention and kernels with indices, in the style of published ones."""

from __future__ import annotations

SOURCE = """
@triton.jit
def batched_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    batch = tl.program_id(2)
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + batch * M * K + m[:, None] * K + k[None, :]
    b_ptrs = b_ptr + batch * K * N + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for i in range(0, tl.cdiv(K, BK)):
        left = K - i * BK
        a = tl.load(a_ptrs, mask=(m[:, None] < M) & (k[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(k[:, None] < left) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK * N
    tl.store(c_ptr + batch * M * N + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def split_k_product(a_ptr, b_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, SPLIT: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(tl.program_id(2) * BK, K, BK * SPLIT):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc)
    tl.atomic_add(c_ptr + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def matrix_vector(a_ptr, x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)[:, None]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, N, BN):
        n = start + tl.arange(0, BN)[None, :]
        a = tl.load(a_ptr + m * N + n, mask=(m < M) & (n < N), other=0.0).to(tl.float32)
        acc += a * tl.load(x_ptr + n, mask=n < N, other=0.0).to(tl.float32)
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tl.store(y_ptr + rows, tl.sum(acc, axis=1), mask=rows < M)


@triton.jit
def integer_product(a_ptr, b_ptr, scale_ptr, c_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.int32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0)
        acc += tl.dot(a, b)
    scale = tl.load(scale_ptr + n, mask=n < N, other=0.0)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc.to(tl.float32) * scale[None, :], mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def attention_delta(o_ptr, do_ptr, delta_ptr, n, D: tl.constexpr, BM: tl.constexpr):
    off_m = tl.program_id(0) * BM + tl.arange(0, BM)
    off_n = tl.arange(0, D)
    o = tl.load(o_ptr + off_m[:, None] * D + off_n[None, :], mask=off_m[:, None] < n, other=0.0)
    do = tl.load(do_ptr + off_m[:, None] * D + off_n[None, :], mask=off_m[:, None] < n, other=0.0).to(tl.float32)
    tl.store(delta_ptr + off_m, tl.sum(o * do, axis=1), mask=off_m < n)


@triton.jit
def flash_backward_dk(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dk_ptr, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    columns = tl.program_id(0) * BN + tl.arange(0, BN)
    at = tl.arange(0, D)
    k = tl.load(k_ptr + columns[:, None] * D + at[None, :], mask=columns[:, None] < n, other=0.0)
    v = tl.load(v_ptr + columns[:, None] * D + at[None, :], mask=columns[:, None] < n, other=0.0)
    dk = tl.zeros([BN, D], dtype=tl.float32)
    for first in range(0, n, BM):
        rows = first + tl.arange(0, BM)
        inside = rows[None, :] < n
        q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
        do = tl.load(do_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
        lse = tl.load(lse_ptr + rows, mask=rows < n, other=0.0)
        delta = tl.load(delta_ptr + rows, mask=rows < n, other=0.0)
        pT = tl.where(inside, tl.math.exp2(tl.dot(k, tl.trans(q)) * scale * 1.44269504 - lse[None, :]), 0.0)
        dsT = pT * (tl.dot(v, tl.trans(do)) - delta[None, :])
        dk += tl.dot(dsT.to(q.dtype), q)
    tl.store(dk_ptr + columns[:, None] * D + at[None, :], dk * scale, mask=columns[:, None] < n)


@triton.jit
def flash_backward_dq(q_ptr, k_ptr, v_ptr, do_ptr, lse_ptr, delta_ptr, dq_ptr, n, scale, D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
    do = tl.load(do_ptr + rows[:, None] * D + at[None, :], mask=rows[:, None] < n, other=0.0)
    lse = tl.load(lse_ptr + rows, mask=rows < n, other=0.0)[:, None]
    delta = tl.load(delta_ptr + rows, mask=rows < n, other=0.0)
    dq = tl.zeros([BM, D], dtype=tl.float32)
    for first in range(0, n, BN):
        columns = first + tl.arange(0, BN)
        kT = tl.load(k_ptr + columns[None, :] * D + at[:, None], mask=columns[None, :] < n, other=0.0)
        vT = tl.load(v_ptr + columns[None, :] * D + at[:, None], mask=columns[None, :] < n, other=0.0)
        p = tl.where(columns[None, :] < n, tl.math.exp2(tl.dot(q, kT) * scale * 1.44269504 - lse), 0.0)
        ds = p * (tl.dot(do, vT) - delta[:, None])
        dq += tl.dot(ds, tl.trans(kT))
    tl.store(dq_ptr + rows[:, None] * D + at[None, :], dq * scale, mask=rows[:, None] < n)


@triton.jit
def paged_decode(q_ptr, k_ptr, v_ptr, table_ptr, length_ptr, o_ptr, pages, scale, PAGE: tl.constexpr, D: tl.constexpr):
    sequence = tl.program_id(0)
    at = tl.arange(0, D)
    slots = tl.arange(0, PAGE)
    length = tl.load(length_ptr + sequence)
    q = tl.load(q_ptr + sequence * D + at)
    m = -float("inf")
    l = 0.0
    acc = tl.zeros([D], dtype=tl.float32)
    for page in range(0, tl.cdiv(length, PAGE)):
        block = tl.load(table_ptr + sequence * pages + page)
        seen = page * PAGE + slots < length
        place = (block * PAGE + slots[:, None]) * D + at[None, :]
        k = tl.load(k_ptr + place, mask=seen[:, None], other=0.0)
        s = tl.where(seen, tl.sum(q[None, :] * k, 1) * scale, -float("inf"))
        new = tl.maximum(m, tl.max(s, 0))
        p = tl.exp(s - new)
        alpha = tl.exp(m - new)
        v = tl.load(v_ptr + place, mask=seen[:, None], other=0.0)
        acc = acc * alpha + tl.sum(p[:, None] * v, 0)
        l = l * alpha + tl.sum(p, 0)
        m = new
    tl.store(o_ptr + sequence * D + at, acc / l)


@triton.jit
def embedding(ids_ptr, table_ptr, out_ptr, stride, n, D: tl.constexpr):
    token = tl.program_id(0)
    at = tl.arange(0, D)
    row = tl.load(ids_ptr + token).to(tl.int64)
    tl.store(out_ptr + token * n + at, tl.load(table_ptr + row * stride + at, mask=at < n, other=0.0), mask=at < n)


@triton.jit
def embedding_backward(ids_ptr, dy_ptr, dtable_ptr, stride, n, D: tl.constexpr):
    token = tl.program_id(0)
    at = tl.arange(0, D)
    row = tl.load(ids_ptr + token)
    tl.atomic_add(dtable_ptr + row * stride + at, tl.load(dy_ptr + token * n + at, mask=at < n), mask=at < n)


@triton.jit
def segment_max(x_ptr, segment_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    segment = tl.load(segment_ptr + at, mask=at < n, other=0)
    tl.atomic_max(y_ptr + segment, tl.load(x_ptr + at, mask=at < n, other=0), mask=at < n)


@triton.jit
def causal_conv1d(x_ptr, w_ptr, y_ptr, n, WIDTH: tl.constexpr, BLOCK: tl.constexpr):
    channel = tl.program_id(0)
    at = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros([BLOCK], dtype=tl.float32)
    for tap in tl.static_range(WIDTH):
        source = at - (WIDTH - 1) + tap
        x = tl.load(x_ptr + channel * n + source, mask=(source >= 0) & (source < n), other=0.0)
        acc += x * tl.load(w_ptr + channel * WIDTH + tap)
    tl.store(y_ptr + channel * n + at, acc * tl.sigmoid(acc), mask=at < n)


@triton.jit
def selective_scan(x_ptr, a_ptr, b_ptr, y_ptr, n, D: tl.constexpr):
    channel = tl.program_id(0)
    state = tl.zeros([D], dtype=tl.float32)
    at = tl.arange(0, D)
    for t in range(0, n):
        a = tl.load(a_ptr + t * D + at)
        b = tl.load(b_ptr + t * D + at)
        state = state * tl.exp(-a) + b * tl.load(x_ptr + channel * n + t)
        tl.store(y_ptr + channel * n + t, tl.sum(state, 0))


@triton.jit
def average_pool(x_ptr, y_ptr, H, W, BH: tl.constexpr, BW: tl.constexpr):
    image = tl.program_id(0)
    i = tl.arange(0, BH)[:, None]
    j = tl.arange(0, BW)[None, :]
    mask = (i < H // 2) & (j < W // 2)
    total = tl.zeros([BH, BW], dtype=tl.float32)
    for di in tl.static_range(2):
        for dj in tl.static_range(2):
            total += tl.load(x_ptr + image * H * W + (2 * i + di) * W + 2 * j + dj, mask=mask, other=0.0)
    tl.store(y_ptr + image * (H // 2) * (W // 2) + i * (W // 2) + j, total * 0.25, mask=mask)


@triton.jit
def column_totals(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    n = tl.program_id(0) * BN + tl.arange(0, BN)
    total = tl.zeros([BN], dtype=tl.float32)
    for start in range(0, M, BM):
        m = start + tl.arange(0, BM)
        total += tl.sum(tl.load(x_ptr + m[:, None] * N + n[None, :], mask=(m[:, None] < M) & (n[None, :] < N), other=0.0), axis=0)
    tl.store(y_ptr + n, total, mask=n < N)


@triton.jit
def add_bias_residual(x_ptr, bias_ptr, residual_ptr, y_ptr, N, BN: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    for start in tl.range(0, N, BN):
        n = start + tl.arange(0, BN)
        mask = n < N
        x = tl.load(x_ptr + row * N + n, mask=mask) + tl.load(bias_ptr + n, mask=mask)
        tl.store(y_ptr + row * N + n, tl.maximum(x, 0.0) + tl.load(residual_ptr + row * N + n, mask=mask), mask=mask)
"""
