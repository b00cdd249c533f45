"""What reading a trace may refuse."""

from __future__ import annotations

from edl_labs.errors import EdlError


class TraceError(EdlError):
    """A file or a value that cannot be read as a trace, or a trace that does not hold what is asked of it."""
