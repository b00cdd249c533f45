# exercise: fused_or_not
# told: unfused, every tensor was counted once


def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    _, fused = rightly(chain, size_bytes=size_bytes, keep=keep)
    names = {name for step in chain for name in (*step["reads"], step["writes"])}
    return sum(step["flop"] for step in chain) / sum(size_bytes[name] for name in names), fused
