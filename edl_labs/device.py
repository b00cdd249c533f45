"""The environment stamp, which describes the machine and accompanies every result. Works without torch."""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.clock import Clock, device_behind, is_modelled
from edl_labs.errors import UsageError
from edl_labs.hardware import lookup
from edl_labs.values import Value


@dataclass(frozen=True, repr=False)
class Device(Value):
    """One machine as it was when something was measured; None stands for what could not be read."""

    kind: str
    device: str
    device_name: str
    hardware_key: str | None
    cpu_model: str
    cores: int
    usable_cores: int
    platform: str
    python: str
    torch: str | None = None
    threads: int | None = None
    driver: str | None = None
    cuda: str | None = None
    compute_capability: str | None = None
    memory_bytes: int | None = None
    sm_count: int | None = None
    l2_bytes: int | None = None
    sm_clock_hz: float | None = None
    memory_clock_hz: float | None = None
    max_sm_clock_hz: float | None = None
    float32_matmul_precision: str | None = None
    tf32_matmul: bool | None = None
    tf32_cudnn: bool | None = None
    cudnn_version: int | None = None
    cudnn_enabled: bool | None = None
    cudnn_benchmark: bool | None = None
    cudnn_deterministic: bool | None = None

    def to_dict(self) -> dict[str, Any]:
        """The stamp as plain data that JSON can hold, with a schema number."""
        return self.to_json()

    @classmethod
    def from_json(cls, tree: str | Mapping[str, Any]) -> Device:
        """The stamp from what `to_json` returned, as a tree or as text."""
        return cls.from_dict(json.loads(tree) if isinstance(tree, str) else tree)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Device:
        """The stamp from what `to_dict` returned; fields of a newer schema are ignored."""
        known = {field.name for field in dataclasses.fields(cls)}
        try:
            return cls(**{name: value for name, value in data.items() if name in known})
        except (TypeError, AttributeError) as error:
            raise UsageError(
                "this is not an environment stamp", why=str(error), next="create one with describe(...).to_dict()"
            ) from error


QUICK = "EDL_LABS_QUICK"  # an environment variable: measurements take their least budget


