# exercise: whole_graph
# told: a value that should not count is still in the sum
def whole_graph(x, bound):
    peak = x.abs().max()
    is_above = peak > bound
    x = is_above * (x * (bound / peak)) + ~is_above * x
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
