# exercise: whole_graph
# told: a peak below the bound is scaled up
def whole_graph(x, bound):
    peak = x.abs().max()
    x = torch.where(peak > 0, x * (bound / peak), x)
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
