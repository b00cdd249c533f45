# exercise: fragments
# told: no stream has a hole for it in this request's pool
def why_oom(segments, request_bytes, *, stream, free_bytes):
    """What becomes of a request, and the bytes that empty_cache would give back."""
    size = -(-request_bytes // 512) * 512
    pool = "small" if size <= 1 << 20 else "large"
    asked = 2 << 20 if pool == "small" else 20 << 20 if size < 10 << 20 else -(-size // (2 << 20)) * (2 << 20)
    holes = [(one, block["bytes"]) for one in segments for block in one["blocks"] if not block["in_use"]]
    returned = sum(found for one, found in holes if not any(block["in_use"] for block in one["blocks"]))
    streams = [one["stream"] for one, found in holes if one["pool"] == pool and found >= size]
    if stream in streams:
        return "fits", returned
    if free_bytes + returned >= asked:
        return "new segment", returned
    if any(one["stream"] != stream and found >= size for one, found in holes):
        return "other stream", returned
    everything = free_bytes + sum(found for _, found in holes)
    return "fragmented" if everything >= size else "too much", returned
