# exercise: zero
# told: a stage keeps what the stages before it sharded
def held_bytes(stage, ranks, recipe):
    """One part a stage."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 3)
        + recipe["gradients"] * held(trained, stage == 2)
        + recipe["optimizer"] * held(trained, stage == 1)
    )
