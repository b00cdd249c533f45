# exercise: whole_graph
# told: the peak is not that of x as it came
def whole_graph(x, bound):
    peak = x.abs().max()
    x = torch.where(peak > bound, x * (bound / peak), x)
    y = torch.where(x.sum() > 0, x.relu(), x - x.mean())
    return y, x.abs().max()
