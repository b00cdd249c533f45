"""The environment stamp for results on a clock."""

from __future__ import annotations

from edl_labs.clock import AcceleratorClock, Clock
from edl_labs.device import Device, describe


def stamp_for(clock: Clock) -> Device | None:
    """Which machine this is; of an accelerator where the clock waits for one. torch is not loaded for it."""
    device = str(clock.device) if isinstance(clock, AcceleratorClock) else "cpu"
    return describe(device, load_torch=False)
