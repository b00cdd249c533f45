# %% mistake="adapter_alone"
# told: Your function leaves out the frozen weight
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return alpha / len(down) * (up @ down)


# %% mistake="alpha_alone"
# told: Your function multiplies the adapter by alpha, not by alpha / rank
# %% replace
return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
# %% by
return x @ weight.T + alpha * (x @ down.T @ up.T)
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return weight + alpha * (up @ down)


# %% mistake="factor_on_all"
# told: Your function also multiplies the frozen product by the factor
# %% replace
return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
# %% by
return alpha / len(down) * (x @ weight.T + x @ down.T @ up.T)


# %% mistake="forward_alone"
# told: Your function does not count the backward pass
# %% replace
return 2 * frozen + 3 * thin
# %% by
return frozen + thin


# %% mistake="frozen_forgotten"
# told: Your function does not count the bytes of the frozen weight
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 16 * rank * (rows + columns)


# %% mistake="frozen_gradient"
# told: Your function counts a gradient of the frozen weight
# %% replace
return 2 * frozen + 3 * thin
# %% by
return 3 * frozen + 3 * thin


# %% mistake="frozen_trained"
# told: Your function counts gradients and optimizer states for the frozen weight
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 16 * rows * columns + 16 * rank * (rows + columns)


# %% mistake="in_place"
# told: Your function modified the frozen weight
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
weight += alpha / len(down) * (up @ down)
return weight


# %% mistake="like_frozen"
# told: Your function does not count the gradients of the adapter's weights
# %% replace
return 2 * frozen + 3 * thin
# %% by
return 2 * frozen + 2 * thin


# %% mistake="multiplied_out"
# told: Your function counts the product of the two thin matrices
# %% replace
thin = 2 * positions * rank * (rows + columns)
# %% by
thin = 2 * (positions + rank) * rows * columns


# %% mistake="no_factor"
# told: Your function adds the adapter without its factor
# %% replace
return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
# %% by
return x @ weight.T + x @ down.T @ up.T
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return weight + up @ down


# %% mistake="no_gradients"
# told: Your function does not count the adapter's gradients
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 2 * rows * columns + 14 * rank * (rows + columns)


# %% mistake="one_matrix"
# told: Your function leaves out one of the two thin matrices
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 2 * rows * columns + 16 * rank * columns


# %% mistake="stops_at_adapter"
# told: Your function does not count the gradient that passes through the frozen weight
# %% replace
return 2 * frozen + 3 * thin
# %% by
return frozen + 3 * thin


# %% mistake="subtracted"
# told: Your function subtracts the adapter
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return weight - alpha / len(down) * (up @ down)
