"""The model against this machine's GPU: the same programs, calibrated host costs, the ratio of their makespans."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from edl_labs.device import describe
from edl_labs.hardware import accelerator
from edl_labs.virtual import VirtualGPU, VirtualMachine
from tools.gpu_experiments import PROGRAMS, calibrated, makespan_s

pytestmark = pytest.mark.gpu

# Both sides are medians; the model leaves out cache effects, clock changes and the host's other work.
_LOWEST, _HIGHEST = 0.6, 1.6


@pytest.fixture(scope="module")
def stamp():
    found = describe()
    if found.kind != "cuda":
        pytest.skip(f"needs a CUDA device; the best device here is {found.kind}")
    return found


@pytest.fixture(scope="module")
def pair(stamp):
    """The real device, and the model of it with host costs and copy rates measured on it."""
    from tools.real_gpu import RealGPU

    gpu = RealGPU()
    base = VirtualMachine.of(accelerator(stamp.hardware_key or "H200"))
    return gpu, calibrated(gpu, base)


@pytest.fixture(scope="module")
def ratios(pair):
    """Modelled over measured makespan of each program; written to the file that EDL_LABS_AGREEMENT names, if any."""
    gpu, machine = pair
    rows = {}
    for name, program in PROGRAMS.items():
        measured_s = makespan_s(gpu, program)
        modelled_s = makespan_s(VirtualGPU(machine), program, repeats=1)
        rows[name] = {"measured_s": measured_s, "modelled_s": modelled_s, "ratio": modelled_s / measured_s}
    target = os.environ.get("EDL_LABS_AGREEMENT")
    if target:
        report = {"machine": machine.to_dict(), "environment": describe("cuda").to_dict(), "programs": rows}
        Path(target).write_text(json.dumps(report, indent=1), encoding="utf-8")
    return {name: row["ratio"] for name, row in rows.items()}


def test_at_least_ten_programs_are_compared(ratios):
    assert len(ratios) >= 10


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_models_makespan_is_near_the_measured_one(ratios, name):
    assert _LOWEST < ratios[name] < _HIGHEST


def test_overlap_pays_on_both(pair):
    gpu, machine = pair
    names = [f"copy, compute, copy in {streams}" for streams in ("one stream", "three streams")]
    for device in (gpu, VirtualGPU(machine)):
        one_s, three_s = (makespan_s(device, PROGRAMS[name]) for name in names)

        assert three_s < 0.9 * one_s


def test_pinned_copies_are_faster_on_both(pair):
    gpu, machine = pair
    for device in (gpu, VirtualGPU(machine)):
        pinned_s, pageable_s = (
            makespan_s(device, PROGRAMS[f"{kind} copies to the device"]) for kind in ("pinned", "pageable")
        )

        assert pinned_s < pageable_s


def test_experiments_can_be_recorded_here(stamp, tmp_path):
    if stamp.hardware_key is None:
        pytest.skip(f"{stamp.device_name} is not in the hardware table")
    from edl_labs.hardware.recordings import parse
    from tools.gpu_experiments import measured, write

    for path in write(measured(), tmp_path):
        recording = parse(path.read_text(encoding="utf-8"), name=path.stem)

        assert not recording.modelled
        assert stamp.device_name == recording.environment["device_name"]
