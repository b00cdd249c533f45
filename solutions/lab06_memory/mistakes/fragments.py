# %% mistake="all_holes_are_large"
# told: your answer overlooks a hole that has room for this request
from functools import wraps


def _large(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        large = [one for one in segments if one["pool"] == "large"]
        answer, _ = exact(large, request_bytes, stream=stream, free_bytes=free_bytes)
        return answer, exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )[1]

    return why_oom


why_oom = _large(why_oom)


# %% mistake="always_fragments"
# told: your answer is 'fragmented', but there is not that much free memory at all
from functools import wraps


def _blames(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )
        return "fragmented" if answer == "too much" else answer, returned

    return why_oom


why_oom = _blames(why_oom)


# %% mistake="any_pool_of_another_stream"
# told: your answer is 'other stream', but no stream has a large enough hole in this request's pool
# %% replace
if streams:
    return "other stream", returned
# %% by
if any(one["stream"] != stream and found >= size for one, found in holes):
    return "other stream", returned


# %% mistake="any_stream_will_do"
# told: your answer overlooks that a hole of a different stream has room
from functools import wraps


def _any(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )
        return "fragmented" if answer == "other stream" else answer, returned

    return why_oom


why_oom = _any(why_oom)


# %% mistake="asks_for_the_request"
# told: your answer is 'new segment', but the driver cannot give one
from functools import wraps


def _plainly(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )
        if answer != "fits" and free_bytes + returned >= request_bytes:
            answer = "new segment"
        return answer, returned

    return why_oom


why_oom = _plainly(why_oom)


# %% mistake="holes_added_up"
# told: no hole has room for this request
from functools import wraps


def _added(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )
        own = [one for one in segments if one["stream"] == stream]
        holes = sum(b["bytes"] for one in own for b in one["blocks"] if not b["in_use"])
        return "fits" if holes >= request_bytes else answer, returned

    return why_oom


why_oom = _added(why_oom)


# %% mistake="holes_given_back"
# told: your code counts holes, but empty_cache does not give them back
from functools import wraps


def _all_free(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, _ = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        return answer, sum(
            b["bytes"] for one in segments for b in one["blocks"] if not b["in_use"]
        )

    return why_oom


why_oom = _all_free(why_oom)


# %% mistake="never_fragments"
# told: your answer is 'too much', but the free memory would be enough if it were contiguous
from functools import wraps


def _never(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )
        return "too much" if answer == "fragmented" else answer, returned

    return why_oom


why_oom = _never(why_oom)


# %% mistake="own_holes_added_up"
# told: your code does not count the free blocks of the other pool and of other streams
# %% replace
everything = free_bytes + sum(found for _, found in holes)
# %% by
mine = [found for one, found in holes if (one["pool"], one["stream"]) == (pool, stream)]
everything = free_bytes + sum(mine)


# %% mistake="own_stream_alone"
# told: your code does not count the empty segments of other streams
from functools import wraps


def _own(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, _ = exact(segments, request_bytes, stream=stream, free_bytes=free_bytes)
        own = [
            one
            for one in segments
            if one["stream"] == stream and not any(b["in_use"] for b in one["blocks"])
        ]
        return answer, sum(b["bytes"] for one in own for b in one["blocks"])

    return why_oom


why_oom = _own(why_oom)


# %% mistake="reserved_is_in_use"
# told: your answer overlooks that the driver can give a segment after empty_cache
from functools import wraps


def _reserved(exact):
    @wraps(exact)
    def why_oom(segments, request_bytes, *, stream, free_bytes):
        answer, returned = exact(
            segments, request_bytes, stream=stream, free_bytes=free_bytes
        )
        if answer == "new segment" and free_bytes < request_bytes:
            answer = "too much"
        return answer, returned

    return why_oom


why_oom = _reserved(why_oom)
