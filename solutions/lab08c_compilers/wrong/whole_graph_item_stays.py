# exercise: whole_graph
# told: a number is read from the device
def whole_graph(x, bound):
    peak = x.abs().max().item()
    x = x * (bound / peak) if peak > bound else x
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
