# exercise: whole_graph
# told: the branch for sums of at most 0 is missing
def whole_graph(x, bound):
    peak = x.abs().max()
    x = torch.where(peak > bound, x * (bound / peak), x)
    return x.relu(), peak
