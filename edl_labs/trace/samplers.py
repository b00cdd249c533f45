"""py-spy: what a running process is doing, by looking at it from outside; and why that may be forbidden."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from edl_labs.errors import UsageError
from edl_labs.values import Value

_YAMA = Path("/proc/sys/kernel/yama/ptrace_scope")
_IDLE = "no thread in it was busy: threads that wait are not sampled"
# Linux's prctl.h.
_PR_SET_PTRACER, _ANYONE, _NOBODY = 0x59616D61, -1, 0


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


def attach(pid: int | None = None, *, duration_s: float = 2.0, rate_hz: int = 100) -> Samples:
    """Sample a running process with py-spy, this one unless `pid` says otherwise (call it from a cell of its own).

    Where it is not permitted, `refused` says why and what would permit it; nothing is raised for that.
    """
    if duration_s <= 0 or rate_hz < 1:
        raise UsageError(
            f"cannot sample for {duration_s} s at {rate_hz} Hz", why="both must be positive", next="say duration_s=2.0"
        )
    tool = find_tool("py-spy")
    if tool is None:
        return Samples({}, refused="py-spy is not installed; next: pip install 'edl-labs[profile]'")
    target = os.getpid() if pid is None else pid
    if target != os.getpid():
        return _sampled(tool, target, duration_s, rate_hz)
    _let_look(_ANYONE)
    try:
        return _sampled(tool, target, duration_s, rate_hz)
    finally:
        _let_look(_NOBODY)


def find_tool(name: str) -> str | None:
    """The path of a command of this environment, or of the system."""
    beside = Path(sys.executable).parent / name
    return str(beside) if beside.exists() else shutil.which(name)


def _sampled(tool: str, pid: int, duration_s: float, rate_hz: int) -> Samples:
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "stacks.txt"
        # Whole seconds are what py-spy takes.
        command = [tool, "record", "--format", "raw", "-o", str(out), "-r", str(rate_hz)]
        command += ["-d", str(max(round(duration_s), 1)), "--pid", str(pid), "--nonblocking"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=duration_s + 30, check=False)
        except subprocess.TimeoutExpired:
            return Samples({}, refused=f"py-spy did not end within {duration_s + 30:.0f} s")
        if not out.exists():
            return Samples({}, refused=why_not(done.stderr))
        stacks = parse_raw(out.read_text(encoding="utf-8", errors="replace"))
        return Samples(stacks, refused="" if stacks else _IDLE)


def why_not(stderr: str) -> str:
    """The reason why a process could not be sampled, and what would permit it, from what py-spy wrote."""
    last = stderr.strip().splitlines()[-1] if stderr.strip() else "py-spy gave no reason"
    if sys.platform == "darwin":
        return f"macOS lets only root read another process ({last}); next: sudo py-spy record --pid ..."
    if "ermission" in stderr or "EPERM" in stderr or "not permitted" in stderr:
        return f"the kernel forbids it ({last}): {_forbidden()}"
    return last


def _forbidden() -> str:
    scope = _YAMA.read_text(encoding="utf-8").strip() if _YAMA.exists() else ""
    if scope in ("1", "2", "3"):
        who = {"1": "parents may trace their children alone", "2": "only root may trace", "3": "nobody may trace"}
        return f"kernel.yama.ptrace_scope is {scope}, {who[scope]}; next: py-spy record -- python program.py"
    return "containers drop SYS_PTRACE; next: start it with --cap-add SYS_PTRACE, or run the program under py-spy"


def _let_look(who: int) -> None:
    """Let anyone, so a child too, look at this process where Linux's Yama would allow parents alone; or nobody more."""
    if sys.platform == "linux" and _YAMA.exists():
        import ctypes

        ctypes.CDLL(None).prctl(  # Linux's prctl.h.
            _PR_SET_PTRACER, ctypes.c_ulong(who), 0, 0, 0
        )
