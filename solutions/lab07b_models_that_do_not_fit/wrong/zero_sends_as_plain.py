# exercise: zero
# told: every stage sends what plain data parallel training does
def sent_bytes(stage, ranks, recipe):
    """2 Psi."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    _frozen, _times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * 2
    weights = 0
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)
