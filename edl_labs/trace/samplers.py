"""Profilers from outside: py-spy on a running process, and cProfile, py-spy and scalene on one program."""

from __future__ import annotations

import json
import os
import pstats
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.units import percent, seconds
from edl_labs.values import Value

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
# Frames there are no code of one's own; neither are those that Python makes itself.
_LIBRARY_FOLDERS = (
    *{sysconfig.get_paths()[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")},
    str(Path(__file__).parents[1]),
    "<frozen",
)
_IDLE = "none of its threads was busy, and threads that wait are not sampled"
# Linux's prctl.h.
_PR_SET_PTRACER, _ANYONE, _NO_PROCESS = 0x59616D61, -1, 0


def code_line(file: str, line: int, function: str) -> str:
    """'file.py(12): function', or 'cell 3(12): function' for a notebook's third run of a cell."""
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    cells = getattr(getattr(shell, "compile", None), "_filename_map", {})  # IPython names cells in its tracebacks by it
    name = f"cell {cells[file]}" if file in cells else Path(file).name
    return f"{name}({line}): {function}"


# Often enough for a share of a hundredth in a second, and rare enough to cost a thousandth of it.
_EVERY_S = 1e-3


class LineSampler:
    """Sees from another thread at which line of the user's code this thread is: `with LineSampler() as seen: ...`.

    `lines` are (seconds since the epoch, 'file.py(12): function') of the innermost frame outside of libraries.
    """

    def __init__(self) -> None:
        self.lines: list[tuple[float, str]] = []
        self._watched = threading.get_ident()
        self._stop = threading.Event()
        self._watcher = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> LineSampler:
        self._watcher.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._watcher.join()

    def _look(self) -> None:
        while not self._stop.wait(_EVERY_S):
            frame = sys._current_frames().get(self._watched)
            seen_s = time.time()
            while frame is not None and frame.f_code.co_filename.startswith(_LIBRARY_FOLDERS):
                frame = frame.f_back
            if frame is not None:
                code = frame.f_code
                self.lines.append((seen_s, code_line(code.co_filename, frame.f_lineno, code.co_name)))


@dataclass(frozen=True, repr=False)
class Samples(Value):
    """Stack samples: each stack, outermost frame first, and how often it was seen; `refused`: why there are none."""

    stacks: dict[tuple[str, ...], int]
    refused: str = ""

    @property
    def total(self) -> int:
        """How many samples there are."""
        return sum(self.stacks.values())

    def own(self) -> dict[str, float]:
        """By function the share of samples in which it was on top: its own time."""
        return self._shares(lambda stack: {stack[-1]})

    def cumulative(self) -> dict[str, float]:
        """By function the share of samples in which it was anywhere in the stack, once a stack."""
        return self._shares(set)

    def to_json(self) -> dict[str, Any]:
        """The samples as plain data."""
        stacks = [[list(stack), count] for stack, count in self.stacks.items()]
        return {**super().to_json(), "stacks": stacks}

    @classmethod
    def from_fields(cls, tree: Mapping[str, Any]) -> Self:
        return cls({tuple(stack): count for stack, count in tree["stacks"]}, refused=tree["refused"])

    def _shares(self, of: Any) -> dict[str, float]:
        found: Counter[str] = Counter()
        for stack, count in self.stacks.items():
            for frame in of(stack):
                found[frame] += count
        return {frame: count / self.total for frame, count in found.most_common()}


def parse_raw(text: str) -> dict[tuple[str, ...], int]:
    """Stacks from py-spy's raw format: frames joined by ';', then a count.

    >>> parse_raw("main (a.py:1);work (a.py:5) 12")
    {('main (a.py:1)', 'work (a.py:5)'): 12}
    """
    found: Counter[tuple[str, ...]] = Counter()
    for line in text.splitlines():
        stack, _, count = line.rpartition(" ")
        if stack and count.isdigit():
            found[tuple(stack.split(";"))] += int(count)
    return dict(found)


@checked_arguments()
def attach(pid: int | None = None, *, duration_s: float = 2.0, rate_hz: int = 100) -> Samples:
    """Sample a running process with py-spy, this one unless `pid` says otherwise (call it from a cell of its own).

    Where it is not permitted, `refused` says why and what would permit it; nothing is raised for that.
    """
    if duration_s <= 0 or rate_hz < 1:
        raise UsageError(
            f"cannot sample for {duration_s} s at {rate_hz} Hz",
            why="the duration must be above 0, and the rate must be at least 1 Hz",
            next="use, for example, duration_s=2.0",
        )
    tool = find_tool("py-spy")
    if tool is None:
        return Samples({}, refused="py-spy is not installed; next: run pip install 'edl-labs[profile]'")
    target = os.getpid() if pid is None else pid
    if target != os.getpid():
        return _sampled(tool, target, duration_s, rate_hz)
    _let_look(_ANYONE)
    try:
        return _sampled(tool, target, duration_s, rate_hz)
    finally:
        _let_look(_NO_PROCESS)


def find_tool(name: str) -> str | None:
    """The path of a command of this environment, or of the system."""
    here = Path(sys.executable).parent / name
    return str(here) if here.exists() else shutil.which(name)


def _sampled(tool: str, pid: int, duration_s: float, rate_hz: int) -> Samples:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "stacks.txt"
        # Whole seconds are what py-spy takes.
        command = [tool, "record", "--format", "raw", "-o", str(out), "-r", str(rate_hz)]
        command += ["-d", str(max(round(duration_s), 1)), "--pid", str(pid), "--nonblocking"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=duration_s + 30, check=False)
        except subprocess.TimeoutExpired:
            return Samples({}, refused=f"py-spy did not finish within {duration_s + 30:.0f} s")
        if not out.exists():
            return Samples({}, refused=why_not(done.stderr))
        stacks = parse_raw(out.read_text(encoding="utf-8", errors="replace"))
        return Samples(stacks, refused="" if stacks else _IDLE)


def why_not(stderr: str) -> str:
    """The reason why a process could not be sampled, and what would permit it, from what py-spy wrote."""
    last = stderr.strip().splitlines()[-1] if stderr.strip() else "py-spy did not give a reason"
    if sys.platform == "darwin":
        return f"macOS lets only root read another process ({last}); next: run sudo py-spy record --pid ..."
    if "ermission" in stderr or "EPERM" in stderr or "not permitted" in stderr:
        return f"the kernel forbids it ({last}): {_forbidden()}"
    return last


def _forbidden() -> str:
    scope = _YAMA.read_text(encoding="utf-8").strip() if _YAMA.exists() else ""
    if scope in ("1", "2", "3"):
        who = {"1": "a process may trace only its children", "2": "only root may trace", "3": "no process may trace"}
        return f"kernel.yama.ptrace_scope is {scope}, {who[scope]}; next: run py-spy record -- python program.py"
    return (
        "containers drop SYS_PTRACE; next: start the container with --cap-add SYS_PTRACE, or run the program "
        "under py-spy"
    )


def _let_look(who: int) -> None:
    """Let any process look at this one where Linux's Yama would allow its parents alone, or none any more."""
    if sys.platform == "linux" and _YAMA.exists():
        import ctypes

        ctypes.CDLL(None).prctl(  # Linux's prctl.h.
            _PR_SET_PTRACER, ctypes.c_ulong(who), 0, 0, 0
        )


TOOLS = ("cProfile", "py-spy", "scalene")


@dataclass(frozen=True, repr=False)
class SideBySide(Value):
    """By function of the program its share of time in each tool; seconds that a run took; why a tool is missing.

    cProfile counts each call and slows calls down; py-spy samples from outside; scalene samples from inside, C apart
    from Python. Shares are of own time, over the functions of the program's own file.
    """

    script: str
    shares: dict[str, dict[str, float]]
    took_s: dict[str, float]
    missing: dict[str, str]

    def __str__(self) -> str:
        names = sorted({name for found in self.shares.values() for name in found}, key=self._rank)
        head = "function".ljust(24) + "".join(tool.rjust(12) for tool in self.shares)
        rows = [name.ljust(24) + "".join(self._cell(t, name).rjust(12) for t in self.shares) for name in names[:12]]
        took = "seconds per run: " + ", ".join(f"{tool} {seconds(taken_s)}" for tool, taken_s in self.took_s.items())
        return "\n".join([head, *rows, took, *(f"{tool}: {reason}" for tool, reason in self.missing.items())])

    def _rank(self, name: str) -> float:
        return -max(found.get(name, 0.0) for found in self.shares.values())

    def _cell(self, tool: str, name: str) -> str:
        share = self.shares[tool].get(name)
        return "" if share is None else percent(share, digits=2)


@checked_arguments()
def side_by_side(script: str | os.PathLike[str], *, rate_hz: int = 200, timeout_s: float = 120.0) -> SideBySide:
    """Run a program plainly and under each available tool; a tool that is not says why in `missing`."""
    path = Path(script).resolve()
    if not path.is_file():
        raise UsageError(f"cannot find {path.name}", why="the file is missing", next="pass the path of a .py file")
    shares: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    took_s = {"plain": _plain_s(path, timeout_s)}
    for tool, look in (("cProfile", _c_profile), ("py-spy", _py_spy), ("scalene", _scalene)):
        with tempfile.TemporaryDirectory() as folder:
            taken_s, found, reason = look(path, Path(folder) / "out", rate_hz, timeout_s)
        if found:
            shares[tool], took_s[tool] = _normal(found), taken_s
        else:
            missing[tool] = reason or "the program ended before it could sample anything"
    return SideBySide(path.name, shares, took_s, missing)


def _plain_s(path: Path, timeout_s: float) -> float:
    taken_s, error, code = _run([sys.executable, str(path)], timeout_s)
    if code != 0:
        raise UsageError(
            f"{path.name} does not run to completion",
            why=(error.strip().splitlines() or [f"it ended with status {code}"])[-1],
            next="fix the program, or allow more time with timeout_s, and compare again",
        )
    return taken_s


_Look = tuple[float, dict[str, float], str]


def _c_profile(path: Path, out: Path, rate_hz: int, timeout_s: float) -> _Look:
    taken_s, error, _ = _run([sys.executable, "-m", "cProfile", "-o", str(out), str(path)], timeout_s)
    if not out.exists():
        return taken_s, {}, error
    found: dict[str, float] = defaultdict(float)
    table: Any = pstats.Stats(str(out))
    for (file, _, name), (_, _, own_s, _, callers) in table.stats.items():
        if Path(file).name == path.name:
            found[name] += own_s
        else:
            # Time in C belongs to the functions of the program that called it, as samplers see it.
            for (caller_file, _, caller), values in callers.items():
                if Path(caller_file).name == path.name:
                    found[caller] += values[2]
    return taken_s, dict(found), ""


def _py_spy(path: Path, out: Path, rate_hz: int, timeout_s: float) -> _Look:
    tool = find_tool("py-spy")
    if tool is None:
        return 0.0, {}, "not installed; next: run pip install 'edl-labs[profile]'"
    command = [tool, "record", "--format", "raw", "-o", str(out), "-r", str(rate_hz), "--", sys.executable, str(path)]
    taken_s, error, _ = _run(command, timeout_s)
    if not out.exists():
        return taken_s, {}, why_not(error)
    found: dict[str, float] = defaultdict(float)
    for stack, count in parse_raw(out.read_text(encoding="utf-8", errors="replace")).items():
        own = next((frame for frame in reversed(stack) if path.name in frame), None)
        if own:
            found[own.split(" ")[0]] += count
    return taken_s, dict(found), ""


def _scalene(path: Path, out: Path, rate_hz: int, timeout_s: float) -> _Look:
    tool = find_tool("scalene")
    if tool is None:
        return 0.0, {}, "not installed; next: run pip install 'edl-labs[profile]'"
    # Scalene gives a name without this ending one.
    out = out.with_suffix(".json")
    taken_s, error, _ = _run([tool, "run", "--cpu-only", "-o", str(out), str(path)], timeout_s)
    try:
        files = json.loads(out.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return taken_s, {}, error or "it wrote no profile, because the program ended before the first sample"
    found: dict[str, float] = defaultdict(float)
    parts = ("n_cpu_percent_python", "n_cpu_percent_c", "n_sys_percent")
    for file, content in files.items():
        for row in content.get("functions", []) if Path(file).name == path.name else ():
            found[str(row["line"])] += sum(float(row.get(part, 0.0)) for part in parts)
    return taken_s, dict(found), ""


def _run(command: list[str], timeout_s: float) -> tuple[float, str, int]:
    """(seconds, what it wrote to stderr, its status) of a run; output is dropped. The status is -1 without an end."""
    begun = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=timeout_s,
                check=False,
                stdin=subprocess.DEVNULL,
                cwd=folder,
            )
        except subprocess.TimeoutExpired:
            return timeout_s, f"it did not finish within {timeout_s:.0f} s", -1
    return time.perf_counter() - begun, done.stderr, done.returncode


def _normal(found: dict[str, float]) -> dict[str, float]:
    total = sum(found.values())
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return {name: value / total for name, value in ranked if total and value / total >= 0.005}
