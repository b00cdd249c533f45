# exercise: zero
# told: ranks - 1 shards of a layer are less than the layer
def sent_bytes(stage, ranks, recipe):
    """Psi, 2 Psi, 3 Psi."""
    shards = list(recipe["layers"])
    frozen, times = sum(shards[: recipe["frozen"]]), recipe["micro_batches"]
    trained = sum(shards[recipe["frozen"] :])
    gradients = trained * (2, 1, times, times)[stage]
    weights = (0, trained, trained, times * (frozen + 2 * trained))[stage]
    return recipe["gradients"] * gradients + recipe["weights"] * weights
