"""Which clock a function should be timed on: that of the device which it uses."""

from __future__ import annotations

import sys
from types import MemberDescriptorType
from typing import Any

from edl_labs.bench.timing.reachable_objects import reachable
from edl_labs.clock import AcceleratorClock, Clock, HostClock, is_modelled


def clock_in_use(fn: Any, inputs: Any = None) -> Clock:
    """The clock of the device that `fn` or its inputs refer to: a VirtualGPU's, an accelerator's, or the host's."""
    items = list(reachable(fn, inputs))
    gpu = virtual_gpu(items)
    if gpu is not None:
        return gpu.clock
    device = accelerator_of(items)
    return HostClock() if device is None else AcceleratorClock(device)


def virtual_gpu(items: list[Any]) -> Any:
    """The VirtualGPU among `items`, or that a buffer, a stream or a clock among them belongs to; None without one."""
    owners = (owner for item in items for owner in (item, _part(item, "gpu")))
    return next(filter(_is_modelled_gpu, owners), None)


def _is_modelled_gpu(item: Any) -> bool:
    clock = _part(item, "clock")
    # Other modelled machines have clocks too, and launch nothing.
    return clock is not None and is_modelled(clock) and callable(getattr(type(item), "launch", None))


def _part(item: Any, name: str) -> Any:
    """An attribute or a slot of `item`, found without running code of its class."""
    parts = getattr(item, "__dict__", None)
    if isinstance(parts, dict) and name in parts:
        return parts[name]
    return getattr(item, name, None) if isinstance(getattr(type(item), name, None), MemberDescriptorType) else None


def accelerator_of(items: list[Any]) -> str | None:
    """The accelerator on which a tensor among `items` lies, or that this process already uses; None for neither."""
    torch = sys.modules.get("torch")
    if torch is None:
        return None
    for item in items:
        if isinstance(item, torch.Tensor) and item.device.type not in ("cpu", "meta"):
            return str(item.device)
    current = torch.accelerator.current_accelerator(check_available=True)
    in_use = current is not None and (current.type != "cuda" or torch.cuda.is_initialized())
    return str(current.type) if in_use else None
