"""`edl-labs doctor`: tries out what works on this machine, and what will be skipped and why."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from edl_labs import units
from edl_labs.course.run.run_report import one_line
from edl_labs.values import Value

TORCH_AT_LEAST = (2, 11)  # what the labs are tested with; older ones may still do
_INSTRUCTOR = 'pip install "edl-labs[instructor]"'


@dataclass(frozen=True)
class Row:
    """One finding. `state` is ok, warn or missing; `who` needs it: everyone, instructors, or no group in particular."""

    name: str
    state: str
    what: str
    next: str = ""
    who: str = "everyone"


@dataclass(frozen=True, repr=False)
class DoctorReport(Value):
    """All findings; `exit_code` is 2 when something that everyone needs is missing, else 0."""

    DERIVED = ("ok", "exit_code")
    ROWS = "rows"

    rows: tuple[Row, ...]

    @property
    def ok(self) -> bool:
        """Whether labs can be worked on here."""
        return not any(row.state == "missing" and row.who == "everyone" for row in self.rows)

    @property
    def exit_code(self) -> int:
        """0, or 2: the environment is wrong."""
        return 0 if self.ok else 2


def examine_machine(lab: str = "", *, progress: Callable[[int, int, str], None] | None = None) -> DoctorReport:
    """Looks at everything, one finding after the other; no finding can stop the others.

    With `lab`, a name or its beginning (`lab04`), at what every lab needs and at each package that this lab can use;
    UsageError when no lab is called so.
    """
    looks = _looks_at(_lab_called(lab)) if lab else _LOOKS
    rows = []
    for done, (name, look) in enumerate(looks.items()):
        if progress:
            progress(done, len(looks), name)
        rows.append(_careful(name, look))
    if progress:
        progress(len(looks), len(looks), "done")
    return DoctorReport(tuple(rows))


def _careful(name: str, look: Callable[[], Row]) -> Row:
    try:
        return look()
    except Exception as error:  # a broken installation breaks in any way; that is a finding
        return Row(name, "missing", one_line(f"broken: {type(error).__name__}: {error}"), "install it again")


def _python() -> Row:
    # No version is refused here: an older Python cannot import this file.
    return Row("python", "ok", ".".join(map(str, sys.version_info[:3])))


def _labs() -> Row:
    from edl_labs.checks.lab_exercises import built_labs
    from edl_labs.checks.lab_facts import facts

    labs = [facts(lab) for lab in built_labs()]
    if not labs:
        what = "no lab has been built, so nothing can be checked"
        return Row("labs", "missing", what, "run edl-labs build in the course")
    return Row("labs", "ok", ", ".join(f"{lab.lab} ({lab.points:g} points)" for lab in labs))


def _torch() -> Row:
    version = _version("torch")
    if version is None:
        return Row("torch", "missing", "not installed", "pip install torch")
    import torch

    if _numbers(version) < TORCH_AT_LEAST:
        least = ".".join(map(str, TORCH_AT_LEAST))
        return Row("torch", "warn", f"{version}: the labs need {least} or newer", "pip install --upgrade torch")
    built = f"CUDA {torch.version.cuda}" if torch.version.cuda else "without CUDA"
    return Row("torch", "ok", f"{version}, built {'for ' if torch.version.cuda else ''}{built}")


def _torchvision() -> Row:
    version = _version("torchvision")
    if version is None:
        return Row("torchvision", "missing", "not installed", 'pip install "edl-labs[vision]"', who="some labs")
    # In a process of its own: a torchvision of another build can end the interpreter.
    run = subprocess.run([sys.executable, "-c", "import torchvision"], capture_output=True, text=True, timeout=120)
    if run.returncode:
        why = one_line((run.stderr.strip().splitlines() or ["it ended the interpreter"])[-1])
        step = "pip install --upgrade torch torchvision, both from the same source"
        return Row("torchvision", "warn", f"{version} does not work with this torch: {why}", step, who="some labs")
    return Row("torchvision", "ok", version, who="some labs")


@dataclass(frozen=True)
class LabPackage:
    """A package that cells of a lab can use: its name, the module, what falls away without it, and the extra."""

    name: str
    module: str
    what_for: str
    extra: str = "lab"


# What cells of a lab use where it is there; each of them goes on, and says so, where it is not.
LAB_PACKAGES: dict[str, tuple[LabPackage, ...]] = {
    "lab04_data_pipelines": (
        LabPackage("h5py", "h5py", "the format hdf5"),
        LabPackage("lmdb", "lmdb", "the format lmdb"),
        LabPackage("msgpack", "msgpack", "the format msgpack"),
        LabPackage("pyarrow", "pyarrow.parquet", "the formats parquet and arrow", "data"),
        LabPackage("pillow", "PIL.Image", "every picture"),
        LabPackage("simplejpeg", "simplejpeg", "the decoder simplejpeg"),
        LabPackage("kornia-rs", "kornia_rs.io", "the decoder kornia-rs"),
        LabPackage("imagecodecs", "imagecodecs", "the decoder imagecodecs", "data"),
        LabPackage("opencv-python-headless", "cv2", "the decoder opencv", "data"),
        LabPackage("torchvision", "torchvision.io", "the decoder torchvision", "vision"),
    ),
    "lab05_profiling": (
        LabPackage("py-spy", "", "the samples that section 7 takes from outside the process"),
        LabPackage("scalene", "scalene", "one of the three profilers in section 7"),
    ),
    "lab09b_serving": (LabPackage("aiohttp", "aiohttp.web", "the web service in section 7"),),
}


def _lab_called(name: str) -> str:
    from edl_labs.checks.lab_exercises import built_labs
    from edl_labs.course.start import one_called

    return one_called(name, list(built_labs()))


def _lab_looks() -> dict[str, Callable[[], Row]]:
    """One finding a lab: whether all that it can use is installed."""
    return {lab.partition("_")[0]: partial(_lab_row, lab) for lab in LAB_PACKAGES}


def _lab_row(lab: str) -> Row:
    name = lab.partition("_")[0]
    absent = [package for package in LAB_PACKAGES[lab] if _version(package.name) is None]
    if not absent:
        return Row(name, "ok", "everything that its cells use is installed", who="some cells")
    what = "; ".join(f"without {package.name}: {package.what_for}" for package in absent)
    return Row(
        name, "warn", f"its cells work, but leave out what is missing here ({what})", _install(absent), "some cells"
    )


def _looks_at(lab: str) -> dict[str, Callable[[], Row]]:
    """What every lab needs, then each package that this one can use, tried."""
    needed = ("python", "torch", "device", "kernel", "ipywidgets", "matplotlib", "jupyterlab", "disk", "memory")
    packages = {package.name: partial(_package_tried, package) for package in LAB_PACKAGES.get(lab, ())}
    return {**{name: _LOOKS[name] for name in needed}, **packages}


def _package_tried(package: LabPackage) -> Row:
    version = _version(package.name)
    who = "some cells"
    if version is None:
        what = f"not installed: {package.what_for} will be left out"
        return Row(package.name, "missing", what, _install([package]), who)
    if package.module:
        # In a process of its own: a library of another build can end the interpreter.
        command = [sys.executable, "-c", f"import {package.module}"]
        run = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if run.returncode:
            why = one_line((run.stderr.strip().splitlines() or ["it ended the interpreter"])[-1])
            return Row(package.name, "warn", f"{version} does not work: {why}", _install([package]), who)
    return Row(package.name, "ok", f"{version}: {package.what_for}", who=who)


def _install(packages: list[LabPackage]) -> str:
    extras = ",".join(dict.fromkeys(package.extra for package in packages))
    return f'pip install "edl-labs[{extras}]"'


def _device() -> Row:
    from edl_labs.device import describe

    found = describe()
    if found.kind != "cpu":
        known = "its datasheet is known" if found.hardware_key else "its datasheet is not in our table"
        return Row("device", "ok", f"{found.device_name} ({found.device}), {known}", who="nobody")
    what = f"{found.device_name}, {found.usable_cores} usable cores, no accelerator: "
    what += "cells that need one show recorded or modelled results; no mark depends on an accelerator"
    if shutil.which("nvidia-smi"):
        return Row(
            "device",
            "warn",
            f"{what}; however, an NVIDIA driver is installed",
            "install a CUDA build of torch",
            "nobody",
        )
    return Row("device", "ok", what, who="nobody")


def _kernel() -> Row:
    import tempfile

    import nbformat

    from edl_labs.course.run.process import Job, run
    from edl_labs.course.run.run_report import RunLimits

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "doctor.ipynb"
        cells = [nbformat.v4.new_code_cell("import edl_labs; edl_labs.__version__")]
        path.write_text(nbformat.writes(nbformat.v4.new_notebook(cells=cells)), encoding="utf-8")
        finished = run(Job(path, keep_going=True, limits=RunLimits(cell_s=60, notebook_s=90)))
    if finished.ending or any(cell.state != "ran" for cell in finished.cells) or not finished.cells:
        why = finished.ending["text"] if finished.ending else next((c.error for c in finished.cells), "")
        return Row("kernel", "missing", f"cannot run a notebook: {why}", "pip install --upgrade ipykernel")
    return Row("kernel", "ok", f"a test notebook ran in {units.seconds(finished.seconds)}")


def _package(name: str, *, what_for: str, install: str, who: str) -> Callable[[], Row]:
    def look() -> Row:
        version = _version(name)
        if version is None:
            return Row(name, "missing", f"not installed: {what_for} will not work", install, who)
        return Row(name, "ok", version, who=who)

    return look


def _bubblewrap() -> Row:
    program = shutil.which("bwrap")
    who = "instructors"
    if not sys.platform.startswith("linux"):
        step = "grade in the container of the repository's Dockerfile, or in WSL 2"
        return Row(
            "bubblewrap",
            "missing",
            "the sandbox for students' code needs Linux, but this is a different system",
            step,
            who,
        )
    if program is None:
        return Row("bubblewrap", "missing", "not installed: no sandbox for grading", "apt install bubblewrap", who)
    command = [program, "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "true"]
    run = subprocess.run(command, capture_output=True, text=True, timeout=20)
    if run.returncode:
        step = "allow unprivileged user namespaces (Ubuntu: an AppArmor profile for bwrap)"
        return Row("bubblewrap", "warn", f"cannot create a sandbox: {one_line(run.stderr, limit=120)}", step, who)
    version = subprocess.run([program, "--version"], capture_output=True, text=True, timeout=20).stdout
    return Row("bubblewrap", "ok", f"{one_line(version)}, created a sandbox", who=who)


def _chromium() -> Row:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next((path for name in names if (path := shutil.which(name))), None)
    if found is None:
        return Row("chromium", "missing", "not installed: browser tests are skipped", "apt install chromium", "nobody")
    return Row("chromium", "ok", Path(found).name, who="nobody")


def _compiler() -> Row:
    """What torch.compile needs on a processor: a C++ compiler that builds an extension of this Python."""
    who, step = "some cells", "Debian and Ubuntu: apt install g++ python3-dev; macOS: xcode-select --install"
    names = (os.environ.get("CXX", ""), "g++", "clang++", "c++")
    found = next((path for name in names if name and (path := shutil.which(name))), None)
    without = "torch.compile does not work on the CPU, so cells show recordings instead"
    if found is None:
        return Row("compiler", "missing", f"no C++ compiler: {without}", step, who)
    command = [found, "-x", "c++", "-fsyntax-only", f"-I{sysconfig.get_paths()['include']}", "-"]
    run = subprocess.run(command, input="#include <Python.h>\n", capture_output=True, text=True, timeout=60)
    if run.returncode:
        what = f"{Path(found).name} does not find the headers of this Python: {without}"
        return Row("compiler", "warn", what, step, who)
    return Row(
        "compiler", "ok", f"{Path(found).name} finds the headers of this Python, as torch.compile requires", who=who
    )


def _disk() -> Row:
    free_bytes = shutil.disk_usage(Path.cwd()).free
    text = f"{units.byte_count(free_bytes)} free"
    if free_bytes < 1e9:
        return Row("disk", "warn", f"{text}: labs and runs may fail", "free some space")
    return Row("disk", "ok", text)


def _memory() -> Row:
    try:
        total_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return Row("memory", "ok", "this system does not report its memory")
    text = f"{units.byte_count(total_bytes)} in total"
    small = total_bytes < 4e9
    step = "close other programs" if small else ""
    return Row("memory", "warn" if small else "ok", f"{text}{': little for torch' if small else ''}", step)


def _version(name: str) -> str | None:
    from importlib import metadata

    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version.partition("+")[0])[:3])


_LOOKS: dict[str, Callable[[], Row]] = {
    "python": _python,
    "torch": _torch,
    "device": _device,
    "labs": _labs,
    "kernel": _kernel,
    "ipywidgets": _package("ipywidgets", what_for="live progress", install="pip install ipywidgets", who="everyone"),
    "matplotlib": _package("matplotlib", what_for="plots", install="pip install matplotlib", who="everyone"),
    "torchvision": _torchvision,
    "jupyterlab": _package(
        "jupyterlab", what_for="edl-labs start", install='pip install "edl-labs[lab]"', who="students without an editor"
    ),
    "nvidia-ml-py": _package(
        "nvidia-ml-py",
        what_for="recording clocks and the driver version",
        install='pip install "edl-labs[gpu]"',
        who="nobody",
    ),
    "papermill": _package("papermill", what_for="edl-labs run", install=_INSTRUCTOR, who="instructors"),
    "nbconvert": _package("nbconvert", what_for="HTML pages", install=_INSTRUCTOR, who="instructors"),
    "nbgrader": _package("nbgrader", what_for="edl-labs build and grading", install=_INSTRUCTOR, who="instructors"),
    "jupytext": _package("jupytext", what_for="edl-labs edit", install=_INSTRUCTOR, who="instructors"),
    "bubblewrap": _bubblewrap,
    "chromium": _chromium,
    "compiler": _compiler,
    **_lab_looks(),
    "disk": _disk,
    "memory": _memory,
}
