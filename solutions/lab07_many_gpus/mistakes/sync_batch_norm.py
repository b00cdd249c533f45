# %% mistake="adds_them"
# told: your gradients through mean and variance have the wrong sign
# %% replace
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * (gradient + sums[0] + y * sums[1])


# %% mistake="divides_by_own_rows"
# told: in your backward pass, a rank divides by its own number of rows
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / len(y)


# %% mistake="eps_outside"
# told: your function adds eps outside the root
# %% replace
scale = (variance + eps).rsqrt()
# %% by
scale = 1 / (variance.sqrt() + eps)


# %% mistake="gathers_three_times"
# told: your forward pass uses more than one collective
# %% replace
parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
counts, means, spreads = torch.stack(parts).unbind(1)
# %% by
three = (count, x.mean(0), x.var(0, correction=0))
counts, means, spreads = (torch.stack(comm.all_gather(one)) for one in three)


# %% mistake="kept_variance_divides"
# told: your function normalises rows with the unbiased variance
# %% replace
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / (total - 1)
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = mean, variance


# %% mistake="mean_first"
# told: your function calls all_reduce several times where one collective is enough
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
# told: your backward pass treats the mean as a constant
# %% replace
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * (gradient - y * sums[1])


# %% mistake="means_averaged"
# told: your function gives every rank's mean the same weight
# %% replace
mean = (counts * means).sum(0) / total
# %% by
mean = means.mean(0)


# %% mistake="momentum_swapped"
# told: your function swaps momentum and 1 - momentum
# %% replace
after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
# %% by
after = [
    momentum * old + (1 - momentum) * new
    for old, new in zip(running, batch, strict=True)
]


# %% mistake="never_moves"
# told: your function does not update a running statistic
# %% replace
batch = mean, variance * total / (total - 1)
after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
return y, tuple(after), (y, scale, total)
# %% by
return y, running, (y, scale, total)


# %% mistake="no_eps"
# told: your function leaves out eps
# %% replace
scale = (variance + eps).rsqrt()
# %% by
scale = variance.rsqrt()


# %% mistake="no_root"
# told: your function divides rows by the variance
# %% replace
scale = (variance + eps).rsqrt()
# %% by
scale = 1 / (variance + eps)


# %% mistake="own_count_corrects"
# told: your function corrects the running variance with a rank's own count
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = mean, variance * count / (count - 1) if len(x) > 1 else variance * 0


# %% mistake="own_rows_alone"
# told: in your code, each rank normalises with only its own rows
# %% replace
parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
# %% by
parts = [torch.stack([count, x.mean(0), x.var(0, correction=0)])]


# %% mistake="own_sums_back"
# told: in your code, each rank's backward pass uses only the rank's own rows
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = torch.stack([gradient.sum(0), (gradient * y).sum(0)]) / total


# %% mistake="ranks_weigh_the_same"
# told: your function gives every rank the same weight, regardless of its number of rows
# %% replace
mean = (counts * means).sum(0) / total
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
mean = means.mean(0)
variance = (spreads + (means - mean) ** 2).mean(0)


# %% mistake="running_is_biased"
# told: your running variance uses the biased variance
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = mean, variance


# %% mistake="running_of_own_rows"
# told: your running statistics cover only a rank's own rows
# %% replace
batch = mean, variance * total / (total - 1)
# %% by
batch = x.mean(0), x.var(0, correction=0)


# %% mistake="squares_of_values"
# told: your function loses too many digits to rounding
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
# told: your backward pass treats the mean and the variance as constants
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * gradient


# %% mistake="sums_for_means"
# told: your backward pass uses sums over all rows as means
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)]))


# %% mistake="two_sums_back"
# told: your backward pass uses more than one collective
# %% replace
sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
# %% by
sums = [comm.all_reduce(one.sum(0)) / total for one in (gradient, gradient * y)]


# %% mistake="variance_is_constant"
# told: your backward pass treats the variance as a constant
# %% replace
return scale * (gradient - sums[0] - y * sums[1])
# %% by
return scale * (gradient - sums[0])


# %% mistake="variances_averaged"
# told: your variance leaves out the variance between the ranks' means
# %% replace
variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
# %% by
variance = (counts * spreads).sum(0) / total
