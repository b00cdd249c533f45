# exercise: attention
# told: Queries without keys give NaN
@jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, queries, keys, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The output of BM queries."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q_mask = rows[:, None] < queries
    q = tl.load(q_ptr + rows[:, None] * D + at[None, :], mask=q_mask, other=0.0)
    top = tl.full((BM,), -float("inf"), tl.float32)
    total = tl.zeros((BM,), tl.float32)
    acc = tl.zeros((BM, D), tl.float32)
    for first in range(0, keys, BN):
        columns = first + tl.arange(0, BN)
        kv_mask = columns[:, None] < keys
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        scores = tl.where(columns[None, :] < keys, scores, -float("inf"))
        new_top = tl.maximum(top, tl.max(scores, axis=1))
        shrink = tl.exp(top - new_top)
        weights = tl.exp(scores - new_top[:, None])
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0)
        total = total * shrink + tl.sum(weights, axis=1)
        acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
        top = new_top
    o = acc / total[:, None]
    tl.store(o_ptr + rows[:, None] * D + at[None, :], o, mask=q_mask)
