# exercise: whole_graph
# told: a call of plain Python ends the graph
def whole_graph(x, bound):
    peak = x.abs().max()
    print("peak", peak)
    x = torch.where(peak > bound, x * (bound / peak), x)
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
