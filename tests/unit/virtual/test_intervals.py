"""Parts of an interval map against a list that has the value of each position."""

from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from edl_labs.virtual.intervals import aligned, between, split, write

SIZE = 12
WRITES = st.lists(
    st.tuples(st.integers(0, SIZE - 1), st.lists(st.sampled_from("abc"), min_size=1, max_size=4)), max_size=8
)


def spread(parts):
    return [value for start, stop, value in parts for _ in range(start, stop)]


def written(writes):
    """The parts after some writes, one position a part, and the value of each position."""
    parts, naive = [(0, SIZE, "-")], ["-"] * SIZE
    for start, values in writes:
        values = values[: SIZE - start]
        write(parts, [(start + at, start + at + 1, value) for at, value in enumerate(values)])
        naive[start : start + len(values)] = values
    return parts, naive


@given(WRITES)
def test_parts_hold_what_was_written_last_and_equal_neighbours_are_one(writes):
    parts, naive = written(writes)

    assert naive == spread(parts)
    assert (0, SIZE) == (parts[0][0], parts[-1][1])
    assert all(one[1] == other[0] and one[2] != other[2] for one, other in itertools.pairwise(parts))


@given(WRITES, st.integers(0, SIZE - 1), st.integers(1, SIZE))
def test_what_is_between_two_positions_is_cut_there(writes, start, length):
    parts, naive = written(writes)
    stop = min(SIZE, start + length)
    found = between(parts, start, stop)

    assert naive[start:stop] == spread(found)
    assert (start, stop) == (found[0][0], found[-1][1])


@given(WRITES, st.integers(0, SIZE))
def test_a_split_changes_no_value_and_starts_a_part_there(writes, position):
    parts, naive = written(writes)
    at = split(parts, position)

    assert naive == spread(parts)
    assert position == (parts[at][0] if at < len(parts) else SIZE)


def test_the_second_half_of_a_split_part_is_a_copy():
    parts = [(0, 4, ["reads"])]
    split(parts, 2, copied=list)
    parts[1][2].append("more")

    assert [(0, 2, ["reads"]), (2, 4, ["reads", "more"])] == parts


@given(st.lists(WRITES, max_size=3))
def test_aligned_maps_have_one_value_of_each_in_every_stretch(several):
    made = [written(writes) for writes in several]
    found = list(aligned([parts for parts, _ in made], SIZE))

    assert [list(column) for column in zip(*(naive for _, naive in made), strict=True)] == [
        values for start, stop, values in found for _ in range(start, stop) if values
    ]
    assert (0, SIZE) == (found[0][0], found[-1][1])
