# exercise: fused_or_not
# told: a result that is kept was not written


def intensities(chain, *, size_bytes, keep, rightly=intensities):  # noqa: F821
    return rightly(chain, size_bytes=size_bytes, keep=[chain[-1]["writes"]])
