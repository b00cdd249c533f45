# %% mistake="causal_all_tiles"
# told: in tiles that no query of the program sees
# %% replace
end = tl.minimum((tl.program_id(0) + 1) * BM, n)
# %% by
end = n


# %% mistake="causal_no_mask"
# told: Later keys count
# %% replace
scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
# %% by
scores = tl.where(columns[None, :] < n, scores, -float("inf"))


# %% mistake="causal_no_rescale"
# told: the output is not rescaled
# %% replace
acc = tl.dot(weights, v, acc * shrink[:, None], input_precision="ieee")
# %% by
acc = tl.dot(weights, v, acc, input_precision="ieee")


# %% mistake="causal_strict"
# told: The diagonal is masked
# %% replace
scores = tl.where(columns[None, :] <= rows[:, None], scores, -float("inf"))
# %% by
scores = tl.where(columns[None, :] < rows[:, None], scores, -float("inf"))
