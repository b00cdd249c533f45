# exercise: whole_graph
# told: the branch for sums above 0 is missing
def whole_graph(x, bound):
    peak = x.abs().max()
    x = torch.where(peak > bound, x * (bound / peak), x)
    return x - x.mean(), peak
