# %% mistake="adds_them"
# told: the gradients through mean and variance have the wrong sign
# %% replace
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * (gradient + sums[0] + y * sums[1])


# %% mistake="divides_by_own_rows"
# told: a rank divides by its own number of rows
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / len(y)


# %% mistake="eps_outside"
# told: eps is added outside the root
# %% replace
scale = (variance + eps).rsqrt()
# %% by
scale = 1 / (variance.sqrt() + eps)


# %% mistake="gathers_three_times"
# told: the forward pass uses more than one collective
# %% replace
parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
counts, means, spreads = torch.stack(parts).unbind(1)
# %% by
three = (count, x.mean(0), x.var(0, correction=0))
counts, means, spreads = (torch.stack(comm.all_gather(one)) for one in three)


# %% mistake="kept_variance_divides"
# told: rows are normalised with the unbiased variance
# %% replace
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / (total - 1)
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = mean, variance


# %% mistake="mean_first"
# told: all_reduce is called several times where one collective is enough
# %% replace
parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
counts, means, spreads = torch.stack(parts).unbind(1)
total = counts.sum(0)
mean = (counts * means).sum(0) / total
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
summed = comm.all_reduce(torch.stack([count, x.sum(0)]))
total, mean = summed[0], summed[1] / summed[0]
variance = comm.all_reduce(((x - mean) ** 2).sum(0)) / total


# %% mistake="mean_is_constant"
# told: the mean is treated as a constant
# %% replace
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * (gradient - y * sums[1])


# %% mistake="means_averaged"
# told: every rank's mean has the same weight
# %% replace
mean = (counts * means).sum(0) / total
# %% by
mean = means.mean(0)


# %% mistake="momentum_swapped"
# told: momentum and 1 - momentum are swapped
# %% replace
after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
# %% by
after = [
    momentum * old + (1 - momentum) * new
    for old, new in zip(running, batch, strict=True)
]


# %% mistake="never_moves"
# told: a running statistic is not updated
# %% replace
batch = mean, variance * total / (total - 1)
after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
return y, tuple(after), (y, scale, total)
# %% by
return y, running, (y, scale, total)


# %% mistake="no_eps"
# told: eps is left out
# %% replace
scale = (variance + eps).rsqrt()
# %% by
scale = variance.rsqrt()


# %% mistake="no_root"
# told: rows are divided by the variance
# %% replace
scale = (variance + eps).rsqrt()
# %% by
scale = 1 / (variance + eps)


# %% mistake="own_count_corrects"
# told: the running variance is corrected with a rank's own count
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = mean, variance * count / (count - 1) if len(x) > 1 else variance * 0


# %% mistake="own_rows_alone"
# told: each rank normalises with only its own rows
# %% replace
parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
# %% by
parts = [torch.stack([count, x.mean(0), x.var(0, correction=0)])]


# %% mistake="own_sums_back"
# told: each rank's backward pass uses only its own rows
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = torch.stack([gradient.sum(0), (gradient * y).sum(0)]) / total


# %% mistake="ranks_weigh_the_same"
# told: every rank has the same weight, however many rows it has
# %% replace
mean = (counts * means).sum(0) / total
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
mean = means.mean(0)
variance = (spreads + (means - mean) ** 2).mean(0)


# %% mistake="running_is_biased"
# told: the running variance uses the biased variance
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = mean, variance


# %% mistake="running_of_own_rows"
# told: running statistics cover only a rank's own rows
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = x.mean(0), x.var(0, correction=0)


# %% mistake="squares_of_values"
# told: rounding costs too many digits
# %% replace
parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
counts, means, spreads = torch.stack(parts).unbind(1)
total = counts.sum(0)
mean = (counts * means).sum(0) / total
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
total, mean, squares = comm.all_reduce(torch.stack([count, x.sum(0), (x * x).sum(0)]))
mean = mean / total
variance = (squares / total - mean**2).clamp(min=0)


# %% mistake="statistics_are_constants"
# told: the mean and the variance are treated as constants
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * gradient


# %% mistake="sums_for_means"
# told: sums over all rows are used as means
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)]))


# %% mistake="two_sums_back"
# told: the backward pass uses more than one collective
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = [comm.all_reduce(one.sum(0)) / total for one in (gradient, gradient * y)]


# %% mistake="variance_is_constant"
# told: the variance is treated as a constant
# %% replace
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * (gradient - sums[0])


# %% mistake="variances_averaged"
# told: the variance between the ranks' means is left out
# %% replace
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
variance = (counts * spreads).sum(0) / total
