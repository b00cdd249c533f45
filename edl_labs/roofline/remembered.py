"""Measured machines on disk: one file for each device, driver and setting, so that a notebook measures once."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from pathlib import Path
from typing import Any

from edl_labs.device import Device
from edl_labs.errors import UsageError
from edl_labs.roofline.machine import SCHEMA, Machine

VERSION = 1
# What a ceiling depends on: another value means that it must be measured again.
_FACTS = ("kind", "device_name", "driver", "cuda", "torch", "threads", "usable_cores", "sm_count", "memory_bytes")


def folder() -> Path:
    """Where measured machines are kept: EDL_LABS_CACHE, or the user's cache folder."""
    named = os.environ.get("EDL_LABS_CACHE")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "edl_labs"


def path_for(stamp: Device, *, asked: Any = None) -> Path:
    """The file of the machine with this stamp; `asked` is what else was asked for (dtypes)."""
    facts = {name: getattr(stamp, name) for name in _FACTS}
    text = json.dumps([SCHEMA, VERSION, facts, asked], sort_keys=True, default=str)
    return folder() / f"ceilings-{hashlib.sha256(text.encode()).hexdigest()[:16]}.json"


def read(path: Path) -> Machine | None:
    """The machine in a file; None where there is none, or none that can be read."""
    try:
        return Machine.from_json(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError, UsageError):
        return None


def write(path: Path, machine: Machine) -> None:
    """Keep a machine, whole or not at all; a folder that cannot be written to keeps nothing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile("w", dir=path.parent, suffix=".new", delete=False, encoding="utf-8") as file:
            json.dump(machine.to_json(), file)
        os.replace(file.name, path)
    except OSError:
        return
