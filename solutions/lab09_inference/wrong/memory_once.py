# exercise: memory_plan
# told: no memory is used twice
def memory_plan(kernels, outputs, sizes, *, align):
    """The offset of each tensor."""
    offsets, end = {}, 0
    for name in sizes:
        offsets[name] = end
        end += -(-sizes[name] // align) * align
    return offsets
