# exercise: memory_plan
# told: gaps are left that nothing fits into
def memory_plan(kernels, outputs, sizes, *, align):
    """The offset of each tensor."""
    lives = lifetimes(kernels, outputs)
    shared = {name: [name] for name in lives}  # tensors that have one place
    for at, kernel in enumerate(kernels):
        for name in may_overwrite(at, kernels, outputs, sizes)[:1]:
            shared[name].append(kernel["writes"])
            shared[kernel["writes"]] = shared[name]
    offsets, placed = {}, []
    for name in sorted(lives, key=lives.get):
        if name in offsets:
            continue
        size = -(-sizes[name] // align) * align
        first = min(lives[one][0] for one in shared[name])
        last = max(lives[one][1] for one in shared[name])
        start = 0
        for low, high, since, until in sorted(placed):
            if since <= last and first <= until:
                if low - start >= size:
                    break
                start = max(start, high)
        placed.append((start, start + size, first, last))
        offsets.update(dict.fromkeys(shared[name], start))
    return offsets
