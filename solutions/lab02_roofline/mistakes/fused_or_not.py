# %% mistake="each_tensor_once"
# told: in the unfused case, your code counts every tensor once
def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    _, fused = rightly(chain, size_bytes=size_bytes, keep=keep)
    names = {name for step in chain for name in (*step["reads"], step["writes"])}
    return sum(step["flop"] for step in chain) / sum(
        size_bytes[name] for name in names
    ), fused


# %% mistake="every_use_is_a_read"
# told: in the fused case, your code reads an input again for every step that uses it
def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    unfused, _ = rightly(chain, size_bytes=size_bytes, keep=keep)
    made = {step["writes"] for step in chain}
    reads = sum(
        size_bytes[name] for step in chain for name in set(step["reads"]) - made
    )
    return unfused, sum(step["flop"] for step in chain) / (
        reads + sum(size_bytes[name] for name in keep)
    )


# %% mistake="intermediates_go_to_memory"
# told: in the fused case, your code writes all results to memory
def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    unfused, _ = rightly(chain, size_bytes=size_bytes, keep=keep)
    names = {name for step in chain for name in (*step["reads"], step["writes"])}
    return unfused, sum(step["flop"] for step in chain) / sum(
        size_bytes[name] for name in names
    )


# %% mistake="only_the_last_is_written"
# told: in the fused case, your code does not write a result that is in `keep`
def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    return rightly(chain, size_bytes=size_bytes, keep=[chain[-1]["writes"]])
