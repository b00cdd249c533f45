"""The files that exercises ask for next to the notebook: those of one upload together, whatever systems call them."""

from __future__ import annotations

import gzip
import re
from collections.abc import Iterable, Mapping, Sequence

from edl_labs.course.grade.submission import MOST_RECORDING_BYTES
from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms.learning_system import Upload

# Of a resubmission systems and browsers put a number before the last ending, or before both.
_NUMBER = r"(?:-(?P<system{0}>\d{{1,3}})| \((?P<browser{0}>\d{{1,3}})\))?"
_NAME = re.compile(rf"(?P<stem>\w+?){_NUMBER.format(1)}\.json{_NUMBER.format(2)}(?P<packed>\.gz)?{_NUMBER.format(3)}")
_UNPACKED = b"{"  # browsers unpack a download that is served as JSON, and keep or drop the ending


def wanted_name(file: str, wanted: Sequence[str]) -> tuple[str, int]:
    """The wanted file that a file's name means, and the number of the resubmission; ('', 0) for any other name.

    >>> wanted_name("own_after.json-2.gz", ["own_after.json.gz"]), wanted_name("x.json.gz", ["own_after.json.gz"])
    (('own_after.json.gz', 2), ('', 0))
    """
    found = _NAME.fullmatch(file)
    name = f"{found['stem']}.json.gz" if found else ""
    if found is None or name not in wanted:
        return "", 0
    numbers = [int(text) for key, text in found.groupdict().items() if text and key not in ("stem", "packed")]
    return name, max(numbers, default=0)


def wanted_files(
    everything: Iterable[tuple[Upload, Entry]], wanted: Sequence[str]
) -> tuple[dict[str, bytes], list[str]]:
    """The wanted files by name, and remarks. The newest set that is complete counts, else the newest of each.

    A set is what came in one archive, or with one number of a resubmission.
    """
    sets: dict[tuple[str, int], dict[str, tuple[tuple[int, float], bytes]]] = {}
    remarks: list[str] = []
    for one, entry in everything:
        name, number = wanted_name(entry.name, wanted)
        if not name:
            continue
        data = gzip.compress(entry.data, mtime=0) if entry.data[:1] == _UNPACKED else entry.data
        if len(data) > MOST_RECORDING_BYTES:
            remarks.append(
                f"{name} has {len(data):,} bytes, and was left out: at most {MOST_RECORDING_BYTES:,} are read"
            )
            continue
        archive = "" if entry.path == one.file else one.entry.path
        rank = (one.number, max(one.entry.order, entry.order))
        kept = sets.setdefault((archive, number), {})
        if name not in kept or kept[name][0] <= rank:
            kept[name] = rank, data
    found = _newest(sets, wanted)
    missing = [name for name in wanted if name not in found]
    if missing:
        remarks.append(f"missing next to the notebook: {', '.join(missing)}")
    return found, remarks


def _newest(
    sets: Mapping[tuple[str, int], Mapping[str, tuple[tuple[int, float], bytes]]], wanted: Sequence[str]
) -> dict[str, bytes]:
    ordered = sorted(sets.items(), key=lambda item: (item[0][1], max(rank for rank, _ in item[1].values())))
    complete = [kept for _, kept in ordered if len(kept) == len(wanted)]
    chosen = complete[-1:] or [kept for _, kept in ordered]
    return {name: data for kept in chosen for name, (_, data) in kept.items()}
