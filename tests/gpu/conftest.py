"""The last lines of `make test-gpu`: what was checked, on which device, and why something was not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any

from edl_labs.device import describe

OUTCOMES = ("passed", "failed", "error", "skipped")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    lines = table(terminalreporter.stats)
    if lines:
        terminalreporter.section(f"checked on {describe().device_name}")
        terminalreporter.write_line("\n".join(lines))


def table(stats: Mapping[str, Sequence[Any]]) -> list[str]:
    """A line for each file of tests/gpu: its outcomes, and the reasons of what was skipped."""
    reports = [(outcome, report) for outcome in OUTCOMES for report in stats.get(outcome, ()) if _is_here(report)]
    subjects = sorted({_subject(report) for _, report in reports})
    return [_line(subject, [pair for pair in reports if _subject(pair[1]) == subject]) for subject in subjects]


def _line(subject: str, reports: Iterable[tuple[str, Any]]) -> str:
    counts = Counter(outcome for outcome, _ in reports)
    reasons = sorted(
        {report.longrepr[2].removeprefix("Skipped: ") for outcome, report in reports if outcome == "skipped"}
    )
    told = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
    return f"{subject:<20} {told}" + "".join(f"; {reason}" for reason in reasons)


def _is_here(report: Any) -> bool:
    return PurePosixPath(report.nodeid.partition("::")[0]).parent.name == "gpu"


def _subject(report: Any) -> str:
    stem = PurePosixPath(report.nodeid.partition("::")[0]).stem
    return stem.removeprefix("test_").removesuffix("_gpu").replace("_", " ")
