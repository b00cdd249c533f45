# exercise: own_traces
# told: the change is not described


def own_change(asked):
    return {"cause": "data", "place": "dataloader", "change": "faster"}[asked]
