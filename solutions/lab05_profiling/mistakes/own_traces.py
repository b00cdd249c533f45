# %% mistake="own_cause_is_a_small_one"
# told: does not limit the loop before the change
def own_change(asked):
    return {
        "cause": "copy",
        "place": "aten::copy_",
        "change": "batches lie in pinned memory",
    }[asked]


# %% mistake="own_change_in_one_word"
# told: your answer does not describe the change
def own_change(asked):
    return {"cause": "data", "place": "dataloader", "change": "faster"}[asked]


# %% mistake="own_place_of_another_cause"
# told: the trace does not attribute this cause to the line or operator that you named
def own_change(asked):
    return {
        "cause": "data",
        "place": "aten::addmm",
        "change": "each batch is drawn as one array",
    }[asked]


# %% mistake="own_share_that_grew"
# told: did not fall
def own_change(asked):
    return {
        "cause": "compute",
        "place": "aten::mm",
        "change": "products run in fewer threads",
    }[asked]
