# %% mistake="whole_graph_always_scaled"
# told: your function scales x up when its peak is below the bound
# %% replace
x = torch.where(peak > bound, x * (bound / peak), x)
# %% by
x = torch.where(peak > 0, x * (bound / peak), x)


# %% mistake="whole_graph_disabled"
# told: no part of your function is compiled
@torch.compiler.disable
def _by_hand(x, bound):
    peak = x.abs().max()
    x = torch.where(peak > bound, x * (bound / peak), x)
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak


def whole_graph(x, bound):
    return _by_hand(x, bound)


# %% mistake="whole_graph_if_stays"
# told: in your function, an `if` depends on the value of a tensor
# %% replace
x = torch.where(peak > bound, x * (bound / peak), x)
# %% by
if peak > bound:
    x = x * (bound / peak)


# %% mistake="whole_graph_item_stays"
# told: your function reads a number from the device
def whole_graph(x, bound):
    peak = x.abs().max().item()
    x = x * (bound / peak) if peak > bound else x
    return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak


# %% mistake="whole_graph_masks"
# told: in your function, a value that should be ignored still affects the result
# %% replace
x = torch.where(peak > bound, x * (bound / peak), x)
# %% by
is_above = peak > bound
x = is_above * (x * (bound / peak)) + ~is_above * x


# %% mistake="whole_graph_never_scaled"
# told: your function does not scale x down when its peak is above the bound
# %% replace
x = torch.where(peak > bound, x * (bound / peak), x)
# %% by


# %% mistake="whole_graph_one_branch"
# told: your function lacks the branch for sums of at most 0
# %% replace
return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
# %% by
return x.relu(), peak


# %% mistake="whole_graph_other_branch"
# told: your function lacks the branch for sums above 0
# %% replace
return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
# %% by
return x - x.mean(), peak


# %% mistake="whole_graph_peak_behind"
# told: your peak is not that of the original x
# %% replace
return torch.where(x.sum() > 0, x.relu(), x - x.mean()), peak
# %% by
y = torch.where(x.sum() > 0, x.relu(), x - x.mean())
return y, x.abs().max()


# %% mistake="whole_graph_print_stays"
# told: in your function, a call to a plain Python function ends the graph
# %% replace
peak = x.abs().max()
# %% by
peak = x.abs().max()
print("peak", peak)
