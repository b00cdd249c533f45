"""Exercises that judge a plain run, and then a record of the same work: what the plain run shows is said first."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from edl_labs.errors import Wrong

_Judge = Callable[[Any, Any, Any], None]


def plain_before_record(plain: _Judge, record: _Judge, rows: Iterable[tuple[Any, Any, Any]]) -> Wrong | None:
    """What `plain` says of a later case, where each of the cases before it failed by `record` alone."""
    has_failed = False
    for row in rows:
        try:
            plain(*row)
        except Wrong as found:
            return found if has_failed else None
        try:
            record(*row)
        except Wrong:
            has_failed = True
    return None
