"""The mistake detector: what is wrong with how something is timed, found while it is timed."""

from __future__ import annotations

from edl_labs.bench.detectors.detection import Detection, get_ready
from edl_labs.bench.detectors.messages import KINDS, mistake

__all__ = ["KINDS", "Detection", "get_ready", "mistake"]
