# %% mistake="backward_delta_added"
# told: your kernel adds delta
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)
# %% replace
scores_grad = weights * (weights_grad - delta[:, None])
# %% by
scores_grad = weights * (weights_grad + delta[:, None])


# %% mistake="backward_divides_by_exp"
# told: Your kernel returns NaN for large scores
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(scores) / tl.exp(lse)[:, None]


# %% mistake="backward_loads_in_the_loop"
# told: Your kernel reads `o_grad`
# %% replace
k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
# %% by
k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
o_grad = tl.load(o_grad_ptr + q_at, mask=q_mask, other=0.0)
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)


# %% mistake="backward_no_delta"
# told: your kernel does not subtract delta
# %% replace
o = tl.load(o_ptr + q_at, mask=q_mask, other=0.0)
delta = tl.sum(o_grad * o, axis=1)
# %% by
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)
# %% replace
scores_grad = weights * (weights_grad - delta[:, None])
# %% by
scores_grad = weights * weights_grad


# %% mistake="backward_no_query_mask"
# told: past the end of `lse`
# %% replace
lse = tl.load(lse_ptr + rows, mask=rows < queries, other=0.0)
# %% by
lse = tl.load(lse_ptr + rows)
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)


# %% mistake="backward_not_scaled"
# told: Your kernel does not scale the gradient
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)
# %% replace
tl.store(q_grad_ptr + q_at, q_grad * scale, mask=q_mask)
# %% by
tl.store(q_grad_ptr + q_at, q_grad, mask=q_mask)


# %% mistake="backward_scores_not_scaled"
# told: Your kernel does not scale the scores before the exponential
# %% replace
scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
scores = tl.dot(q, tl.trans(k), input_precision="ieee")
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)


# %% mistake="backward_tf32"
# told: TF32
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)
# %% replace
q_grad = tl.dot(scores_grad, k, q_grad, input_precision="ieee")
# %% by
q_grad = tl.dot(scores_grad, k, q_grad)


# %% mistake="backward_two_passes"
# told: Your kernel reads `k` 2 times for each tile of queries
@jit
def attention_backward_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, o_grad_ptr, lse_ptr, q_grad_ptr, queries, keys, scale,
    D: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):  # fmt: skip
    """The gradient of BM queries."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    at = tl.arange(0, D)
    q_mask = rows[:, None] < queries
    q_at = rows[:, None] * D + at[None, :]
    q = tl.load(q_ptr + q_at, mask=q_mask, other=0.0)
    o_grad = tl.load(o_grad_ptr + q_at, mask=q_mask, other=0.0)
    o = tl.load(o_ptr + q_at, mask=q_mask, other=0.0)
    delta = tl.sum(o_grad * o, axis=1)
    lse = tl.load(lse_ptr + rows, mask=rows < queries, other=0.0)
    q_grad = tl.zeros((BM, D), tl.float32)
    most = tl.full((BM,), -float("inf"), tl.float32)
    for first in range(0, keys, BN):
        columns = first + tl.arange(0, BN)
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=columns[:, None] < keys, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        most = tl.maximum(
            most,
            tl.max(tl.where(columns[None, :] < keys, scores, -float("inf")), axis=1),
        )
    for first in range(0, keys, BN):
        columns = first + tl.arange(0, BN)
        kv_mask = columns[:, None] < keys
        kv_at = columns[:, None] * D + at[None, :]
        k = tl.load(k_ptr + kv_at, mask=kv_mask, other=0.0)
        v = tl.load(v_ptr + kv_at, mask=kv_mask, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
        weights = tl.exp(
            tl.where(
                columns[None, :] < keys,
                scores - most[:, None] - (lse - most)[:, None],
                -float("inf"),
            )
        )
        weights_grad = tl.dot(o_grad, tl.trans(v), input_precision="ieee")
        scores_grad = weights * (weights_grad - delta[:, None])
        q_grad = tl.dot(scores_grad, k, q_grad, input_precision="ieee")
    tl.store(q_grad_ptr + q_at, q_grad * scale, mask=q_mask)


def attention_backward(q, k, v, o, o_grad, lse, BM, BN):
    """The gradient of q in softmax(q @ k.T / sqrt(d)) @ v."""
    queries, d = q.shape
    q_grad = torch.empty_like(q)
    grid = (cdiv(queries, BM),)
    attention_backward_kernel[grid](
        q, k, v, o, o_grad, lse, q_grad, queries, k.shape[0], d**-0.5, D=d, BM=BM, BN=BN
    )
    return q_grad


# %% mistake="backward_values_for_keys"
# told: Your kernel multiplies the gradient of the scores by v
# %% replace
scores = tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
weights = tl.exp(scores)
# %% by
weights = tl.exp(
    tl.where(columns[None, :] < keys, scores - lse[:, None], -float("inf"))
)
# %% replace
q_grad = tl.dot(scores_grad, k, q_grad, input_precision="ieee")
# %% by
q_grad = tl.dot(scores_grad, v, q_grad, input_precision="ieee")
