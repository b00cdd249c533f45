"""Compact recordings of diagnosed loops: shares and gains on a GPU, for those who have none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from edl_labs.device import describe
from edl_labs.errors import UsageError
from edl_labs.hardware.recordings import Recording, Series
from edl_labs.trace._attribute import attribute
from edl_labs.trace._what_if import what_if
from edl_labs.trace.analysed_trace import AnalysedTrace
from edl_labs.trace.causes import CAUSES
from edl_labs.trace.corpus.labelled import CORPUS_CAUSES, LoopSpec
from edl_labs.trace.corpus.real import injected_loops
from edl_labs.trace.loops import Loop
from edl_labs.virtual import VirtualMachine

EXPERIMENT = "loop_shares"
# One loop a cause, each of a few milliseconds a step.
_SPECS: dict[str, dict[str, Any]] = {
    "compute": {"kernel_s": 150e-6},
    "copy": {"copy_bytes": 60_000_000},
    "launch": {"kernel_s": 1e-6, "kernels": 200, "spread": 0.2},
    "sync": {"kernel_s": 4.5e-6, "kernels": 60, "reads": 60, "spread": 0.1},
    "data": {"data_s": 8e-3},
    "alloc": {"allocs": 4, "alloc_s": 1.5e-3, "frees": True},
    "host": {"host_s": 8e-3},
}


def modelled_loops(hardware_key: str, *, steps: int = 10) -> Recording:
    """A loop for each cause on a VirtualGPU of the hardware table: shares, and the speedup without the cause."""
    loops = [(cause, LoopSpec(cause, machine=hardware_key, **_SPECS[cause]).loop()) for cause in CORPUS_CAUSES]
    environment = {"virtual_machine": VirtualMachine.of(hardware_key).warm().to_dict()}
    return _recording(loops, hardware_key, environment, steps=steps, modelled=True)


def measured_loops(*, steps: int = 20) -> Recording:
    """The same for loops of PyTorch with an injected cause on this machine's CUDA device, with its stamp.

    Raises UsageError without such a device, or where the hardware table does not know it.
    """
    import torch

    if not torch.cuda.is_available():
        raise UsageError(
            "this machine has no CUDA device to record on",
            why="torch sees none on this machine",
            next="run `python -m tools.gpu_experiments` where a GPU is, or use the modelled recording",
        )
    stamp = describe("cuda")
    if stamp.hardware_key is None:
        raise UsageError(
            f"{stamp.device_name} is not in the hardware table",
            why="a recording is found by the table's key of its accelerator",
            next="add it to edl_labs/hardware/accelerators.toml, with sources",
        )
    loops = [(item.cause, item.loop) for item in injected_loops("cuda", size=1024)]
    return _recording(loops, stamp.hardware_key, stamp.to_dict(), steps=steps, modelled=False)


def _recording(
    loops: Sequence[tuple[str, Loop]], key: str, environment: Mapping[str, Any], *, steps: int, modelled: bool
) -> Recording:
    how = "Modelled, not measured" if modelled else f"Measured on {environment['device_name']}"
    rows = [_row(cause, loop, steps) for cause, loop in loops]
    labels = [f"share of {cause}" for cause in CAUSES]
    units = [*[""] * len(CAUSES), "s", "x"]
    series = zip([*labels, "step", "speedup without the cause"], units, zip(*rows, strict=True), strict=True)
    return Recording(
        name=f"{key.lower().replace('-', '_')}_{EXPERIMENT}" + ("_modelled" if modelled else ""),
        title=f"{how}: loops with one injected cause each ({key})",
        experiment=EXPERIMENT,
        hardware_key=key,
        modelled=modelled,
        environment=environment,
        x_label="injected cause: " + ", ".join(cause for cause, _ in loops),
        x_unit="",
        x=tuple(range(len(loops))),
        series=tuple(Series(label, unit, tuple(map(_rounded, values))) for label, unit, values in series),
    )


def _row(cause: str, loop: Loop, steps: int) -> list[float]:
    analysed = AnalysedTrace(loop.record(steps))
    found = attribute(analysed, skip=2)
    speedup = what_if(analysed, cause, skip=2).speedup
    return [*(found.shares[name] for name in CAUSES), found.wall_s, min(speedup, 1e6)]


def _rounded(value: float) -> float:
    return float(f"{value:.6g}")
