# exercise: sync_batch_norm
# told: the variance between the ranks is lost
def normalise(x, running, comm, *, momentum, eps):
    """Averages the variances of the ranks."""
    count = torch.full_like(x[0], len(x))
    parts = comm.all_gather(torch.stack([count, x.mean(0), x.var(0, correction=0)]))
    counts, means, spreads = torch.stack(parts).unbind(1)
    total = counts.sum(0)
    mean = (counts * means).sum(0) / total
    variance = (counts * spreads).sum(0) / total
    scale = (variance + eps).rsqrt()
    y = (x - mean) * scale
    batch = mean, variance * total / (total - 1)
    after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
    return y, tuple(after), (y, scale, total)


def go_back(gradient, kept, comm):
    y, scale, total = kept
    sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
    return scale * (gradient - sums[0] - y * sums[1])
