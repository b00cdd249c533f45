"""Downloads of systems that edl_labs does not know: a pattern says whose a file is, and perhaps when it came."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.archives import Entry
from edl_labs.course.marks.lms.named_files import NamedFiles
from edl_labs.errors import UsageError


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "not a regular expression"),
        ("(?P<file>.+)", "has neither a group `user` nor a group `name`"),
        ("(?P<user>.+)_(?P<student_id>.+)", "has an unknown group `student_id`"),
    ],
)
def test_a_pattern_that_says_nothing_is_refused(pattern: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        NamedFiles.written(pattern)


def test_a_time_that_is_not_certain_is_refused() -> None:
    files = NamedFiles.written("(?P<user>.+?)_(?P<time>.+?)_(?P<file>.+)")
    with pytest.raises(UsageError, match="03/04/2026' in ada_03"):
        files.upload(Entry("ada_03/04/2026_x.ipynb", b""))


def test_a_file_that_does_not_fit_is_nobodys() -> None:
    assert None is NamedFiles.written("(?P<user>.+)_x").upload(Entry("readme.txt", b""))
