"""What reading a trace may refuse."""

from __future__ import annotations

from edl_labs.errors import EdlError


class TraceError(EdlError):
    """A file or a value is no trace that can be read, or a trace does not hold what is asked of it."""
