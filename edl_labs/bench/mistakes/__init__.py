"""The mistake detector: what is wrong with how something is timed, found while it is timed."""

from __future__ import annotations

from edl_labs.bench.mistakes.session import Session, get_ready
from edl_labs.bench.mistakes.texts import KINDS, mistake

__all__ = ["KINDS", "Session", "get_ready", "mistake"]
