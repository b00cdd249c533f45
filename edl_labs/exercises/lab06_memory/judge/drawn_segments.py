"""The cases of fragments: maps of an allocator's segments, each made for one end of a request."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_KIB, _MIB = 1 << 10, 1 << 20  # the units of the allocator's own rules


@case_source("fragments")
def maps(rng: Any) -> list[Case]:
    return [Case(given=make(rng)) for make in _MAKERS]


def _case(rng: Any, segments: list[Any], request: int, free: int) -> dict[str, Any]:
    order = rng.permutation(len(segments))
    stream = int(rng.integers(3, 9))
    shifted = [{**one, "stream": stream + one["stream"]} for one in segments]
    kept = [shifted[i] for i in order]
    return {"segments": kept, "request_bytes": request, "stream": stream, "free_bytes": free}


def _segment(parts: list[int], *, stream: int = 0, pool: str = "large", used: int = 0) -> dict[str, Any]:
    """Blocks of `parts` bytes, in use and free by turns; the first is in use unless `used` is 1."""
    blocks = [{"bytes": size, "in_use": place % 2 == used} for place, size in enumerate(parts)]
    if pool == "large" and not used:
        # The driver gives 20 MiB, or an even number of MiB from 10 on: what is missing is in use.
        total = sum(parts)
        blocks[0]["bytes"] += max(10 * _MIB, -(-total // (2 * _MIB)) * 2 * _MIB) - total
    return {"pool": pool, "stream": stream, "blocks": blocks}


def _empty(size: int, *, stream: int = 0, pool: str = "large") -> dict[str, Any]:
    return _segment([size], stream=stream, pool=pool, used=1)


def _few(rng: Any, low: int, high: int) -> int:
    return int(rng.integers(low, high)) * _MIB


def _hole_fits(rng: Any) -> Any:
    hole = _few(rng, 14, 30)
    segments = [_segment([_few(rng, 4, 12), hole, _few(rng, 4, 12), 2 * _MIB]), _segment([_few(rng, 20, 40)])]
    return _case(rng, [*segments, _empty(_few(rng, 5, 9) * 2)], hole - int(rng.integers(1, 511)), 0)


def _one_byte_too_many(rng: Any) -> Any:
    """Two holes of which neither has room, by one byte that is rounded up to 512."""
    hole = _few(rng, 14, 30)
    segments = [_segment([_few(rng, 4, 12), hole]), _segment([_few(rng, 4, 12), hole, _few(rng, 2, 8)])]
    return _case(rng, segments, hole + 1, 2 * _MIB)


def _small_hole(rng: Any) -> Any:
    hole = int(rng.integers(700, 1024)) * _KIB
    small = _segment([2 * _MIB - hole, hole], pool="small")
    return _case(rng, [small, _segment([_few(rng, 11, 30)])], hole - int(rng.integers(0, 500)), 0)


def _large_holes_for_a_small_one(rng: Any) -> Any:
    """A small request, holes in the large pool only, and a driver with less than a small segment."""
    segments = [_segment([_few(rng, 10, 20), _few(rng, 5, 9)]), _segment([2 * _MIB], pool="small")]
    return _case(rng, segments, int(rng.integers(300, 1024)) * _KIB, _MIB)


def _empty_segments(rng: Any) -> Any:
    """Two empty segments of two streams, each too small, that are enough together."""
    first, second = _few(rng, 10, 20) * 2, _few(rng, 10, 20) * 2
    request = first + second - int(rng.integers(1, _MIB))
    segments = [_empty(first), _empty(second, stream=1), _segment([_few(rng, 8, 20), _few(rng, 2, 8)])]
    return _case(rng, segments, request, 0)


def _empty_of_another_stream(rng: Any) -> Any:
    first = _few(rng, 20, 30) * 2
    segments = [_empty(first, stream=1), _segment([_few(rng, 8, 20), _few(rng, 2, 6)])]
    return _case(rng, segments, first - int(rng.integers(0, _MIB)), 0)


def _driver_alone(rng: Any) -> Any:
    request = _few(rng, 10, 20) * 2
    return _case(rng, [_segment([_few(rng, 20, 40), _few(rng, 3, 9)])], request, request)


def _hole_of_another_stream(rng: Any) -> Any:
    hole = _few(rng, 20, 40)
    segments = [_segment([_few(rng, 4, 12), hole], stream=1), _segment([_few(rng, 8, 20), _few(rng, 2, 8)])]
    segments.append(_empty(10 * _MIB, stream=2))
    return _case(rng, segments, hole - int(rng.integers(0, _MIB)), 2 * _MIB)


def _pieces(rng: Any) -> Any:
    holes = [_few(rng, 12, 20) for _ in range(3)]
    segments = [_segment([_few(rng, 4, 12), hole, _few(rng, 2, 6)]) for hole in holes]
    segments.append(_empty(_few(rng, 5, 9) * 2))
    return _case(rng, segments, sum(holes) - int(rng.integers(1, 4)) * _MIB, 2 * _MIB)


def _middling(rng: Any) -> Any:
    """A request below 10 MiB asks for a segment of 20 MiB, which does not exist."""
    request = _few(rng, 4, 9) + int(rng.integers(1, _MIB))
    return _case(rng, [_segment([_few(rng, 12, 20), 3 * _MIB])], request, _few(rng, 10, 15))


def _odd_megabytes(rng: Any) -> Any:
    """10 MiB and more are rounded up to 2 MiB: the driver has an odd number of them, one too few."""
    request = (2 * int(rng.integers(10, 20)) + 1) * _MIB
    return _case(rng, [_segment([_few(rng, 12, 20), 2 * _MIB])], request, request + _MIB // 2)


def _nothing_left(rng: Any) -> Any:
    holes = [_few(rng, 3, 8) for _ in range(2)]
    segments = [_segment([_few(rng, 30, 60), hole]) for hole in holes] + [_empty(_few(rng, 5, 9) * 2)]
    return _case(rng, segments, sum(holes) + _few(rng, 20, 40), 2 * _MIB)


def _exact_bounds(rng: Any) -> Any:
    """Exactly 1 MiB is small, and a small segment of 2 MiB is to be had."""
    segments = [_segment([_few(rng, 12, 20), _few(rng, 5, 9)]), _segment([2 * _MIB], pool="small")]
    return _case(rng, segments, _MIB, 2 * _MIB)


def _exactly_ten(rng: Any) -> Any:
    """Exactly 10 MiB is asked for as it is."""
    return _case(rng, [_segment([_few(rng, 12, 20), _few(rng, 5, 9)])], 10 * _MIB, 10 * _MIB)


def _just_large(rng: Any) -> Any:
    """A little more than 1 MiB belongs to the large pool, and finds a hole there."""
    segments = [_segment([_few(rng, 8, 20), 2 * _MIB, _few(rng, 2, 6)]), _segment([2 * _MIB], pool="small")]
    return _case(rng, segments, _MIB + int(rng.integers(1, _MIB // 2)), 0)


def _twenty_at_the_driver(rng: Any) -> Any:
    """A request below 10 MiB, and a driver with exactly its segment."""
    return _case(rng, [_segment([_few(rng, 12, 20), 2 * _MIB])], _few(rng, 4, 9), 20 * _MIB)


def _nearly_twenty(rng: Any) -> Any:
    """The largest request of a segment of 20 MiB, and a driver with one byte less."""
    return _case(rng, [_segment([_few(rng, 12, 20), 2 * _MIB])], 10 * _MIB - 512, 20 * _MIB - 1)


def _nearly_two(rng: Any) -> Any:
    segments = [_segment([_few(rng, 12, 20), 4 * _MIB]), _segment([2 * _MIB], pool="small")]
    return _case(rng, segments, int(rng.integers(300, 1024)) * _KIB, 2 * _MIB - 1)


def _exactly_enough(rng: Any) -> Any:
    """All that is free is exactly the request."""
    holes = [_few(rng, 12, 20) for _ in range(2)]
    return _case(rng, [_segment([_few(rng, 4, 12), hole, _few(rng, 2, 6)]) for hole in holes], sum(holes), 0)


def _rounded_beyond_all(rng: Any) -> Any:
    """All that is free is exactly what is asked for, and less than what that is rounded up to."""
    holes, rest = [_few(rng, 12, 20) for _ in range(2)], int(rng.integers(513, 1023))
    segments = [_segment([_few(rng, 4, 12), hole, _few(rng, 2, 6)]) for hole in holes]
    return _case(rng, segments, sum(holes) + rest, rest)


def _pieces_of_others(rng: Any) -> Any:
    """Enough is free in all, but little of it in the request's own pool and stream."""
    holes = [_few(rng, 12, 20) for _ in range(3)]
    segments = [_segment([_few(rng, 4, 12), holes[0], _few(rng, 2, 6)])]
    segments += [
        _segment([_few(rng, 4, 12), hole, _few(rng, 2, 6)], stream=stream) for stream, hole in enumerate(holes[1:], 1)
    ]
    segments.append(_segment([_MIB, _MIB], pool="small"))
    return _case(rng, segments, sum(holes) + _MIB - int(rng.integers(1, 500)) * _KIB, 0)


def _small_request_large_hole_elsewhere(rng: Any) -> Any:
    """Only a hole of another stream and of the other pool is large enough."""
    segments = [_segment([_few(rng, 12, 16), _few(rng, 3, 6)], stream=1), _segment([_few(rng, 20, 30)])]
    return _case(rng, segments, int(rng.integers(100, 900)) * _KIB, _MIB)


_MAKERS = (
    _hole_fits, _pieces, _empty_segments, _hole_of_another_stream, _nothing_left, _empty_of_another_stream,
    _small_hole, _large_holes_for_a_small_one, _one_byte_too_many, _middling, _driver_alone, _odd_megabytes,
    _exact_bounds, _exactly_ten, _just_large, _twenty_at_the_driver, _nearly_twenty, _nearly_two, _exactly_enough,
    _rounded_beyond_all, _pieces_of_others, _small_request_large_hole_elsewhere,
)  # fmt: skip
