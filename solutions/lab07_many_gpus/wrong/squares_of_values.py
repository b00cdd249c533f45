# exercise: sync_batch_norm
# told: digits are lost
def normalise(x, running, comm, *, momentum, eps):
    """Sums of values and of their squares."""
    count = torch.full_like(x[0], len(x))
    total, mean, squares = comm.all_reduce(torch.stack([count, x.sum(0), (x * x).sum(0)]))
    mean = mean / total
    variance = (squares / total - mean**2).clamp(min=0)
    scale = (variance + eps).rsqrt()
    y = (x - mean) * scale
    batch = mean, variance * total / (total - 1)
    after = [old + momentum * (new - old) for old, new in zip(running, batch, strict=True)]
    return y, tuple(after), (y, scale, total)


def go_back(gradient, kept, comm):
    y, scale, total = kept
    sums = comm.all_reduce(torch.stack([gradient.sum(0), (gradient * y).sum(0)])) / total
    return scale * (gradient - sums[0] - y * sums[1])
