# %% mistake="product_b_by_rows"
# told: Your kernel reads b by columns
# %% replace
b_at = b_ptr + inner[:, None] * N + columns[None, :]
# %% by
b_at = b_ptr + inner[:, None] + columns[None, :] * K


# %% mistake="product_fp16_sum"
# told: less accurate than sums in fp32
# %% replace
acc = tl.dot(a, b, acc, input_precision="ieee")
# %% by
acc = (acc + tl.dot(a, b, input_precision="ieee")).to(tl.float16).to(tl.float32)


# %% mistake="product_k_unmasked"
# told: reads past the end of `a`
# %% replace
a_mask = (rows[:, None] < M) & (inner[None, :] < K)
b_mask = (inner[:, None] < K) & (columns[None, :] < N)
# %% by
a_mask = rows[:, None] < M
b_mask = columns[None, :] < N


# %% mistake="product_last_part"
# told: only the last part of K
# %% replace
acc = tl.dot(a, b, acc, input_precision="ieee")
# %% by
acc = tl.dot(a, b, input_precision="ieee")


# %% mistake="product_no_bias"
# told: Your kernel leaves out the bias.
# %% replace
bias = tl.load(bias_ptr + columns, mask=columns < N, other=0.0)
c = tl.maximum(acc + bias[None, :], 0.0)
# %% by
c = tl.maximum(acc, 0.0)


# %% mistake="product_no_relu"
# told: Your output has negative values.
# %% replace
c = tl.maximum(acc + bias[None, :], 0.0)
# %% by
c = acc + bias[None, :]


# %% mistake="product_own_tiles"
# told: as its tiles need
# %% replace
grid = (cdiv(M, BM), cdiv(N, BN))
tiled_product_kernel[grid](a, b, bias, c, M, N, K, BM=BM, BN=BN, BK=32)
# %% by
grid = (cdiv(M, 16), cdiv(N, 16))
tiled_product_kernel[grid](a, b, bias, c, M, N, K, BM=16, BN=16, BK=32)


# %% mistake="product_second_launch"
# told: Your additional launches move additional bytes
@jit
def tiled_product_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    """One tile of relu(A @ B + bias)."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for first in range(0, K, BK):
        inner = first + tl.arange(0, BK)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a_at = a_ptr + rows[:, None] * K + inner[None, :]
        b_at = b_ptr + inner[:, None] * N + columns[None, :]
        a = tl.load(a_at, mask=a_mask, other=0.0)
        b = tl.load(b_at, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    c = acc
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c, mask=c_mask)


@jit
def epilogue_kernel(c_ptr, bias_ptr, N, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    for first in range(0, N, BLOCK):
        at = first + tl.arange(0, BLOCK)
        bias = tl.load(bias_ptr + at, mask=at < N, other=0.0)
        c = tl.load(c_ptr + row * N + at, mask=at < N, other=0.0)
        tl.store(c_ptr + row * N + at, tl.maximum(c + bias, 0.0), mask=at < N)


def tiled_product(a, b, bias, BM, BN):
    """relu(a @ b + bias), in tiles of BM rows and BN columns."""
    M, K = a.shape
    N = b.shape[1]
    c = torch.empty((M, N), dtype=a.dtype, device=a.device)
    grid = (cdiv(M, BM), cdiv(N, BN))
    tiled_product_kernel[grid](a, b, c, M, N, K, BM=BM, BN=BN, BK=32)
    epilogue_kernel[(M,)](c, bias, N, BLOCK=64)
    return c


# %% mistake="product_tf32"
# told: TF32
# %% replace
acc = tl.dot(a, b, acc, input_precision="ieee")
# %% by
acc = tl.dot(a, b, acc)
