"""Recordings of a class: every kind of forged pair is flagged or loses points, honest ones are neither."""

from __future__ import annotations

from functools import cache

import pytest

from edl_labs.course.marks.recording_flags import recording_flags
from edl_labs.errors import Wrong
from edl_labs.trace.packed_trace import FILES
from tests.unit.trace.forged_pairs import SOURCE, forged_pairs
from tests.unit.trace.own_traces import as_file, cpu_loops, pair_of, recorded

CAUSES = {
    **dict.fromkeys(("host events", "waits added before", "fewer rows", "an after of another"), "copy"),
    "kernels": "copy",
    "products": "copy",
    "copies": "copy",
    "a CPU's": "copy",
    "a card": "copy",
}


@cache
def the_forged() -> dict[str, dict[str, bytes]]:
    """The files of each forged pair; a pair of their own by the name of what was done."""
    return {name: dict(zip(FILES, map(as_file, pair), strict=True)) for name, pair in forged_pairs().items()}


def the_honest() -> dict[str, dict[str, bytes]]:
    """Five real loops, each recorded by two students."""
    first = {name: dict(zip(FILES, recorded(name), strict=True)) for name in cpu_loops()}
    again = {f"{name}, by another": dict(zip(FILES, recorded.__wrapped__(name), strict=True)) for name in first}
    return first | again


def loses(name: str) -> str:
    """Why a forged pair does not get all points; empty where it does."""
    pair = pair_of(*(the_forged()[name][file] for file in FILES))
    cause = next((cause for start, cause in CAUSES.items() if name.startswith(start)), "data")
    try:
        pair.require_same_work()
        pair.require_cause(cause)
        pair.require_fall(cause)
        pair.require_possible_gain(cause)
    except Wrong as wrong:
        return wrong.what
    return ""


def test_honest_recordings_have_no_flag() -> None:
    assert {} == recording_flags(the_honest())


@pytest.mark.parametrize("name", forged_pairs())
def test_a_forged_pair_is_flagged_or_loses_points(name: str) -> None:
    victim = dict(zip(FILES, recorded(SOURCE), strict=True))
    flags = recording_flags({"victim": victim, "forger": the_forged()[name]})

    assert flags.get("forger") or loses(name)


@pytest.mark.parametrize("name", [name for name in forged_pairs() if "copy" in name.split()[:3]])
def test_a_copy_is_flagged_with_whose_it_is(name: str) -> None:
    victim = dict(zip(FILES, recorded(SOURCE), strict=True))
    flags = recording_flags({"victim": victim, "forger": the_forged()[name]})

    assert any("recording resembles victim's" in flag for flag in flags["forger"])
    assert any("recording resembles forger's" in flag for flag in flags["victim"])


def test_half_a_pair_and_hostile_bytes_are_flagged_and_nobody_elses_reading_stops() -> None:
    files = {"half": {FILES[0]: b""}, "broken": dict.fromkeys(FILES, b"\x1f\x8b"), "none": {}}
    flags = recording_flags(files)

    assert ["recording without own_after.json.gz"] == flags["half"]
    assert "cannot be read" in flags["broken"][0]
    assert "none" not in flags
