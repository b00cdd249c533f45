"""cProfile, py-spy and scalene on one program: what each says of the same functions, and what each costs."""

from __future__ import annotations

import json
import os
import pstats
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.trace.samplers import find_tool, parse_raw, why_not
from edl_labs.units import percent, seconds
from edl_labs.values import Value

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
        took = "seconds a run: " + ", ".join(f"{tool} {seconds(taken_s)}" for tool, taken_s in self.took_s.items())
        return "\n".join([head, *rows, took, *(f"{tool}: {reason}" for tool, reason in self.missing.items())])

    def _rank(self, name: str) -> float:
        return -max(found.get(name, 0.0) for found in self.shares.values())

    def _cell(self, tool: str, name: str) -> str:
        share = self.shares[tool].get(name)
        return "" if share is None else percent(share, digits=2)


def side_by_side(script: str | os.PathLike[str], *, rate_hz: int = 200, timeout_s: float = 120.0) -> SideBySide:
    """Run a program plainly and under each tool that is at hand; a tool that is not says why in `missing`."""
    path = Path(script).resolve()
    if not path.is_file():
        raise UsageError(f"cannot find {path.name}", why="the file is missing", next="give a .py file's path")
    shares: dict[str, dict[str, float]] = {}
    missing: dict[str, str] = {}
    took_s = {"plain": _plain_s(path, timeout_s)}
    for tool, look in (("cProfile", _c_profile), ("py-spy", _py_spy), ("scalene", _scalene)):
        with tempfile.TemporaryDirectory() as folder:
            taken_s, found, reason = look(path, Path(folder) / "out", rate_hz, timeout_s)
        if found:
            shares[tool], took_s[tool] = _normal(found), taken_s
        else:
            missing[tool] = reason or "it saw nothing of the program: it ended too soon"
    return SideBySide(path.name, shares, took_s, missing)


def _plain_s(path: Path, timeout_s: float) -> float:
    taken_s, error, code = _run([sys.executable, str(path)], timeout_s)
    if code != 0:
        raise UsageError(
            f"{path.name} does not run to its end",
            why=(error.strip().splitlines() or [f"it ended with status {code}"])[-1],
            next="mend the program, or give it longer with timeout_s, and compare again",
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
        return 0.0, {}, "not installed; next: pip install 'edl-labs[profile]'"
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
        return 0.0, {}, "not installed; next: pip install 'edl-labs[profile]'"
    # Scalene gives a name without this ending one.
    out = out.with_suffix(".json")
    taken_s, error, _ = _run([tool, "run", "--cpu-only", "-o", str(out), str(path)], timeout_s)
    try:
        files = json.loads(out.read_text(encoding="utf-8"))["files"]
    except (OSError, ValueError, KeyError, TypeError):
        return taken_s, {}, error or "it wrote no profile: the program ended before it looked"
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
            return timeout_s, f"it did not end within {timeout_s:.0f} s", -1
    return time.perf_counter() - begun, done.stderr, done.returncode


def _normal(found: dict[str, float]) -> dict[str, float]:
    total = sum(found.values())
    ranked = sorted(found.items(), key=lambda item: -item[1])
    return {name: value / total for name, value in ranked if total and value / total >= 0.005}
