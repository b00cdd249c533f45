# exercise: memory_plan
# told: an output of the network is written over
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    later = {name for one in kernels[at + 1 :] for name in one["reads"]}
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"] and name not in later and sizes[name] == sizes[kernel["writes"]]
    ]
