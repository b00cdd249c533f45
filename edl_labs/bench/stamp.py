"""The environment stamp for results on a clock."""

from __future__ import annotations

import dataclasses

from edl_labs.clock import Clock, device_behind, is_modelled
from edl_labs.device import Device, describe


def stamp_for(clock: Clock) -> Device | None:
    """Which machine this is; of an accelerator where the clock times one. torch is not loaded for it.

    On a VirtualGPU's clock the device is the modelled one, and says so; nothing of this machine decides its figures.
    """
    stamp = describe(device_behind(clock) or "cpu", load_torch=False)
    if not is_modelled(clock):
        return stamp
    model = clock.name.removeprefix("virtual").strip()
    return dataclasses.replace(stamp, kind="virtual", device="virtual", device_name=f"modelled {model}".strip())
