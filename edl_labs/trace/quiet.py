"""Keeping Kineto's remarks on stderr away: stderr text in a check cell would cost its marks."""

from __future__ import annotations

import os
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet_profiler() -> Iterator[None]:
    """A context whose output to stderr, that of C libraries too, is dropped."""
    with warnings.catch_warnings(), tempfile.TemporaryFile() as sink:
        warnings.simplefilter("ignore")
        kept = os.dup(2)
        os.dup2(sink.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
