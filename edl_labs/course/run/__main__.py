"""Runs one notebook in its own process: reads a job from stdin, and writes one JSON line per event to stdout.

Run as `python -m edl_labs.course.run`. The process is disposable: whatever a cell does to it, the events that it
wrote before still count. A SIGTERM ends it and its kernel.
"""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from collections.abc import Mapping
from typing import Any

from edl_labs.course.course_folder import without_grammars


def main() -> None:
    """Runs the job on stdin."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))
    events = os.fdopen(os.dup(1), "w", encoding="utf-8")
    # Whatever a kernel or a library writes to stdout must not be taken for an event.
    os.dup2(2, 1)
    job = json.loads(sys.stdin.read())
    logging.disable(logging.CRITICAL)

    def emit(event: Mapping[str, Any]) -> None:
        events.write(json.dumps(event, default=str) + "\n")
        events.flush()

    with without_grammars():  # nbformat imports jsonschema when it reads, not only when it is imported
        from edl_labs.course.run.watched_kernel import run_job

        run_job(job, emit=emit)


if __name__ == "__main__":
    main()
