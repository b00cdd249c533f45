"""A full disk is recognised wherever it shows."""

from __future__ import annotations

import errno
import sqlite3

import pytest
from sqlalchemy.exc import OperationalError

from edl_labs.course.grade.files import is_disk_full


@pytest.mark.parametrize(
    ("full", "error"),
    [
        (True, OSError(errno.ENOSPC, "No space left on device")),
        (True, OSError(errno.EDQUOT, "Disk quota exceeded")),
        (True, sqlite3.OperationalError("database or disk is full")),
        (True, OperationalError("insert", {}, sqlite3.OperationalError("database or disk is full"))),
        (False, OSError(errno.EACCES, "Permission denied")),
        (False, sqlite3.OperationalError("database is locked")),
        (False, ValueError("the disk is full of questions")),
    ],
)
def test_only_a_full_disk_is_one(full: bool, error: Exception):
    assert full is is_disk_full(error)


def test_what_a_full_disk_brought_about_is_one_too():
    later = RuntimeError("the notebook was not written")
    later.__cause__ = OSError(errno.ENOSPC, "No space left on device")

    assert is_disk_full(later)
