# %% mistake="adapter_alone"
# told: The frozen weight is left out
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return alpha / len(down) * (up @ down)


# %% mistake="alpha_alone"
# told: The adapter is multiplied by alpha alone
# %% replace
return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
# %% by
return x @ weight.T + alpha * (x @ down.T @ up.T)
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return weight + alpha * (up @ down)


# %% mistake="factor_on_all"
# told: The frozen product is multiplied by the factor as well
# %% replace
return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
# %% by
return alpha / len(down) * (x @ weight.T + x @ down.T @ up.T)


# %% mistake="forward_alone"
# told: The backward pass has no operations
# %% replace
return 2 * frozen + 3 * thin
# %% by
return frozen + thin


# %% mistake="frozen_forgotten"
# told: The frozen weight takes no bytes
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 16 * rank * (rows + columns)


# %% mistake="frozen_gradient"
# told: A gradient of the frozen weight is computed
# %% replace
return 2 * frozen + 3 * thin
# %% by
return 3 * frozen + 3 * thin


# %% mistake="frozen_trained"
# told: The frozen weight has gradients and optimizer states
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
# told: The adapter's weights get no gradient
# %% replace
return 2 * frozen + 3 * thin
# %% by
return 2 * frozen + 2 * thin


# %% mistake="multiplied_out"
# told: The thin matrices are multiplied with each other first
# %% replace
thin = 2 * positions * rank * (rows + columns)
# %% by
thin = 2 * (positions + rank) * rows * columns


# %% mistake="no_factor"
# told: The adapter has no factor
# %% replace
return x @ weight.T + alpha / len(down) * (x @ down.T @ up.T)
# %% by
return x @ weight.T + x @ down.T @ up.T
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return weight + up @ down


# %% mistake="no_gradients"
# told: The adapter's gradients take no bytes
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 2 * rows * columns + 14 * rank * (rows + columns)


# %% mistake="one_matrix"
# told: One of the two thin matrices is left out
# %% replace
return 2 * rows * columns + 16 * rank * (rows + columns)
# %% by
return 2 * rows * columns + 16 * rank * columns


# %% mistake="stops_at_adapter"
# told: No gradient passes through the frozen weight
# %% replace
return 2 * frozen + 3 * thin
# %% by
return frozen + 3 * thin


# %% mistake="subtracted"
# told: The adapter is subtracted
# %% replace
return weight + alpha / len(down) * (up @ down)
# %% by
return weight - alpha / len(down) * (up @ down)
