# exercise: fragments
# told: empty_cache does not give back holes
from functools import wraps


def _all_free(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, _ = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        return answer, sum(b["bytes"] for one in segments for b in one["blocks"] if not b["in_use"])

    return why_oom


why_oom = _all_free(why_oom)
