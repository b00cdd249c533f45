# exercise: fragments
# told: no hole has room for this request
from functools import wraps


def _added(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        own = [one for one in segments if one["stream"] == stream]
        holes = sum(b["bytes"] for one in own for b in one["blocks"] if not b["in_use"])
        return "fits" if holes >= request_bytes else answer, returned

    return why_oom


why_oom = _added(why_oom)
