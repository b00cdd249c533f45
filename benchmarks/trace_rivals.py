"""Compares this library, HolisticTraceAnalysis and TraceLens with the truth on the corpus of traces.

    pip install "HolisticTraceAnalysis==0.5.*" "pandas<3" "git+https://github.com/AMD-AGI/TraceLens@171dd74"
    python benchmarks/trace_rivals.py [--differences] [TRACE...]

Run this in a separate environment, because the package does not need these tools. TraceLens is not on PyPI; the
package `tracelens` there is a different program. Tools that are not installed are named and left out. Three figures
are compared over the whole trace: the device's computation, its exposed communication, and the share of communication
that is hidden. The other tools get only traces that they can open (Chrome's format, with device events). If you pass
your own files, for which the truth is unknown, the output shows each tool's figures and how often they agree with this
library.
"""

from __future__ import annotations

import argparse
import contextlib
import gzip
import importlib.metadata
import io
import json
import logging
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edl_labs.trace import AnalysedTrace, diagnose, read_trace
from edl_labs.trace.device_work import overlap
from tests.data.traces import CORPUS, Case
from tests.data.traces.mechanisms import STEPS

# (computing, exposed communication, hidden part of communication), the first two in µs; None where it says nothing.
Answer = tuple[float | None, float | None, float | None]
_FIGURES = ("computing", "exposed communication", "overlap")
# A microsecond or a thousandth: HolisticTraceAnalysis rounds to the first.
_CLOSE_US, _CLOSE = 1.0, 1e-3


def ours(path: Path) -> Answer:
    """This library."""
    trace = read_trace(path)
    busy = AnalysedTrace(trace).device.busy
    taken = {
        cause: sum(s.end_s - s.start_s for s in busy if s.cause == cause) * 1e6
        for cause in ("compute", "communication")
    }
    return taken["compute"], taken["communication"], overlap(trace)


def holistic(path: Path) -> Answer:
    """HolisticTraceAnalysis: what is neither idle nor computing is communication and copies in one."""
    from hta.trace_analysis import TraceAnalysis

    found = TraceAnalysis(trace_files={0: str(path)}, trace_dir=str(path.parent), include_last_profiler_step=True)
    times = found.get_temporal_breakdown(visualize=False).iloc[0]
    hidden = None
    with contextlib.suppress(Exception):
        hidden = float(found.get_comm_comp_overlap(visualize=False).iloc[0]["comp_comm_overlap_pctg"]) / 100
    return float(times["compute_time(us)"]), None, hidden


def tracelens(path: Path) -> Answer:
    """TraceLens: its table of the GPU's time."""
    from TraceLens import GPUEventAnalyser

    raw = path.read_bytes()
    tree = json.loads(gzip.decompress(raw) if path.suffix == ".gz" else raw)
    events = tree["traceEvents"] if isinstance(tree, dict) else tree
    for number, event in enumerate(events):
        # Its reader of files numbers events so.
        event.update(UID=number, **({"t_end": event["ts"] + event["dur"]} if "dur" in event else {}))
    table = GPUEventAnalyser(events).get_breakdown_df().set_index("type")["time ms"] * 1e3
    total = float(table.get("total_comm_time", 0.0))
    exposed = float(table.get("exposed_comm_time", 0.0))
    return float(table["computation_time"]), exposed, 1.0 - exposed / total if total else None


TOOLS: dict[str, tuple[str, Callable[[Path], Answer]]] = {
    "edl_labs": ("", ours),
    "HolisticTraceAnalysis": ("HolisticTraceAnalysis", holistic),
    "TraceLens": ("TraceLens", tracelens),
}


def main() -> None:
    """Run, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("traces", nargs="*", type=Path, help="your own files, instead of the corpus")
    parser.add_argument("--differences", action="store_true", help="print each wrong answer")
    wanted = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.CRITICAL)
    if wanted.traces:
        _agreement(wanted.traces)
        return
    cases = [case for case in CORPUS if case.truth.device_us != (0.0, 0.0) and not case.name.startswith("nsys")]
    with tempfile.TemporaryDirectory() as folder:
        for tool, (package, ask) in TOOLS.items():
            if package and not _version(package):
                print(f"{tool} is not installed")
                continue
            print(
                f"| {tool} {_version(package)} | "
                + " | ".join(_row(cases, ask, Path(folder), wanted.differences))
                + " |"
            )
        print(_advice(Path(folder)))


def _agreement(paths: list[Path]) -> None:
    """What each tool says of files, and how often it agrees with this library where both answer."""
    asked, same = Counter[str](), Counter[str]()
    for path in paths:
        said = {tool: _said(ask, path) for tool, (package, ask) in TOOLS.items() if not package or _version(package)}
        print(path.name, *(f"{tool}: {answer}" for tool, answer in said.items()), sep="\n  ")
        mine = said.pop("edl_labs")
        for tool, answer in said.items():
            for figure, here, there in zip(_FIGURES, mine or (), answer or (), strict=False):
                if here is not None and there is not None and there == there:
                    asked[f"{tool}, {figure}"] += 1
                    same[f"{tool}, {figure}"] += _is_close(there, here, figure)
    for key, count in asked.items():
        print(f"{key}: {same[key]} of {count} are equal")


def _said(ask: Callable[[Path], Answer], path: Path) -> Answer | None:
    """What a tool says, quietly; None where it fails."""
    try:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            return ask(path)
    except Exception:
        return None


def _is_close(found: float, true: float, figure: str) -> bool:
    return abs(found - true) <= max(_CLOSE * abs(true), _CLOSE if figure == "overlap" else _CLOSE_US)


def _version(package: str) -> str:
    if not package:
        return ""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(package)
    with contextlib.suppress(ImportError):
        return "(source)" if importlib.import_module(package) else ""
    return ""


def _row(cases: list[Case], ask: Callable[[Path], Answer], folder: Path, show: bool) -> list[str]:
    """How many traces a tool reads, and of those that have a figure how many times it is right."""
    read, right, asked = 0, [0, 0, 0], [0, 0, 0]
    for case in cases:
        path = case.make().write(folder, "trace")
        truth = (*(value * STEPS for value in case.truth.device_us), case.truth.overlap)
        said = _said(ask, path)
        if said is None:
            if show:
                print(f"  {case.name}: not read")
            continue
        read += 1
        for place, (true, found) in enumerate(zip(truth, said, strict=True)):
            if true is None or (found is None and place == 1):
                continue
            asked[place] += 1
            close = found is not None and _is_close(found, true, _FIGURES[place])
            right[place] += close
            if show and not close:
                print(f"  {case.name}: {_FIGURES[place]} {found}, true {true}")
    return [
        f"{read} of {len(cases)}",
        *(f"{good} of {of}" if of else "not given" for good, of in zip(right, asked, strict=True)),
    ]


def _advice(folder: Path) -> str:
    """How often this library's own advice is right, which the others do not give."""
    verdicts = gains = refused = asked = 0
    for case in CORPUS:
        found = diagnose(case.make().write(folder, case.name.replace(" ", "_")))
        verdicts += found.verdict == case.truth.verdict
        if case.truth.speedup:
            cause, factor = case.truth.speedup
            gain = next(gain for gain in found.gains if gain.cause == cause)
            asked += 1
            refused += not gain.is_reliable
            gains += abs(gain.speedup / factor - 1) <= 0.1
    return (
        f"verdict right in {verdicts} of {len(CORPUS)} traces; speed-up within 10 % in {gains} of {asked}; "
        f"no reliable speed-up in {refused}"
    )


if __name__ == "__main__":
    main()
