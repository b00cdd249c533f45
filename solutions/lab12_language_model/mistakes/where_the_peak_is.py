# %% mistake="peak_all_kept"
# told: Your function counts checkpointed layers as if they kept everything
# %% replace
kept = width * item * positions if step["checkpointed"] else whole
again = whole if step["checkpointed"] else 0
# %% by
kept = whole
again = 0


# %% mistake="peak_at_the_loss"
# told: Your function returns the loss as the peak
# %% replace
moment = max(rows, key=lambda name: sum(rows[name]))
# %% by
moment = "loss"


# %% mistake="peak_copies_in_bf16"
# told: Your function counts the three copies of the logits in the type of the weights
# %% replace
rows = {
    "loss": (layers * kept, 0, 12 * positions * step["vocabulary"]),
    "last layer": (layers * kept + again, item * table, 0),
    "first layer": (kept + again, item * behind_first, 0),
    "optimizer": (0, item * parameters, 0),
}
# %% by
rows = {
    "loss": (layers * kept, 0, 3 * item * positions * step["vocabulary"]),
    "last layer": (layers * kept + again, item * table, 0),
    "first layer": (kept + again, item * behind_first, 0),
    "optimizer": (0, item * parameters, 0),
}


# %% mistake="peak_early_gradients"
# told: Your function counts gradients before they exist
def where_the_peak_is(step):
    """(moment, largest part, bytes of all parts) where a step holds most memory."""
    item, width, layers = step["itemsize"], step["width"], step["layers"]
    positions, table = step["batch"] * step["tokens"], step["vocabulary"] * width
    parameters = 12 * layers * width**2 + 2 * table
    states = parameters * (item + 8 + (4 if item == 2 else 0))
    whole = 16 * width * item * positions
    kept = width * item * positions if step["checkpointed"] else whole
    again = whole if step["checkpointed"] else 0
    # activations, gradients and logits of each moment
    rows = {
        "loss": (layers * kept, item * parameters, 12 * positions * step["vocabulary"]),
        "last layer": (layers * kept + again, item * parameters, 0),
        "first layer": (kept + again, item * parameters, 0),
        "optimizer": (0, item * parameters, 0),
    }
    moment = max(rows, key=lambda name: sum(rows[name]))
    named = dict(zip(("activations", "gradients", "logits"), rows[moment], strict=True))
    named["states"] = states
    return moment, max(named, key=named.get), sum(named.values())


# %% mistake="peak_in_gigabytes"
# told: Your peak has the wrong size.
# %% replace
return moment, max(named, key=named.get), sum(named.values())
# %% by
return moment, max(named, key=named.get), sum(named.values()) / 1e9


# %% mistake="peak_no_logits"
# told: Your function leaves out the logits
# %% replace
rows = {
    "loss": (layers * kept, 0, 12 * positions * step["vocabulary"]),
    "last layer": (layers * kept + again, item * table, 0),
    "first layer": (kept + again, item * behind_first, 0),
    "optimizer": (0, item * parameters, 0),
}
# %% by
rows = {
    "loss": (layers * kept, 0, 0),
    "last layer": (layers * kept + again, item * table, 0),
    "first layer": (kept + again, item * behind_first, 0),
    "optimizer": (0, item * parameters, 0),
}


# %% mistake="peak_no_master"
# told: Your function leaves out the fp32 copy of the weights
# %% replace
states = parameters * (item + 8 + (4 if item == 2 else 0))
# %% by
states = parameters * (item + 8)


# %% mistake="peak_nothing_again"
# told: Your function leaves out what a checkpointed layer recomputes
# %% replace
again = whole if step["checkpointed"] else 0
# %% by
again = 0


# %% mistake="peak_one_copy"
# told: Your function counts the logits once, in the type of the weights
# %% replace
rows = {
    "loss": (layers * kept, 0, 12 * positions * step["vocabulary"]),
    "last layer": (layers * kept + again, item * table, 0),
    "first layer": (kept + again, item * behind_first, 0),
    "optimizer": (0, item * parameters, 0),
}
# %% by
rows = {
    "loss": (layers * kept, 0, item * positions * step["vocabulary"]),
    "last layer": (layers * kept + again, item * table, 0),
    "first layer": (kept + again, item * behind_first, 0),
    "optimizer": (0, item * parameters, 0),
}


# %% mistake="peak_one_table"
# told: Your function leaves out one of the two tables
# %% replace
parameters = 12 * layers * width**2 + 2 * table
# %% by
parameters = 12 * layers * width**2 + table


# %% mistake="peak_own_names"
# told: The name of the part is unknown
# %% replace
named = dict(zip(("activations", "gradients", "logits"), rows[moment], strict=True))
# %% by
named = dict(zip(("acts", "gradients", "logits"), rows[moment], strict=True))


# %% mistake="peak_states_largest"
# told: Your function returns the states as the largest part
# %% replace
return moment, max(named, key=named.get), sum(named.values())
# %% by
return moment, "states", sum(named.values())
