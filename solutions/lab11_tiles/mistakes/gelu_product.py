# %% mistake="gelu_no_root"
# told: computes erf(x) instead of erf(x / sqrt(2))
# %% replace
c = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
# %% by
c = 0.5 * x * (1.0 + tl.erf(x))


# %% mistake="gelu_relu"
# told: Your epilogue is relu.
# %% replace
c = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
# %% by
c = tl.maximum(x, 0.0)


# %% mistake="gelu_sigmoid"
# told: x·sigmoid(1.702·x)
# %% replace
c = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
# %% by
c = x / (1.0 + tl.exp(-1.702 * x))
