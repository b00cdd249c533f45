# exercise: whole_graph
# told: a peak above the bound is not scaled down
def whole_graph(x, bound):
    peak = x.abs().max()
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
