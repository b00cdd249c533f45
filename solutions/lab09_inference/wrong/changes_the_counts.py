# exercise: calibrate
# told: Your function modified its input
def calibrate(counts, edges, *, method, symmetric):
    """Scale and zero point for what a histogram has seen."""
    seen = torch.tensor(counts)
    for at in range(1, len(counts)):
        counts[at] += counts[at - 1]
    counts, edges = seen, torch.tensor(edges, dtype=torch.float64)
    centres, total = (edges[:-1] + edges[1:]) / 2, counts.sum()

    def error(low, high):
        scale, zero = grid(low, high, symmetric=symmetric)
        lowest = scale * ((-127 if symmetric else -128) - zero)
        beyond = (lowest - centres).clamp(min=0)
        beyond = beyond + (centres - scale * (127 - zero)).clamp(min=0)
        cost = torch.where(beyond > 0, beyond**2, torch.tensor(scale**2 / 12))
        return float((counts * cost).sum())

    def lost(low, high):
        return float(counts[(centres < low) | (centres > high)].sum() / total)

    ends = edges.tolist()
    if symmetric:
        pairs = [(-end, end) for end in sorted({abs(end) for end in ends}) if end]
    else:
        pairs = [(a, b) for at, a in enumerate(ends) for b in ends[at + 1 :]]
    if method == "least":
        return grid(*min(pairs, key=lambda pair: error(*pair)), symmetric=symmetric)
    if symmetric:
        most = 0.001 if method == "percentile" else 0.0
        kept = next(pair for pair in pairs if lost(*pair) <= most)
        return grid(*kept, symmetric=True)
    most = 0.0005 if method == "percentile" else 0.0
    low = max(end for end in ends[:-1] if lost(end, ends[-1]) <= most)
    high = min(end for end in ends[1:] if lost(ends[0], end) <= most)
    return grid(low, high, symmetric=False)
