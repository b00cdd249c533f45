# exercise: fused_or_not
# told: an input was read for every step that uses it


def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    unfused, _ = rightly(chain, size_bytes=size_bytes, keep=keep)
    made = {step["writes"] for step in chain}
    reads = sum(size_bytes[name] for step in chain for name in set(step["reads"]) - made)
    return unfused, sum(step["flop"] for step in chain) / (reads + sum(size_bytes[name] for name in keep))