def best_device() -> str:
    """The fastest kind of device here, as torch names it: 'cuda', 'mps', 'xpu' or 'cpu'."""
    torch = _torch()
    found = None if torch is None else _read(lambda: torch.accelerator.current_accelerator(check_available=True))
    return "cpu" if found is None else str(found.type)


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Within it, torch computes with `count` threads on the CPU, as many as before afterwards.

    Small products are slower with several, and many times slower where other programs keep the cores busy: a thread
    that waits for its share of a core holds up all others.
    """
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(count)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def describe(device: object = None, *, load_torch: bool = True) -> Device:
    """The environment stamp of `device` (the best one here, unless named).

    Loading torch takes seconds: with `load_torch=False` a stamp of the CPU leaves torch out where it is not loaded yet.
    """
    if str(device) == "cpu" and not load_torch and "torch" not in sys.modules:
        facts = _machine()
        return Device(kind="cpu", device="cpu", device_name=facts["cpu_model"], hardware_key=None, **facts)
    name = best_device() if device is None else str(device)
    kind = name.split(":")[0]
    if kind != "cpu" and kind != best_device():
        raise UsageError(
            f"there is no {name} here",
            why=f"the best device of this machine is {best_device()}",
            next="use that device",
        )
    facts = {**_machine(), **_torch_facts()}
    if kind == "cpu":
        return Device(kind="cpu", device="cpu", device_name=facts["cpu_model"], hardware_key=None, **facts)
    return Device(**{**facts, **_accelerator_facts(name, kind)})


def stamp_for(clock: Clock) -> Device:
    """The stamp for results on `clock`: of an accelerator where the clock times one. torch is not loaded for it.

    On a VirtualGPU's clock the device is the modelled one, and says so; nothing of this machine decides its figures.
    """
    stamp = describe(device_behind(clock) or "cpu", load_torch=False)
    if not is_modelled(clock):
        return stamp
    model = clock.name.removeprefix("virtual").strip()
    return dataclasses.replace(stamp, kind="virtual", device="virtual", device_name=f"modelled {model}".strip())


def cpu_model(cpuinfo: str | None = None) -> str:
    """The processor's model in words; `cpuinfo` is the text of Linux's /proc/cpuinfo.

    >>> cpu_model("processor : 0\\nmodel name\\t: Example CPU @ 2.0GHz\\n")
    'Example CPU @ 2.0GHz'
    """
    text = _cpuinfo() if cpuinfo is None else cpuinfo
    names = [line.partition(":")[2].strip() for line in text.splitlines() if line.lower().startswith("model name")]
    return next(filter(None, names), "") or _mac_model() or platform.processor() or platform.machine()


def budget_here(asked_s: float, *, least_s: float) -> float:
    """Seconds that a measurement may take: `asked_s`, or, where `EDL_LABS_QUICK` is set, `least_s` at most.

    It is set where a notebook's cells are run for marks alone, none of which depends on a measurement's uncertainty.
    """
    return min(asked_s, least_s) if is_quick() else asked_s


def is_quick() -> bool:
    """Whether measurements use as little time and memory as possible."""
    return bool(os.environ.get(QUICK))


def usable_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def free_bytes(*, root: Path = Path("/")) -> int | None:
    """Memory that this machine, or the container or session around this process, could give; None without /proc.

    Limits are those of its control groups, version 2. Files that the kernel may drop count as free, as in MemAvailable.
    """
    try:
        lines = (root / "proc/meminfo").read_text().splitlines()
    except OSError:
        return None
    free = next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)
    top = group = root / "sys/fs/cgroup"
    with suppress(OSError):
        own = (root / "proc/self/cgroup").read_text().splitlines()
        group = top / next((line[3:].strip("/") for line in own if line.startswith("0::")), "")
    for folder in (group, *group.parents):
        with suppress(OSError, ValueError):  # "max" is no limit
            most, used = (int((folder / name).read_text()) for name in ("memory.max", "memory.current"))
            free = max(0, min(free, most - used + _droppable_bytes(folder)))
        if folder == top:
            break
    return free


def _droppable_bytes(group: Path) -> int:
    with suppress(OSError):
        lines = (group / "memory.stat").read_text().splitlines()
        return next((int(line.split()[1]) for line in lines if line.startswith("inactive_file ")), 0)
    return 0


def _machine() -> dict[str, Any]:
    return {
        "cpu_model": cpu_model(),
        "cores": os.cpu_count() or 1,
        "usable_cores": usable_cores(),
        "platform": platform.platform(),
        "python": platform.python_version(),
    }


def _torch_facts() -> dict[str, Any]:
    torch = _torch()
    if torch is None:
        return {}
    backends = torch.backends
    readers: dict[str, Callable[[], Any]] = {
        "torch": lambda: str(torch.__version__),
        "threads": lambda: int(torch.get_num_threads()),
        "cuda": lambda: torch.version.cuda,
        "float32_matmul_precision": lambda: str(torch.get_float32_matmul_precision()),
        "tf32_matmul": lambda: bool(backends.cuda.matmul.allow_tf32),
        "tf32_cudnn": lambda: bool(backends.cudnn.allow_tf32),
        # Asking loads the library: tens of milliseconds, or far more from a cold disk, for what a CPU never uses.
        "cudnn_version": lambda: backends.cudnn.version() if torch.cuda.is_available() else None,
        "cudnn_enabled": lambda: bool(backends.cudnn.enabled),
        "cudnn_benchmark": lambda: bool(backends.cudnn.benchmark),
        "cudnn_deterministic": lambda: bool(backends.cudnn.deterministic),
    }
    return {name: _read(reader) for name, reader in readers.items()}


def _accelerator_facts(name: str, kind: str) -> dict[str, Any]:
    if kind != "cuda":
        return {"kind": kind, "device": name, "device_name": kind, "hardware_key": None}
    torch = _torch()
    index = int(name.partition(":")[2] or torch.cuda.current_device())
    properties = torch.cuda.get_device_properties(index)
    entry = lookup(
        properties.name, sm_count=int(properties.multi_processor_count), memory_bytes=int(properties.total_memory)
    )
    return {
        "kind": kind,
        "device": f"cuda:{index}",
        "device_name": properties.name,
        "hardware_key": entry.key if entry else None,
        "compute_capability": f"{properties.major}.{properties.minor}",
        "memory_bytes": int(properties.total_memory),
        "sm_count": int(properties.multi_processor_count),
        "l2_bytes": _read(lambda: int(properties.L2_cache_size)),
        **_nvml_facts(str(_read(lambda: properties.uuid))),
    }


def _nvml_facts(uuid: str) -> dict[str, Any]:
    try:
        import pynvml

        pynvml.nvmlInit()
    except Exception:  # no package, no driver, no permission: the stamp then lacks these lines
        return {}
    try:
        # By UUID: CUDA_VISIBLE_DEVICES renumbers torch's devices, not NVML's.
        handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        clock, peak = pynvml.nvmlDeviceGetClockInfo, pynvml.nvmlDeviceGetMaxClockInfo
        return {
            "driver": _read(lambda: _text(pynvml.nvmlSystemGetDriverVersion())),
            "sm_clock_hz": _read(lambda: clock(handle, pynvml.NVML_CLOCK_SM) * 1e6),
            "memory_clock_hz": _read(lambda: clock(handle, pynvml.NVML_CLOCK_MEM) * 1e6),
            "max_sm_clock_hz": _read(lambda: peak(handle, pynvml.NVML_CLOCK_SM) * 1e6),
        }
    except Exception:
        return {"driver": _read(lambda: _text(pynvml.nvmlSystemGetDriverVersion()))}
    finally:
        _read(pynvml.nvmlShutdown)


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _read(reader: Callable[[], Any]) -> Any:
    # Builds of torch and drivers differ in what they can tell; a stamp with a gap beats no stamp.
    try:
        return reader()
    except Exception:
        return None


def _torch() -> Any:
    try:
        import torch
    except ImportError:
        return None
    return torch


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def _mac_model() -> str:
    if platform.system() != "Darwin":
        return ""
    command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
    found = _read(lambda: subprocess.run(command, capture_output=True, text=True, timeout=5, check=True).stdout)
    return (found or "").strip()
