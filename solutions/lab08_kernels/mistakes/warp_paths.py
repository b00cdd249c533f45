# %% mistake="paths_across_blocks"
# told: in your function, warps reach from one block into the next
def issued(paths, lengths, block):
    """32 in a row, whatever the block."""
    warps = [set(paths[at : at + 32]) for at in range(0, len(paths), 32)]
    return sum(lengths[name] for warp in warps for name in warp)


# %% mistake="paths_by_length"
# told: your function treats paths of the same length as one path
def sorted_paths(paths, lengths, block):
    """The numbers of the elements, shorter paths first."""
    return sorted(range(len(paths)), key=lambda i: lengths[paths[i]])


# %% mistake="paths_every_thread"
# told: your function counts the path of every thread separately
# %% replace
total += sum(lengths[name] for name in set(mine[lane : lane + 32]))
# %% by
total += sum(lengths[name] for name in mine[lane : lane + 32])


# %% mistake="paths_longest"
# told: your function counts only the longest path of each warp
# %% replace
total += sum(lengths[name] for name in set(mine[lane : lane + 32]))
# %% by
total += max(lengths[name] for name in mine[lane : lane + 32])


# %% mistake="paths_names_for_numbers"
# told: your order does not contain every element once
def sorted_paths(paths, lengths, block):
    """Numbers within their block."""
    order = []
    for first in range(0, len(paths), block):
        mine = paths[first : first + block]
        order += sorted(range(len(mine)), key=lambda i: mine[i])
    return order


# %% mistake="paths_of_the_block"
# told: your function counts the paths of a whole block for each warp
# %% replace
for lane in range(0, len(mine), 32):
    total += sum(lengths[name] for name in set(mine[lane : lane + 32]))
# %% by
for _ in range(0, len(mine), 32):
    total += sum(lengths[name] for name in set(mine))


# %% mistake="paths_set_of_lengths"
# told: your function counts two paths of the same length as one path
# %% replace
total += sum(lengths[name] for name in set(mine[lane : lane + 32]))
# %% by
total += sum({lengths[name] for name in mine[lane : lane + 32]})


# %% mistake="paths_unsorted"
# told: your function sorts elements only within their blocks
def sorted_paths(paths, lengths, block):
    """Sorts within each block."""
    order = []
    for first in range(0, len(paths), block):
        mine = range(first, min(first + block, len(paths)))
        order += sorted(mine, key=lambda i: paths[i])
    return order
