"""Small facts that outlast a restart of the kernel: JSON files in a folder next to the notebook."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any

STATE_DIR = ".edl_labs"  # a folder next to the notebook


def files_beside(names: Iterable[str], folder: Path, *, most_bytes: int = 5_000_000) -> dict[str, bytes]:
    """The bytes of files in a folder by name: of plain files of at most `most_bytes`, links not followed."""
    found: dict[str, bytes] = {}
    for name in names:
        path = folder / name
        with suppress(OSError):
            if path.is_file() and not path.is_symlink() and path.stat().st_size <= most_bytes:
                found[name] = path.read_bytes()
    return found


def is_notebook() -> bool:
    """Whether this process is a notebook's kernel."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return type(shell).__name__ == "ZMQInteractiveShell"


def read_beside(name: str) -> dict[str, Any]:
    """What is stored next to the notebook under a name; empty where there is nothing that can be read."""
    try:
        found = json.loads((Path(STATE_DIR) / f"{name}.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):  # anybody may have written there, brackets by the thousand too
        return {}
    return found if isinstance(found, dict) else {}


def write_beside(name: str, kept: dict[str, Any]) -> None:
    """Keep facts under a name, all or nothing; a folder that cannot be written to is no trouble."""
    path = Path(STATE_DIR) / f"{name}.json"
    with suppress(OSError):
        path.parent.mkdir(exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(json.dumps(kept, indent=1, sort_keys=True), encoding="utf-8")
        os.replace(part, path)
