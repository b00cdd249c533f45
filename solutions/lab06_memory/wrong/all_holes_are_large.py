# exercise: fragments
# told: a hole has room for this request
from functools import wraps


def _large(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        large = [one for one in segments if one["pool"] == "large"]
        answer, _ = exact(large, request_bytes, stream=stream, free_bytes=free_bytes)
        return answer, exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)[1]

    return why_oom


why_oom = _large(why_oom)
