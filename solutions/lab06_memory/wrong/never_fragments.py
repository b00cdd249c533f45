# exercise: fragments
# told: there would be enough if it lay together
from functools import wraps


def _never(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        return "too much" if answer == "fragmented" else answer, returned

    return why_oom


why_oom = _never(why_oom)
