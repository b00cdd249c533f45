# exercise: fragments
# told: reserved memory was taken for memory in use
from functools import wraps


def _reserved(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        if answer == "new segment" and free_bytes < request_bytes:
            answer = "too much"
        return answer, returned

    return why_oom


why_oom = _reserved(why_oom)
