"""The download of any other system: a regular expression with named groups tells the owner of each file."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms.learning_system import Upload
from edl_labs.course.marks.written_times import read_time
from edl_labs.errors import UsageError

_GROUPS = ("user", "name", "time", "late", "file")
_EXAMPLE = r"--pattern '(?P<user>\w+)_attempt_(?P<time>[\d-]+)_(?P<file>.+)'"


@dataclass(frozen=True)
class NamedFiles:
    """Uploads by a pattern that fits the whole path of a file.

    Its groups: `user` (a number, login or address of the roster) or `name` (the full name), and where there are any
    `time` (when it was handed in), `late` (matched, the file is late) and `file` (the student's own name for it).
    """

    pattern: re.Pattern[str]

    @classmethod
    def written(cls, text: str) -> NamedFiles:
        """The pattern as a person wrote it; UsageError where it is none, or does not say whose a file is."""
        try:
            pattern = re.compile(text)
        except re.error as error:
            raise UsageError(
                f"--pattern is not a regular expression: {error}", next=f"write, for example: {_EXAMPLE}"
            ) from None
        unknown = pattern.groupindex.keys() - set(_GROUPS)
        if unknown or not pattern.groupindex.keys() & {"user", "name"}:
            what = (
                f"has an unknown group `{sorted(unknown)[0]}`"
                if unknown
                else "has neither a group `user` nor a group `name`"
            )
            why = f"a pattern needs the group `user` or `name`, and may have {', '.join(_GROUPS[2:])}"
            raise UsageError(f"--pattern {what}", why=why, next=f"write, for example: {_EXAMPLE}")
        return cls(pattern)

    def upload(self, entry: Entry) -> Upload | None:
        """Whose file an entry is; None where the pattern does not fit its path."""
        found = self.pattern.fullmatch(entry.path)
        if found is None:
            return None
        user, name, text, late, file = (found.groupdict().get(group) or "" for group in _GROUPS)
        time = _time(text, entry.path) if text else None
        number = int(time.replace(tzinfo=UTC).timestamp()) if time else 0
        file = file.split("/")[-1] or entry.name
        return Upload(user or name, name, file, entry, number=number, late=bool(late), time=time)


def _time(text: str, path: str) -> datetime:
    found = read_time(text)
    if found is None:
        why = "a wrong time would cost points, so times are never guessed"
        then = "leave the group `time` out of the pattern, and pass a table with --times"
        raise UsageError(f"{text!r} in {path} is not a time", why=why, next=then)
    return found
