# exercise: place_checkpoints
# told: everything is kept, and it does not fit


def place(layers, budget_bytes):
    return []
