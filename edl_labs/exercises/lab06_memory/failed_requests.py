"""fragments: why a request fails, from the allocator's segments with their holes, and what empty_cache would free."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong
from edl_labs.units import byte_count
from edl_labs.virtual.memory.allocator.allocator_pools import (
    LARGE_SEGMENT,
    MIN_BLOCK,
    MIN_LARGE_ALLOC,
    ROUND_LARGE,
    SMALL_SEGMENT,
)

_SMALL = 1 << 20  # bytes: the largest request of the small pool
ANSWERS = ("fits", "new segment", "other stream", "fragmented", "too much")


@exercise("fragments")
class Fragments(Exercise):
    """What becomes of a request for memory, and the bytes that `empty_cache` would give back.

    `why_oom(segments, request_bytes, stream=, free_bytes=)` gives (one of ANSWERS, bytes).
    """

    answers = "all"

    def probe(self, student: Any, given: Any) -> Any:
        segments = [{**one, "blocks": [{**block} for block in one["blocks"]]} for one in given["segments"]]
        options = {name: given[name] for name in ("stream", "free_bytes")}
        return student.why_oom(segments, given["request_bytes"], **options)

    def compare(self, case: Any, got: Any, want: Any) -> None:
        if len(got) != 2:
            raise Wrong(
                "your function must return a word and a number",
                why=f"the number of returned values is {len(got)}",
                next="return the answer, then the bytes",
            )
        if got[0] not in ANSWERS:
            why = f"got {str(got[0])[:30]!r}; the answers are {', '.join(ANSWERS)}"
            raise Wrong("your answer is not one of the five words", why=why, next="return one of these words")
        if got[1] != want[1]:
            raise _freed_symptom(case, got, want[0])
        if got[0] != want[0]:
            raise _SYMPTOMS.get((want[0], got[0]), _other_symptom)(case, got[0])

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """Free blocks that may not serve a request, and are taken for it in all cases; all else is right."""
        rows = list(zip(cases, got, want, strict=True))
        found = [
            told
            for pool, stream, *told in _TAKEN
            if all(
                mine[0] in _with_taken(case, pool, stream, right[0]) and mine[1] == right[1]
                for case, mine, right in rows
            )
        ]
        if got == want or len(found) != 1:
            return None
        what, why, then = found[0]
        return Wrong(what, why=f"your answers are right except where {why}", next=then)

    def format_case(self, case: Any) -> str:
        """The request and the segments, a row each."""
        head = (
            f"a request for {byte_count(case['request_bytes'])} ({case['request_bytes']} bytes) on stream "
            f"{case['stream']}; the driver has {byte_count(case['free_bytes'])} left"
        )
        rows = [f"  {one['pool']}, stream {one['stream']}: {_row(one)}" for one in case["segments"]]
        return "\n".join([head, *rows])


def _row(segment: Any) -> str:
    return ", ".join(f"{byte_count(b['bytes'])} {'in use' if b['in_use'] else 'free'}" for b in segment["blocks"])


def _freed_symptom(case: Any, got: Any, answer: str) -> Wrong:
    said = got[1]
    if got[0] == answer and not said and answer in ("fits", "new segment", "other stream"):
        why = f"{answer!r} is right, but there are empty segments, which it would give back"
        return Wrong(
            "your answer for empty_cache is 0, but it would free memory",
            why=why,
            next="count the bytes that empty_cache gives back, in every case",
        )
    free = sum(b["bytes"] for one in case["segments"] for b in one["blocks"] if not b["in_use"])
    why = f"{byte_count(free)} are free in segments; got {said!r} bytes"
    if said == free:
        then = "count only segments in which every block is free: the driver takes back whole segments"
        return Wrong("your code counts holes, but empty_cache does not give them back", why=why, next=then)
    own = sum(
        sum(b["bytes"] for b in one["blocks"])
        for one in case["segments"]
        if one["stream"] == case["stream"] and _is_empty(one)
    )
    if said == own:
        then = "count these segments too: empty_cache frees empty segments of all streams"
        return Wrong("your code does not count the empty segments of other streams", why=why, next=then)
    then = "add up the segments in which no block is in use"
    return Wrong("your number of bytes that empty_cache gives back is wrong", why=why, next=then)


def _other_symptom(case: Any, said: str) -> Wrong:
    why = f"got {said!r}; the five questions are asked in the order of the text, and the first yes decides"
    then = "go through the questions for the case shown"
    return Wrong("your answer is not the outcome of this request", why=why, next=then)


def _is_empty(segment: Any) -> bool:
    return not any(block["in_use"] for block in segment["blocks"])


def _holes(case: Any) -> list[int]:
    return [size for _, size in _placed_holes(case)]


def _placed_holes(case: Any) -> list[tuple[Any, int]]:
    """The free blocks, each with its segment."""
    return [(one, b["bytes"]) for one in case["segments"] for b in one["blocks"] if not b["in_use"]]


def _pool(case: Any) -> str:
    return "small" if case["request_bytes"] <= _SMALL else "large"


def _rounded(case: Any) -> int:
    return -(-int(case["request_bytes"]) // MIN_BLOCK) * MIN_BLOCK


def _is_taken(case: Any, any_pool: bool, any_stream: bool) -> bool:
    """Whether a free block is large enough, of any pool or any stream where that is so."""
    return any(
        b >= _rounded(case)
        for one, b in _placed_holes(case)
        if (any_pool or one["pool"] == _pool(case)) and (any_stream or one["stream"] == case["stream"])
    )


def _with_taken(case: Any, any_pool: bool, any_stream: bool, right: str) -> tuple[str, ...]:
    """What may be answered where such blocks are taken: those of the other pool perhaps for question 3, too."""
    if _is_taken(case, any_pool, any_stream):
        return ("fits",)
    if any_pool and right in ("fragmented", "too much") and _is_taken(case, True, True):
        return (right, "other stream")
    return (right,)


# Each is (any pool, any stream, what is wrong, where it shows, what to do).
_TAKEN: tuple[tuple[bool, bool, str, str, str], ...] = (
    (
        False,
        True,
        "for question 1, your code accepts a free block of any stream",
        "the only blocks that are large enough belong to other streams",
        "compare the segment's stream with the request's stream",
    ),
    (
        True,
        False,
        "for question 1, your code accepts a free block of any pool",
        "the only blocks that are large enough belong to the other pool",
        "compare the segment's pool with the pool of the request",
    ),
    (
        True,
        True,
        "for question 1, your code accepts a free block of any pool and any stream",
        "the only blocks that are large enough belong to the other pool or to other streams",
        "compare the segment's pool and its stream with those of the request",
    ),
)


def _for_holes(case: Any, said: str) -> Wrong:
    large = [b for one, b in _placed_holes(case) if (one["pool"], one["stream"]) == ("large", case["stream"])]
    if case["request_bytes"] == _SMALL and max(large, default=0) >= _SMALL:
        why = "the request is for exactly 1 MiB, and only the large pool has a hole for it"
        then = "use the small pool for requests of up to and including 1 MiB"
        return Wrong("your code puts a request of 1 MiB into the large pool", why=why, next=then)
    why = "the bytes of empty_cache are right; no single free block of this pool and stream is large enough"
    then = "look for one block in the request's own pool and stream, after rounding the request up to 512 B"
    return Wrong("your answer is 'fits', but no hole has room for this request", why=why, next=then)


def _for_segments(case: Any, said: str) -> Wrong:
    size = _rounded(case)
    kind, needed = f"a large request of at least {MIN_LARGE_ALLOC >> 20} MiB", -(-size // ROUND_LARGE) * ROUND_LARGE
    if _pool(case) == "small":
        kind, needed = "a small request", SMALL_SEGMENT
    elif size < MIN_LARGE_ALLOC:
        kind, needed = f"a large request below {MIN_LARGE_ALLOC >> 20} MiB", LARGE_SEGMENT
    back = sum(b for one, b in _placed_holes(case) if _is_empty(one))
    why = (
        f"{kind} needs a segment of {needed >> 20} MiB ({byte_count(needed)}) here; the driver has "
        f"{byte_count(case['free_bytes'])} left, and empty_cache gives back {byte_count(back)}"
    )
    return Wrong(
        "your answer is 'new segment', but the driver cannot give one",
        why=why,
        next="how large is the segment for which your code asks the driver?",
    )


def _for_cached(case: Any, said: str) -> Wrong:
    if not any(_is_empty(one) for one in case["segments"]):
        why = f"the driver has {byte_count(case['free_bytes'])} left, which is enough for the segment"
        then = "how large a segment does this request need: 2 MiB, 20 MiB, or a multiple of 2 MiB?"
        return Wrong("your answer overlooks that the driver can give a segment for this request", why=why, next=then)
    back = sum(b for one, b in _placed_holes(case) if _is_empty(one))
    why = f"the driver has {byte_count(case['free_bytes'])} left, and empty_cache gives back {byte_count(back)}"
    then = "how much is free after torch has given back its empty segments, and how much is needed?"
    return Wrong("your answer overlooks that the driver can give a segment after empty_cache", why=why, next=then)


def _for_driver(case: Any, said: str) -> Wrong:
    back = sum(b for one, b in _placed_holes(case) if _is_empty(one))
    why = (
        f"the driver has {byte_count(case['free_bytes'])} left, and empty_cache gives back {byte_count(back)}: "
        "together this is enough for the new segment"
    )
    then = "ask question 2, about the driver, before question 3, about other streams"
    return Wrong("your answer is 'other stream', but the driver can give a new segment", why=why, next=then)


def _for_total(case: Any, said: str) -> Wrong:
    if sum(_holes(case)) + case["free_bytes"] >= case["request_bytes"]:
        why = (
            f"the requested {case['request_bytes']} bytes are free in all, but the rounded request is larger than that"
        )
        then = "round the request up to a multiple of 512 bytes before any comparison"
        return Wrong("your code does not round the request up first", why=why, next=then)
    why = "all free memory, in every segment and at the driver, is less than the request"
    return Wrong(
        "your answer is 'fragmented', but there is not that much free memory at all",
        why=why,
        next="add up all free memory before you blame holes",
    )


def _for_sum(case: Any, said: str) -> Wrong:
    request, all_holes = case["request_bytes"], sum(_holes(case))
    if all_holes < request:
        why = f"{byte_count(all_holes)} are free in segments, and together with the driver's free bytes, that is enough"
        return Wrong(
            "your code does not count the driver's free bytes",
            why=why,
            next="add the driver's free bytes to the holes, as question 4 says",
        )
    apart = {
        "of the other pool": [b for one, b in _placed_holes(case) if one["pool"] != _pool(case)],
        "of other streams": [b for one, b in _placed_holes(case) if one["stream"] != case["stream"]],
    }
    needed = {whose: sum(b) for whose, b in apart.items() if all_holes + case["free_bytes"] - sum(b) < request}
    if needed:
        sums = " and ".join(f"{byte_count(found)} {whose}" for whose, found in needed.items())
        why = (
            f"{byte_count(all_holes + case['free_bytes'])} are free in all, including {sums}; without these, it is "
            "too little"
        )
        then = "count all free blocks, of every pool and stream, as question 4 says"
        return Wrong(f"your code does not count the free blocks {' and '.join(needed)}", why=why, next=then)
    why = f"{byte_count(all_holes + case['free_bytes'])} are free, but in pieces"
    return Wrong(
        "your answer is 'too much', but the free memory would be enough if it were contiguous",
        why=why,
        next="add up all free memory, wherever it is",
    )


def _for_fitting(case: Any, said: str) -> Wrong:
    why = "one free block of the request's pool and stream is large enough"
    then = "round the request up to 512 B, and use the small pool for at most 1 MiB"
    return Wrong("your answer overlooks a hole that has room for this request", why=why, next=then)


def _for_stream(case: Any, said: str) -> Wrong:
    why = "a block of a different stream would be large enough, but work on this stream must not write there"
    return Wrong(
        "your answer overlooks that a hole of a different stream has room",
        why=why,
        next="which stream does the hole belong to?",
    )


def _for_other_pool(case: Any, said: str) -> Wrong:
    if max(_holes(case), default=0) < case["request_bytes"]:
        return _other_symptom(case, said)
    why = f"the free blocks that are large enough are in the {'large' if _pool(case) == 'small' else 'small'} pool"
    then = "look only at blocks of the request's own pool, even on other streams"
    return Wrong(
        "your answer is 'other stream', but no stream has a large enough hole in this request's pool",
        why=why,
        next=then,
    )


_SYMPTOMS: dict[tuple[str, str], Any] = {
    **{(want, "fits"): _for_holes for want in ANSWERS if want != "fits"},
    **{("fits", said): _for_fitting for said in ANSWERS if said != "fits"},
    **{(want, "new segment"): _for_segments for want in ("other stream", "fragmented", "too much")},
    **{("new segment", said): _for_cached for said in ("fragmented", "too much")},
    **{("other stream", said): _for_stream for said in ("fragmented", "too much")},
    **{(want, "other stream"): _for_other_pool for want in ("fragmented", "too much")},
    ("new segment", "other stream"): _for_driver,
    ("too much", "fragmented"): _for_total,
    ("fragmented", "too much"): _for_sum,
}
