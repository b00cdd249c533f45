# exercise: memory_plan
# told: a tensor is written over that is read again
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"] and name not in outputs and sizes[name] == sizes[kernel["writes"]]
    ]
