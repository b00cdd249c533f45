# ruff: noqa: E501 (the lines are those of published kernels)
"""Kernels on vectors and rows in the style of published ones."""

from __future__ import annotations

SOURCE = """
@triton.jit
def tanh(x):
    return 2 * tl.sigmoid(2 * x) - 1


@triton.jit
def gelu_tanh(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    inner = 0.7978845608028654 * (x + 0.044715 * x * x * x)
    tl.store(y_ptr + at, 0.5 * x * (1 + tanh(inner)), mask=at < n)


@triton.jit
def gelu_erf(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, x * 0.5 * (1.0 + tl.erf(x * 0.7071067811865476)), mask=at < n)


@triton.jit
def adam_step(w_ptr, g_ptr, m_ptr, v_ptr, n, lr, beta1, beta2, eps, BLOCK: tl.constexpr):
    pid = tl.program_id(axis=0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    g = tl.load(g_ptr + offsets, mask=mask, other=0.0)
    m = beta1 * tl.load(m_ptr + offsets, mask=mask, other=0.0) + (1 - beta1) * g
    v = beta2 * tl.load(v_ptr + offsets, mask=mask, other=0.0) + (1 - beta2) * g * g
    w = tl.load(w_ptr + offsets, mask=mask, other=0.0)
    tl.store(m_ptr + offsets, m, mask=mask)
    tl.store(v_ptr + offsets, v, mask=mask)
    tl.store(w_ptr + offsets, w - lr * m / (tl.sqrt(v) + eps), mask=mask)


@triton.jit
def lion_step(w_ptr, g_ptr, m_ptr, n, lr, wd, beta1, beta2, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    w = tl.load(w_ptr + offsets, mask=mask)
    g = tl.load(g_ptr + offsets, mask=mask)
    m = tl.load(m_ptr + offsets, mask=mask)
    w = w * (1 - lr * wd)
    diff = m - g
    update = diff * beta1 + g
    can_update = update != 0
    update_sign = tl.where(update > 0, -lr, lr)
    w = w + update_sign * can_update
    tl.store(w_ptr + offsets, w, mask=mask)
    tl.store(m_ptr + offsets, diff * beta2 + g, mask=mask)


@triton.jit
def huber_loss(x_ptr, y_ptr, loss_ptr, n, delta, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    error = tl.abs(tl.load(x_ptr + at, mask=at < n, other=0.0) - tl.load(y_ptr + at, mask=at < n, other=0.0))
    loss = tl.where(error < delta, 0.5 * error * error, delta * (error - 0.5 * delta))
    tl.store(loss_ptr + tl.program_id(0), tl.sum(loss, axis=0))


@triton.jit
def log_softmax(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < n, other=float("-inf"))
    x = x - tl.max(x, 0)
    tl.store(y_ptr + row * stride + at, x - tl.log(tl.sum(tl.exp(x), 0)), mask=at < n)


@triton.jit
def online_softmax(x_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    x_ptr += tl.program_id(0) * stride
    y_ptr += tl.program_id(0) * stride
    largest = float("-inf")
    total = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=float("-inf"))
        new = tl.maximum(largest, tl.max(x, 0))
        total = total * tl.exp(largest - new) + tl.sum(tl.exp(x - new), 0)
        largest = new
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at, mask=at < n, other=float("-inf"))
        tl.store(y_ptr + at, tl.exp(x - largest) / total, mask=at < n)


@triton.jit
def softmax_backward(y_ptr, dy_ptr, dx_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    mask = at < n
    y = tl.load(y_ptr + row * stride + at, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + row * stride + at, mask=mask, other=0.0)
    tl.store(dx_ptr + row * stride + at, y * (dy - tl.sum(y * dy, 0)), mask=mask)


@triton.jit
def layer_norm_backward(x_ptr, w_ptr, mean_ptr, rstd_ptr, dy_ptr, dx_ptr, dw_ptr, db_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    cols = tl.arange(0, BLOCK)
    mask = cols < n
    x = tl.load(x_ptr + row * stride + cols, mask=mask, other=0).to(tl.float32)
    dy = tl.load(dy_ptr + row * stride + cols, mask=mask, other=0).to(tl.float32)
    w = tl.load(w_ptr + cols, mask=mask, other=0).to(tl.float32)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    xhat = tl.where(mask, (x - mean) * rstd, 0.)
    wdy = tl.where(mask, w * dy, 0.)
    c1 = tl.sum(xhat * wdy, axis=0) / n
    c2 = tl.sum(wdy, axis=0) / n
    tl.store(dx_ptr + row * stride + cols, (wdy - (xhat * c1 + c2)) * rstd, mask=mask)
    tl.atomic_add(dw_ptr + cols, dy * xhat, mask=mask)
    tl.atomic_add(db_ptr + cols, dy, mask=mask)


@triton.jit
def group_norm(x_ptr, y_ptr, channels, size, eps, BLOCK_C: tl.constexpr, BLOCK_S: tl.constexpr):
    base = tl.program_id(0) * channels * size
    c = tl.arange(0, BLOCK_C)[:, None]
    s = tl.arange(0, BLOCK_S)[None, :]
    mask = (c < channels) & (s < size)
    x = tl.load(x_ptr + base + c * size + s, mask=mask, other=0.0)
    count = channels * size
    mean = tl.sum(x) / count
    centred = tl.where(mask, x - mean, 0.0)
    rstd = tl.rsqrt(tl.sum(centred * centred) / count + eps)
    tl.store(y_ptr + base + c * size + s, centred * rstd, mask=mask)


@triton.jit
def quantize_rows(x_ptr, q_ptr, scale_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < n, other=0.0)
    scale = tl.max(tl.abs(x), 0) / 127.0
    q = tl.floor(x / scale + 0.5)
    tl.store(q_ptr + row * stride + at, q.to(tl.int8), mask=at < n)
    tl.store(scale_ptr + row, scale)


@triton.jit
def pack_signs(x_ptr, packed_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    bits = tl.arange(0, 32)
    words = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + (row * BLOCK + words[:, None]) * 32 + bits[None, :])
    one = (x > 0).to(tl.int32) << bits[None, :]
    tl.store(packed_ptr + row * BLOCK + words, tl.sum(one, axis=1))


@triton.jit
def row_argmax(x_ptr, at_ptr, largest_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * stride + at, mask=at < n, other=-float("inf"))
    tl.store(at_ptr + row, tl.argmax(x, axis=0))
    tl.store(largest_ptr + row, tl.max(x, axis=0))


@triton.jit
def prefix_sums(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    carry = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0)
        tl.store(y_ptr + row * n + at, tl.cumsum(x, 0) + carry, mask=at < n)
        carry += tl.sum(x, 0)


@triton.jit
def kl_divergence(p_ptr, log_q_ptr, loss_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    loss = 0.0
    for start in range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        p = tl.load(p_ptr + row * stride + at, mask=at < n, other=0.0)
        log_q = tl.load(log_q_ptr + row * stride + at, mask=at < n, other=0.0)
        loss += tl.sum(tl.where(p > 0, p * (tl.log(tl.maximum(p, 1e-10)) - log_q), 0.0), 0)
    tl.store(loss_ptr + row, loss)


@triton.jit
def cosine_similarity(a_ptr, b_ptr, y_ptr, stride, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    dot = tl.zeros((BLOCK,), dtype=tl.float32)
    aa = tl.zeros((BLOCK,), dtype=tl.float32)
    bb = tl.zeros((BLOCK,), dtype=tl.float32)
    for start in tl.range(0, n, BLOCK):
        at = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + row * stride + at, mask=at < n, other=0.0)
        b = tl.load(b_ptr + row * stride + at, mask=at < n, other=0.0)
        dot += a * b
        aa += a * a
        bb += b * b
    tl.store(y_ptr + row, tl.sum(dot) / (tl.sqrt(tl.sum(aa)) * tl.sqrt(tl.sum(bb))))
"""
