"""What a person should look at in recordings that students handed in: copies of each other, and impossible traces.

Files are read in a process of their own under limits. A flag costs nobody a point.
"""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from edl_labs.course.grade.bounded_call import bounded_call
from edl_labs.trace.doubts import COPIED, Noise, doubts, likeness, noise_of
from edl_labs.trace.errors import TraceError
from edl_labs.trace.handed_in import read_handed_in
from edl_labs.trace.own_change import OwnPair
from edl_labs.trace.packed_trace import FILES

_READ_CPU_S = 60  # two files at their limit of events take about 20 s


@dataclass(frozen=True)
class _Read:
    """What is left of one student's two files: the odd things, the noise of each, and the call that wrote them."""

    odd: tuple[str, ...]
    noises: tuple[Noise, ...] = ()
    pair: str = ""


def recording_flags(files: Mapping[str, Mapping[str, bytes]]) -> dict[str, list[str]]:
    """By student the flags of their recordings, `files` by name; nothing for who handed in none."""
    read = {student: _read(own) for student, own in files.items() if any(name in own for name in FILES)}
    flags = {student: list(one.odd) for student, one in read.items()}
    for first, second in combinations(sorted(read), 2):
        alike = max(
            (likeness(a, b) for a, b in zip(read[first].noises, read[second].noises, strict=False)), default=0.0
        )
        said = ""
        if alike > COPIED:
            said = f"recording like {{}}'s (noise correlates {alike:.2f})"
        elif read[first].pair and read[first].pair == read[second].pair:
            said = "recording has the mark of {}'s call of hand_in"
        if said:
            flags[first].append(said.format(second))
            flags[second].append(said.format(first))
    return {student: found for student, found in flags.items() if found}


def _read(own: Mapping[str, bytes]) -> _Read:
    missing = [name for name in FILES if name not in own]
    if missing:
        return _Read((f"recording without {' and '.join(missing)}",))
    texts = [b64encode(own[name]).decode() for name in FILES]
    found = bounded_call(examined, *texts, cpu_s=_READ_CPU_S)
    if found is None:
        return _Read(("recording takes too much time or memory to read",))
    return _Read(tuple(found["odd"]), tuple(found["noises"]), found["pair"])


def examined(before: str, after: str) -> dict[str, Any]:
    """What is odd about two files in base64, and the noise of each, as JSON data."""
    try:
        sides = [read_handed_in(b64decode(text), name=name) for text, name in zip((before, after), FILES, strict=True)]
        odd = doubts(OwnPair(*sides))
    except TraceError as error:
        return {"odd": [f"recording cannot be read: {error.what}"], "noises": [], "pair": ""}
    pair = sides[0].about.get("pair")
    found = [f"recording {one}" for one in odd]
    return {
        "odd": found,
        "noises": [noise_of(one.trace) for one in sides],
        "pair": pair if isinstance(pair, str) else "",
    }
