# exercise: whole_graph
# told: an if asks for the value of a tensor
def whole_graph(x, bound):
    peak = x.abs().max()
    if peak > bound:
        x = x * (bound / peak)
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
