"""Flags submitted recordings that a person should look at: copies of each other, and impossible traces.

Files are read in a process of their own under limits. A flag costs no points.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from edl_labs.checks import plain_data
from edl_labs.course.grade.file_reader import FileReader
from edl_labs.trace.doubts import doubts
from edl_labs.trace.errors import TraceError
from edl_labs.trace.handed_in import read_handed_in
from edl_labs.trace.packed_trace import FILES
from edl_labs.trace.recording_noise import COPIED, Noise, likeness, noise_of

_EXAMINES = "edl_labs.course.marks.recording_flags:examined"


@dataclass(frozen=True)
class _Read:
    """What is left of one student's two files: the odd things, the noise of each, and the call that wrote them."""

    odd: tuple[str, ...]
    noises: tuple[Noise, ...] = ()
    pair: str = ""


def recording_flags(files: Mapping[str, Mapping[str, bytes]]) -> dict[str, list[str]]:
    """By student the flags of their recordings, `files` by name; nothing for who handed in none."""
    with FileReader(_EXAMINES) as reader:
        read = {student: _read(own, reader) for student, own in files.items() if any(name in own for name in FILES)}
    flags = {student: list(one.odd) for student, one in read.items()}
    for first, second in combinations(sorted(read), 2):
        alike = max(
            (likeness(a, b) for a, b in zip(read[first].noises, read[second].noises, strict=False)), default=0.0
        )
        said = ""
        if alike > COPIED:
            said = f"recording resembles {{}}'s (correlation of the noise: {alike:.2f})"
        elif read[first].pair and read[first].pair == read[second].pair:
            said = "recording has the identifier of {}'s call of hand_in"
        if said:
            flags[first].append(said.format(second))
            flags[second].append(said.format(first))
    return {student: found for student, found in flags.items() if found}


def _read(own: Mapping[str, bytes], reader: FileReader) -> _Read:
    missing = [name for name in FILES if name not in own]
    if missing:
        return _Read((f"recording without {' and '.join(missing)}",))
    found = plain_data.decode(reader.read({name: own[name] for name in FILES}).data)
    if "refused" in found:
        return _Read((f"recording cannot be read: {found['refused'][0]}",))
    return _Read(tuple(found["odd"]), tuple(found["noises"]), found["pair"])


def examined(files: Mapping[str, bytes]) -> dict[str, Any]:
    """What is odd about two files, and the noise of each, as plain data."""
    try:
        before, after = (read_handed_in(files[name], name=name) for name in FILES)
        odd = doubts(before, after)
    except TraceError as error:
        return {"refused": [error.what, error.why, error.next]}
    pair = before.about.get("pair")
    return {
        "odd": [f"recording {one}" for one in odd],
        "noises": [noise_of(one) for one in (before, after)],
        "pair": pair if isinstance(pair, str) else "",
    }
