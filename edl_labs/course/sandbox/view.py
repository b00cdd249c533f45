"""What a sandboxed kernel sees of this machine: the system's programs, the interpreter and its environment.

Not the repository, even where the environment or an editable `edl_labs` lies inside it: each is shown alone, and the
parts of `edl_labs` that belong to the instructor are covered.
"""

from __future__ import annotations

import os
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

HOME = "/home/student"
INSTRUCTORS_PARTS = ("course", "exercises/*/judge")

# Fonts, the loader's cache, /usr/bin's indirections and the time zone. No accounts, keys, hosts or host names.
ETC = ("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/fonts", "/etc/localtime")
# torch and OpenBLAS read the processor's topology, and complain on stderr where it is absent.
TOPOLOGY = ("/sys/devices/system/cpu", "/sys/devices/system/node")
_INSTALLED = ("site-packages", "dist-packages")


@dataclass(frozen=True)
class View:
    """Folders shown read-only, folders covered, and device nodes of a leased GPU."""

    shown: tuple[str, ...]
    covered: tuple[str, ...]
    package_root: str
    """The folder that contains `edl_labs`; the folder itself is not shown."""
    devices: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """The view as JSON can hold it."""
        return asdict(self)

    @staticmethod
    def from_dict(data: dict[str, Any]) -> View:
        """The view that `as_dict` described."""
        return View(tuple(data["shown"]), tuple(data["covered"]), data["package_root"], tuple(data["devices"]))


def students_view(*, gpu: int | None = None) -> View:
    """The view of a kernel that runs this interpreter; with the nodes of GPU number `gpu` where one is leased."""
    import edl_labs

    package = Path(edl_labs.__file__).resolve().parent
    elsewhere = _packages_elsewhere()
    copies = sorted({package, *(Path(folder) / "edl_labs" for folder in elsewhere)})
    parts = (path for copy in copies for part in INSTRUCTORS_PARTS for path in sorted(copy.glob(part)))
    covered = tuple(str(path) for path in parts if path.is_dir())
    shown = (*_interpreter_folders(), *elsewhere, str(package))
    return View(tuple(_outermost(shown)), covered, str(package.parent), () if gpu is None else gpu_nodes(gpu))


def gpu_nodes(index: int) -> tuple[str, ...]:
    """Device nodes that CUDA needs for GPU number `index` alone; no other GPU can be opened through them."""
    shared = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools", "/dev/nvidia-modeset")
    return tuple(node for node in (f"/dev/nvidia{index}", *shared) if os.path.exists(node))


def _interpreter_folders() -> list[str]:
    executable = Path(sys.executable)
    prefixes = {sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix}
    prefixes |= {os.path.realpath(prefix) for prefix in prefixes}
    prefixes.add(str(executable.resolve().parent.parent))
    return sorted(prefixes)


def _packages_elsewhere() -> set[str]:
    """Installed packages that PYTHONPATH or a .pth file adds: one environment on another, a cluster's modules.

    Only those called as installers call them: any other folder on the path may be somebody's repository.
    """
    return {os.path.realpath(path) for path in sys.path if Path(path).name in _INSTALLED and os.path.isdir(path)}


def _outermost(folders: tuple[str, ...]) -> list[str]:
    """`folders` without those inside another one or inside /usr, shortest first.

    >>> _outermost(("/opt/env/lib", "/opt/env", "/usr/local", "/opt/environment"))
    ['/opt/env', '/opt/environment']
    """
    kept: list[str] = []
    for folder in sorted(set(folders), key=lambda folder: (len(folder), folder)):
        if not any(_inside(folder, outer) for outer in [*kept, "/usr"]):
            kept.append(folder)
    return kept


def _inside(folder: str, outer: str) -> bool:
    return folder == outer or folder.startswith(outer.rstrip("/") + "/")
