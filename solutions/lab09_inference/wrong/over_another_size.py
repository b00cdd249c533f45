# exercise: memory_plan
# told: a tensor of another size is written over
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    later = {name for one in kernels[at + 1 :] for name in one["reads"]}
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"] and name not in later | set(outputs) and sizes[name] >= sizes[kernel["writes"]]
    ]
