# exercise: zero
# told: each stage was taken for the next one
def held_bytes(stage, ranks, recipe):
    """Counted from one."""
    trained = recipe["layers"][recipe["frozen"] :]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * held(recipe["layers"], stage >= 2)
        + recipe["gradients"] * held(trained, stage >= 1)
        + recipe["optimizer"] * held(trained, True)
    )
