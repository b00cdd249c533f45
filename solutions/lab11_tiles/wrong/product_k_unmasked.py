# exercise: tiled_product
# told: reads past the end of a
@jit
def tiled_product_kernel(
    a_ptr, b_ptr, bias_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One tile of relu(A @ B + bias)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        a_mask = rows[:, None] < M
        b_mask = columns[None, :] < N
        a_at = a_ptr + rows[:, None] * K + inner[None, :]
        b_at = b_ptr + inner[:, None] * N + columns[None, :]
        a = tl.load(a_at, mask=a_mask, other=0.0)
        b = tl.load(b_at, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
    c = tl.maximum(acc + bias[None, :], 0.0)
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c, mask=c_mask)
