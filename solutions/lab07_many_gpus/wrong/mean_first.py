# exercise: sync_batch_norm
# told: several sums are sent where one collective would do
def normalise(x, running, comm, *, momentum, eps):
    """A sum for the mean, and one around it."""
    count = torch.full_like(x[0], len(x))
    summed = comm.all_reduce(torch.stack([count, x.sum(0)]))
    total, mean = summed[0], summed[1] / summed[0]
    variance = comm.all_reduce(((x - mean) ** 2).sum(0)) / total
    scale = (variance + eps).rsqrt()
    y = (x - mean) * scale
    batch = mean, variance * total / (total - 1)
    after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
    return y, tuple(after), (y, scale, total)


def go_back(gradient, kept, comm):
    y, scale, total = kept
    sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
    return scale * (gradient - sums[0] - y * sums[1])
