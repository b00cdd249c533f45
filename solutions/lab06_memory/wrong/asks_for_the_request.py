# exercise: fragments
# told: the driver cannot give a segment for it
from functools import wraps


def _plainly(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        if answer != "fits" and free_bytes + returned >= request_bytes:
            answer = "new segment"
        return answer, returned

    return why_oom


why_oom = _plainly(why_oom)
