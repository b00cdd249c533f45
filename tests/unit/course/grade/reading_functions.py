"""What processes that read files are told to do here: to measure themselves, to break out, and not to end."""

from __future__ import annotations

import os
import resource
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edl_labs.trace.pair_facts import pair_facts


def measured(files: Mapping[str, bytes]) -> dict[str, Any]:
    """The facts of a pair, and the process's peak."""
    return {"facts": pair_facts(files), "peak_bytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024}


def tried(files: Mapping[str, bytes]) -> dict[str, Any]:
    """What happens to somebody who has taken the process over: by deed the error, or what came of it."""
    here = files["here"].decode()
    deeds = {
        "write": lambda: Path(here).write_bytes(b"x"),
        "append": lambda: open(here + ".there", "a").close(),
        "remove": lambda: os.remove(here + ".there"),
        "socket": socket.socket,
        "fork": os.fork,
        "run": lambda: os.execv("/bin/true", ["true"]),
        "kill": lambda: os.kill(os.getppid(), 0),
    }
    found = {}
    for name, deed in deeds.items():
        try:
            deed()
            found[name] = "done"
        except OSError as error:
            found[name] = type(error).__name__
    return found


def endless(_: object) -> None:
    while True:
        pass


def hoarding(_: object) -> int:
    return len([bytes(1 << 28) for _ in range(100)])


def ended(_: object) -> None:
    os._exit(3)


def failing(_: object) -> None:
    raise RecursionError("anything")
