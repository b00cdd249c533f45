# %% mistake="counted_beside"
# told: your function counts both a tensor and the output that overwrites it
def least_bytes(kernels, outputs, sizes, *, align):
    """The most bytes that one kernel needs in memory."""
    lives, needs = lifetimes(kernels, outputs), []
    for at in range(len(kernels)):
        here = {name for name, (first, last) in lives.items() if first <= at <= last}
        needs.append(sum(-(-sizes[name] // align) * align for name in here))
    return max(needs)


# %% mistake="given_away_before_it_is_read"
# told: in your answer, the lifetime of a tensor ends before its last reader runs
# %% replace
lives[name] = (first, at)
# %% by
lives[name] = (first, max(0, at - 1))


# %% mistake="inputs_from_their_reader"
# told: in your answer, the lifetime of an input begins at the wrong kernel
# %% replace
first = lives[name][0] if name in lives else 0
# %% by
first = lives[name][0] if name in lives else at


# %% mistake="life_ends_with_the_first_reader"
# told: in your answer, the lifetime of a tensor ends with its first reader
# %% replace
lives = {}
# %% by
lives, ends = {}, set()
# %% replace
lives[name] = (first, at)
# %% by
if name not in ends:
    lives[name] = (first, at)
    ends.add(name)


# %% mistake="memory_once"
# told: your plan reuses no memory
def memory_plan(kernels, outputs, sizes, *, align):
    """The offset of each tensor."""
    offsets, end = {}, 0
    for name in sizes:
        offsets[name] = end
        end += -(-sizes[name] // align) * align
    return offsets


# %% mistake="nothing_in_place"
# told: your plan overwrites no tensor in place
# %% replace
for name in may_overwrite(at, kernels, outputs, sizes)[:1]:
    shared[name].append(kernel["writes"])
    shared[kernel["writes"]] = shared[name]
# %% by
for name in may_overwrite(at, kernels, outputs, sizes)[:0]:
    shared[name].append(kernel["writes"])
    shared[kernel["writes"]] = shared[name]


# %% mistake="offsets_unaligned"
# told: one of your offsets is not a multiple of the alignment
# %% replace
size = -(-sizes[name] // align) * align
# %% by
size = sizes[name]


# %% mistake="outputs_given_away"
# told: in your answer, the lifetime of an output ends before the caller has read it
# %% replace
for name in outputs:
    lives[name] = (lives[name][0], len(kernels) - 1)
# %% by


# %% mistake="over_an_output"
# told: in your answer, an output of the network is overwritten
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    later = {name for one in kernels[at + 1 :] for name in one["reads"]}
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"]
        and name not in later
        and sizes[name] == sizes[kernel["writes"]]
    ]


# %% mistake="over_another_size"
# told: in your answer, a tensor is overwritten by one of a different size
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    later = {name for one in kernels[at + 1 :] for name in one["reads"]}
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"]
        and name not in later | set(outputs)
        and sizes[name] >= sizes[kernel["writes"]]
    ]


# %% mistake="over_by_any_kernel"
# told: in your answer, a kernel that is not `in_place` overwrites a tensor that it reads
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    later = {name for one in kernels[at + 1 :] for name in one["reads"]}
    return [
        name
        for name in kernel["reads"]
        if name not in later | set(outputs) and sizes[name] == sizes[kernel["writes"]]
    ]


# %% mistake="over_what_is_read_again"
# told: in your answer, a tensor that is read again later is overwritten
def may_overwrite(at, kernels, outputs, sizes):
    """What kernel `at` may write over."""
    kernel = kernels[at]
    return [
        name
        for name in kernel["reads"]
        if kernel["in_place"]
        and name not in outputs
        and sizes[name] == sizes[kernel["writes"]]
    ]


# %% mistake="placed_in_order_of_time"
# told: your plan leaves gaps that no tensor fits into
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


# %% mistake="sizes_as_they_are"
# told: your function does not round sizes up to the alignment
# %% replace
needs.append(sum(-(-sizes[name] // align) * align for name in here))
# %% by
needs.append(sum(sizes[name] for name in here))


# %% mistake="sum_rounded_once"
# told: your function rounds up the sum, not the size of each tensor
# %% replace
needs.append(sum(-(-sizes[name] // align) * align for name in here))
# %% by
needs.append(-(-sum(sizes[name] for name in here) // align) * align)


# %% mistake="tensors_of_the_kernel_alone"
# told: your function counts only the tensors that a kernel itself reads and writes
# %% replace
lives, needs = lifetimes(kernels, outputs), []
# %% by
needs = []
# %% replace
here = {name for name, (first, last) in lives.items() if first <= at <= last}
# %% by
here = {*kernel["reads"], kernel["writes"]}
