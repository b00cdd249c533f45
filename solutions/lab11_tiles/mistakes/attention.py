# %% mistake="attention_all_keys"
# told: keeps more than a few tiles
# %% replace
attention_kernel[grid](q, k, v, o, queries, keys, d**-0.5, D=d, BM=BM, BN=BN)
# %% by
attention_kernel[grid](
    q, k, v, o, queries, keys, d**-0.5, D=d, BM=BM, BN=next_power_of_2(max(keys, 16))
)


# %% mistake="attention_mask_after_max"
# told: far below 0
# %% replace
scores = tl.where(columns[None, :] < keys, scores, -float("inf"))
# %% by
# %% replace
weights = tl.exp(scores - new_top[:, None])
# %% by
weights = tl.exp(scores - new_top[:, None])
weights = tl.where(columns[None, :] < keys, weights, 0.0)


# %% mistake="attention_no_rescale"
# told: rescales neither the sum nor the output
# %% replace
shrink = tl.exp(top - new_top)
# %% by
# %% replace
total = total * shrink + tl.sum(weights, axis=1)
acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
# %% by
total = total + tl.sum(weights, axis=1)
acc = tl.dot(weights, v, acc, input_precision="ieee")


# %% mistake="attention_no_scale"
# told: Your kernel does not scale the scores
# %% replace
scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
# %% by
scores = tl.dot(q, tl.trans(k), input_precision="ieee")


# %% mistake="attention_output_alone"
# told: your kernel does not rescale the sum
# %% replace
total = total * shrink + tl.sum(weights, axis=1)
# %% by
total = total + tl.sum(weights, axis=1)


# %% mistake="attention_padding_counts"
# told: your kernel counts keys that do not exist
# %% replace
scores = tl.where(columns[None, :] < keys, scores, -float("inf"))
# %% by


# %% mistake="attention_reads_padding"
# told: Your kernel counts keys beyond the end
# %% replace
queries, d = q.shape
# %% by
queries, d = q.shape
keys = k.shape[0]


# %% mistake="attention_sum_alone"
# told: your kernel does not rescale the output
# %% replace
acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
# %% by
acc = tl.dot(weights, v, acc, input_precision="ieee")


# %% mistake="attention_tf32"
# told: TF32
# %% replace
scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
# %% by
scores = tl.dot(q, tl.trans(k)) * scale
# %% replace
acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
# %% by
acc = tl.dot(weights, v, acc * shrink[:, None])


# %% mistake="attention_two_passes"
# told: Your kernel reads `k` 2 times for each tile of queries
# %% replace
acc = tl.zeros((BM, D), tl.float32)
# %% by
acc = tl.zeros((BM, D), tl.float32)
for first in range(0, keys, BN):
    columns = first + tl.arange(0, BN)
    kv_at = columns[:, None] * D + at[None, :]
    k = tl.load(k_ptr + kv_at, mask=columns[:, None] < keys, other=0.0)
    scores = tl.dot(q, tl.trans(k), input_precision="ieee") * scale
    scores = tl.where(columns[None, :] < keys, scores, -float("inf"))
    top = tl.maximum(top, tl.max(scores, axis=1))


# %% mistake="attention_zero_keys"
# told: Your kernel returns NaN for queries without keys
# %% replace
o = acc / tl.where(total == 0.0, 1.0, total)[:, None]
# %% by
o = acc / total[:, None]
