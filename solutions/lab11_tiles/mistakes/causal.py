# %% mistake="causal_all_tiles"
# told: that no query of the program sees
# %% replace
end = tl.minimum((tl.program_id(0) + 1) * BM, n)
# %% by
end = n


# %% mistake="causal_no_mask"
# told: Your kernel counts keys that come after the query
# %% replace
scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
# %% by
scores = tl.where(columns[None, :] < n, scores, -float("inf"))


# %% mistake="causal_no_rescale"
# told: your kernel does not rescale the output
# %% replace
acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
# %% by
acc = tl.dot(weights, v, acc, input_precision="ieee")


# %% mistake="causal_strict"
# told: Your kernel masks the diagonal
# %% replace
scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
# %% by
scores = tl.where(columns[None, :] < rows[:, None], scores, -float("inf"))
