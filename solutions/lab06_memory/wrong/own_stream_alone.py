# exercise: fragments
# told: empty segments of other streams go back as well
from functools import wraps


def _own(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, _ = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        own = [one for one in segments if one["stream"] == stream and not any(b["in_use"] for b in one["blocks"])]
        return answer, sum(b["bytes"] for one in own for b in one["blocks"])

    return why_oom


why_oom = _own(why_oom)
