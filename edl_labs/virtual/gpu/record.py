"""Making recordings: the same experiments on this machine's GPU, or on the model until a real recording exists."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from edl_labs.device import describe
from edl_labs.errors import UsageError
from edl_labs.hardware.recordings import Recording, Series
from edl_labs.virtual.gpu.experiments import COPY_BYTES, LAUNCH_COUNTS, async_launch, pinned_copies
from edl_labs.virtual.gpu.machine import VirtualMachine
from edl_labs.virtual.gpu.real_gpu import RealGPU
from edl_labs.virtual.gpu.virtual_gpu import VirtualGPU

_EXPERIMENTS: dict[str, tuple[Any, str, str, tuple[int, ...], str]] = {
    "async_launch": (async_launch, "kernels launched", "", LAUNCH_COUNTS, "launches of 200 µs kernels"),
    "pinned_copies": (pinned_copies, "bytes copied", "B", COPY_BYTES, "copies from pageable and pinned memory"),
}


def modelled(hardware_key: str) -> tuple[Recording, ...]:
    """Every experiment on a VirtualGPU of the hardware table; the titles say that nothing was measured."""
    machine = VirtualMachine.of(hardware_key).warm()
    environment = {"virtual_machine": machine.to_dict()}
    return tuple(
        _run(name, VirtualGPU(machine), key=hardware_key, environment=environment, is_modelled=True)
        for name in _EXPERIMENTS
    )


def measured() -> tuple[Recording, ...]:
    """Every experiment on this machine's CUDA device, with its environment stamp.

    Raises UsageError without a CUDA device, or with one that the hardware table does not know by its reported name.
    """
    gpu, stamp = RealGPU(), describe("cuda")
    if stamp.hardware_key is None:
        raise UsageError(
            f"{stamp.device_name} is not in the hardware table",
            why="a recording is found by the table's key of its accelerator",
            next="add it to edl_labs/hardware/accelerators.toml, with sources",
        )
    environment = stamp.to_dict()
    return tuple(
        _run(name, gpu, key=stamp.hardware_key, environment=environment, is_modelled=False) for name in _EXPERIMENTS
    )


def write(recordings: tuple[Recording, ...], directory: Path) -> tuple[Path, ...]:
    """Write recordings as files, one each, and give their paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = tuple(directory / f"{recording.name}.json" for recording in recordings)
    for path, recording in zip(paths, recordings, strict=True):
        path.write_text(recording.to_json(), encoding="utf-8")
    return paths


def _run(name: str, gpu: Any, *, key: str, environment: Mapping[str, Any], is_modelled: bool) -> Recording:
    experiment, x_label, x_unit, x, subject = _EXPERIMENTS[name]
    how = "Modelled, not measured" if is_modelled else f"Measured on {environment['device_name']}"
    lines = experiment(gpu, repeats=1 if is_modelled else 9)
    return Recording(
        name=f"{key.lower().replace('-', '_')}_{name}" + ("_modelled" if is_modelled else ""),
        title=f"{how}: {subject} ({key})",
        experiment=name,
        hardware_key=key,
        modelled=is_modelled,
        environment=environment,
        x_label=x_label,
        x_unit=x_unit,
        x=tuple(x),
        series=tuple(
            Series(label, "s", tuple(float(f"{value:.6g}") for value in values)) for label, values in lines.items()
        ),
    )
