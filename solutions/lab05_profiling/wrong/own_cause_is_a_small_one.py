# exercise: own_traces
# told: is not what limits the loop before the change


def own_change(asked):
    return {"cause": "copy", "place": "aten::copy_", "change": "batches lie in pinned memory"}[asked]
