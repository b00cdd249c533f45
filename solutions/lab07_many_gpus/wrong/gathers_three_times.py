# exercise: sync_batch_norm
# told: one collective forward is enough
def normalise(x, running, comm, *, momentum, eps):
    """Gathers each number by itself."""
    count = torch.full_like(x[0], len(x))
    three = (count, x.mean(0), x.var(0, correction=0))
    counts, means, spreads = (torch.stack(comm.all_gather(one)) for one in three)
    total = counts.sum(0)
    mean = (counts * means).sum(0) / total
    variance = (counts * (spreads + (means - mean) ** 2)).sum(0) / total
    scale = (variance + eps).rsqrt()
    y = (x - mean) * scale
    batch = mean, variance * total / (total - 1)
    after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
    return y, tuple(after), (y, scale, total)


def go_back(gradient, kept, comm):
    y, scale, total = kept
    sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
    return scale * (gradient - sums[0] - y * sums[1])
