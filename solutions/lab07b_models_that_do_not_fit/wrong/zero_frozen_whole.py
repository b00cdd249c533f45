# exercise: zero
# told: frozen weights are sharded as well
def held_bytes(stage, ranks, recipe):
    """What is trained is sharded."""
    trained = recipe["layers"][recipe["frozen"] :]
    frozen = recipe["layers"][: recipe["frozen"]]

    def held(layers, sharded):
        return sum(-(-count // ranks) if sharded else count for count in layers)

    return (
        recipe["weights"] * (held(frozen, False) + held(trained, stage >= 3))
        + recipe["gradients"] * held(trained, stage >= 2)
        + recipe["optimizer"] * held(trained, stage >= 1)
    )
