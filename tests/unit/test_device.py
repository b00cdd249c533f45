"""The environment stamp is plain data, complete where it can be, and there without torch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from edl_labs.device import Device, best_device, cpu_model, describe, torch_threads
from edl_labs.errors import UsageError

ROOT = Path(__file__).parents[2]


def test_a_stamp_survives_json():
    stamp = describe("cpu")

    assert stamp == Device.from_dict(json.loads(json.dumps(stamp.to_dict())))
    assert 1 == stamp.to_dict()["schema"]


def test_the_stamp_of_the_cpu_names_processor_cores_and_python():
    stamp = describe("cpu")

    assert ("cpu", "cpu", None) == (stamp.kind, stamp.device, stamp.hardware_key)
    assert stamp.device_name == stamp.cpu_model != ""
    assert 1 <= stamp.usable_cores <= stamp.cores == os.cpu_count()
    assert sys.version.split()[0] == stamp.python


def test_torch_tells_its_version_threads_and_flags():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    stamp = describe("cpu")

    assert str(torch.__version__) == stamp.torch
    assert torch.get_num_threads() == stamp.threads
    assert isinstance(stamp.tf32_matmul, bool)
    assert isinstance(stamp.cudnn_benchmark, bool)


def test_a_flag_that_cannot_be_read_leaves_a_gap_not_an_error(monkeypatch):
    torch = pytest.importorskip("torch", reason="torch is not installed")

    def refuse():
        raise RuntimeError("mixed old and new flags")

    monkeypatch.setattr(torch, "get_float32_matmul_precision", refuse)

    assert describe("cpu").float32_matmul_precision is None


@pytest.mark.parametrize("cpuinfo", ["processor : 0\nmodel name :\n", "CPU implementer : 0x41\n", ""])
def test_a_processor_that_tells_no_model_still_has_a_name(cpuinfo):
    assert cpu_model(cpuinfo)


def test_the_model_is_the_one_that_the_kernel_tells():
    assert "A" == cpu_model("processor : 0\nmodel name : A\nprocessor : 1\nmodel name : A\n")


def test_without_torch_the_stamp_has_gaps_but_is_there():
    script = """
import json, sys
sys.modules["torch"] = None
from edl_labs.device import best_device, describe
print(best_device(), json.dumps(describe().to_dict()))
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    kind, _, text = done.stdout.partition(" ")

    assert "cpu" == kind
    assert json.loads(text)["torch"] is None
    assert json.loads(text)["cores"] == os.cpu_count()


def test_a_device_that_is_not_here_is_refused():
    absent = "xpu" if best_device() != "xpu" else "mps"
    with pytest.raises(UsageError) as caught:
        describe(absent)

    assert f"there is no {absent} here" == caught.value.what


@pytest.fixture
def hopper(monkeypatch):
    """A machine that says it has an H200, without NVML."""
    torch = pytest.importorskip("torch", reason="torch is not installed")
    properties = SimpleNamespace(
        name="NVIDIA H200", major=9, minor=0, total_memory=150_754_820_096, multi_processor_count=132, uuid="0-1"
    )
    accelerator = SimpleNamespace(current_accelerator=lambda *, check_available: torch.device("cuda"))
    monkeypatch.setattr(torch, "accelerator", accelerator)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: properties)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return properties


def test_an_accelerator_is_described_and_found_in_the_hardware_table(hopper):
    stamp = describe()

    assert ("cuda", "cuda:0", "NVIDIA H200", "H200") == (
        stamp.kind,
        stamp.device,
        stamp.device_name,
        stamp.hardware_key,
    )
    assert (132, "9.0", None, None) == (stamp.sm_count, stamp.compute_capability, stamp.driver, stamp.l2_bytes)


def test_an_unlisted_accelerator_has_no_hardware_key(hopper):
    hopper.name = "NVIDIA H800"

    assert describe("cuda:0").hardware_key is None


def test_clocks_and_driver_come_from_nvml_by_uuid(hopper, monkeypatch):
    asked = []
    nvml = SimpleNamespace(
        NVML_CLOCK_SM=1,
        NVML_CLOCK_MEM=2,
        nvmlInit=lambda: None,
        nvmlShutdown=lambda: None,
        nvmlDeviceGetHandleByUUID=asked.append,
        nvmlSystemGetDriverVersion=lambda: b"580.1",
        nvmlDeviceGetClockInfo=lambda handle, kind: {1: 345, 2: 3201}[kind],
        nvmlDeviceGetMaxClockInfo=lambda handle, kind: 1980,
    )
    monkeypatch.setitem(sys.modules, "pynvml", nvml)
    stamp = describe("cuda")

    assert ["GPU-0-1"] == asked
    assert ("580.1", 345e6, 3201e6, 1980e6) == (
        stamp.driver,
        stamp.sm_clock_hz,
        stamp.memory_clock_hz,
        stamp.max_sm_clock_hz,
    )


def test_what_is_no_stamp_is_refused():
    with pytest.raises(UsageError):
        Device.from_dict({"kind": "cpu"})


def test_threads_are_set_for_a_while_and_given_back_after_an_error():
    torch = pytest.importorskip("torch")
    before = torch.get_num_threads()
    with torch_threads(before + 1):
        within = torch.get_num_threads()
    with pytest.raises(ZeroDivisionError), torch_threads(before + 1):
        raise ZeroDivisionError

    assert (before + 1, before) == (within, torch.get_num_threads())


@pytest.mark.parametrize(
    ("lab", "line"),
    [
        ("lab03_mixed_precision", "_ = losses_and_scales("),
        ("lab05_profiling", "with LayerProfiler(net, "),
        ("lab05_profiling", "diagnose(my_loop("),
    ],
)
def test_cells_of_many_small_products_set_their_threads(lab, line):
    """With two threads on two busy cores lab03's training took 30 to 64 s in place of 2."""
    notebook = json.loads((ROOT / "labs" / lab / f"{lab}.ipynb").read_text())
    cells = ["".join(cell["source"]) for cell in notebook["cells"]]

    assert [True] == ["torch_threads(1)" in cell for cell in cells if line in cell]
