"""What is wrong with how something is timed, found while it is timed: a class for each kind of mistake."""

from __future__ import annotations

from edl_labs.bench.detectors.detection import KINDS, Detection, get_ready, mistake

__all__ = ["KINDS", "Detection", "get_ready", "mistake"]
