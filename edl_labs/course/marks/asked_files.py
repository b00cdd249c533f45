"""Finds the files that exercises need next to the notebook, under any name that a learning system gives them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from difflib import get_close_matches

from edl_labs.course.grade.submission import MOST_RECORDING_BYTES
from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms.learning_system import Upload

# Of a resubmission systems and browsers put a number before the last ending, or before both.
_NUMBER = r"(?:-(?P<system{0}>\d{{1,3}})| \((?P<browser{0}>\d{{1,3}})\))?"
_NAME = re.compile(rf"(?P<stem>\w+?){_NUMBER.format(1)}\.json{_NUMBER.format(2)}(?P<packed>\.gz)?{_NUMBER.format(3)}")
_ALIKE = 0.85  # of the letters: own_before for own_after has 0.8
_LONG_AGO = datetime.min
_UNPACKED = b"{"  # browsers unpack a download that is served as JSON, and keep or drop the ending
_Key = tuple[str, datetime | None, int]  # of a set: its archive, its time, its number
_Ranked = tuple[tuple[int, float], bytes]  # what is higher for a later file, and its bytes


def wanted_name(file: str, wanted: Sequence[str]) -> tuple[str, int]:
    """The wanted file that a file's name means, and the number of the resubmission; ('', 0) for any other name.

    Capital letters mean the same: a system of files that does not tell them apart may have changed them.

    >>> wanted_name("Own_After.json-2.gz", ["own_after.json.gz"]), wanted_name("x.json.gz", ["own_after.json.gz"])
    (('own_after.json.gz', 2), ('', 0))
    """
    found = _NAME.fullmatch(file.lower())
    name = f"{found['stem']}.json.gz" if found else ""
    if found is None or name not in wanted:
        return "", 0
    numbers = [int(text) for key, text in found.groupdict().items() if text and key not in ("stem", "packed")]
    return name, max(numbers, default=0)


def wanted_files(
    everything: Iterable[tuple[Upload, Entry]], wanted: Sequence[str]
) -> tuple[dict[str, bytes], list[str]]:
    """The wanted files by name, and remarks. The newest set that is complete counts, else the newest of each.

    A set is what came in one archive, at one time where the system says it, or with one number of a resubmission.
    """
    everything = list(everything)
    sets: dict[_Key, dict[str, _Ranked]] = {}
    remarks: list[str] = []
    for one, entry in everything:
        name, number = wanted_name(entry.name, wanted)
        if not name:
            continue
        data = gzip.compress(entry.data, mtime=0) if entry.data[:1] == _UNPACKED else entry.data
        if len(data) > MOST_RECORDING_BYTES:
            remarks.append(
                f"{name} was left out: it has {len(data):,} bytes, but the limit is {MOST_RECORDING_BYTES:,} bytes"
            )
            continue
        archive = "" if entry.path == one.file else one.entry.path
        rank = (one.number, max(one.entry.order, entry.order))
        kept = sets.setdefault((archive, one.time, number), {})
        if name not in kept or kept[name][0] <= rank:
            kept[name] = rank, data
    found = _newest(sets, wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        remarks.append(f"missing next to the notebook: {', '.join(missing)}")
        remarks += _misnamed([entry.name for _, entry in everything], missing, wanted)
    return found, remarks


def _misnamed(names: Sequence[str], missing: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """A remark for each missing file with the name that is nearest to its own, its odd letters written as numbers.

    >>> _misnamed(["\u043ewn_after.json.gz", "a.csv"], ["own_after.json.gz"], ["own_after.json.gz"])
    ["'\\\\u043ewn_after.json.gz' was left out; check whether it is own_after.json.gz under a different name"]
    """
    others = [name for name in names if not wanted_name(name, wanted)[0]]
    found = []
    for name in missing:
        # A long name is compared in a time that grows with its square, and none that looks alike is twice as long.
        short = [other for other in others if len(other) <= 2 * len(name)]
        for other in get_close_matches(name, short, n=1, cutoff=_ALIKE):
            found.append(f"{other!a} was left out; check whether it is {name} under a different name")
    return found


def _newest(
    sets: Mapping[tuple[str, datetime | None, int], Mapping[str, tuple[tuple[int, float], bytes]]],
    wanted: Sequence[str],
) -> dict[str, bytes]:
    ordered = sorted(
        sets.items(), key=lambda item: (item[0][1] or _LONG_AGO, item[0][2], max(rank for rank, _ in item[1].values()))
    )
    complete = [kept for _, kept in ordered if len(kept) == len(wanted)]
    chosen = complete[-1:] or [kept for _, kept in ordered]
    return {name: data for kept in chosen for name, (_, data) in kept.items()}
