"""What a result was measured with: this machine, and the version of every package."""

from __future__ import annotations

import datetime
import os
from importlib import metadata
from typing import Any

SCHEMA = 1
# Settings that change what runs where; nothing else of the environment is anybody's business.
_VARIABLES = ("CUDA_VISIBLE_DEVICES", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "PYTORCH_CUDA_ALLOC_CONF", "TORCH_LOGS")


def environment(device: str | None = None) -> dict[str, Any]:
    """The environment stamp of `device`, with package versions, as plain JSON."""
    from edl_labs import __version__
    from edl_labs.device import describe

    return {
        "schema": SCHEMA,
        "edl_labs": __version__,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": describe(device).to_dict(),
        "variables": {name: os.environ[name] for name in _VARIABLES if name in os.environ},
        "packages": packages(),
    }


def packages() -> dict[str, str]:
    """The version of every installed package, by its name in lower case."""
    found = {str(d.metadata["Name"]).lower(): d.version for d in metadata.distributions() if d.metadata["Name"]}
    return dict(sorted(found.items()))
