# exercise: whole_graph
# told: nothing of the function is compiled
@torch.compiler.disable
def _by_hand(x, bound):
    peak = x.abs().max()
    x = torch.where(peak > bound, x * (bound / peak), x)
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak


def whole_graph(x, bound):
    return _by_hand(x, bound)
