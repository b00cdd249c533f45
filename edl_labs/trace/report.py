"""A diagnosis as plain text."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edl_labs.units import percent, seconds

if TYPE_CHECKING:
    from edl_labs.trace.diagnose import Diagnosis

_BAR = 30
_LEAST = 0.005


def as_text(diagnosis: Diagnosis) -> str:
    """The report: verdict, shares with intervals and lines, gains, and findings."""
    found = diagnosis.attribution
    lines = [f"{diagnosis.name}: {diagnosis.verdict}", *_head(diagnosis), "", "shares of wall time"]
    shown = [cause for cause, share in found.shares.items() if share >= _LEAST]
    for cause in sorted(shown, key=lambda cause: -found.shares[cause]):
        lines.append(_share(diagnosis, cause))
    lines += ["", "what mending it would gain (shares are upper bounds)"]
    lines += [_gain(diagnosis, index) for index, gain in enumerate(diagnosis.gains) if gain.speedup > 1.01]
    if diagnosis.findings:
        lines += ["", "habits"]
    for finding in diagnosis.findings:
        lines += [f"* {finding.what}", f"    {finding.why}", f"    next: {finding.next}"]
        lines += [f"    at:   {finding.line}"] if finding.line else []
    return "\n".join(lines)


def _head(diagnosis: Diagnosis) -> list[str]:
    found = diagnosis.attribution
    return [
        f"{seconds(found.wall_s)} a step, over {len(found.steps)} steps; traced by {found.origin}",
        f"what usually helps: {diagnosis.advice[1]}",
    ]


def _share(diagnosis: Diagnosis, cause: str) -> str:
    found = diagnosis.attribution
    share, (low, high) = found.shares[cause], found.intervals[cause]
    doubt = "" if math.isnan(low) else f" [{percent(low, digits=2)}, {percent(high, digits=2)}]"
    blames = found.blames[cause]
    blame = f"  {blames[0].line or blames[0].what}" if blames else ""
    return f"  {cause:<13} {'█' * max(round(share * _BAR), 1):<{_BAR}} {percent(share, digits=3)}{doubt}{blame}"


def _gain(diagnosis: Diagnosis, index: int) -> str:
    gain = diagnosis.gains[index]
    faster = "at most all of it" if math.isinf(gain.speedup) else f"{gain.speedup:.2f}x"
    line = f"  {gain.cause:<13} {seconds(gain.replayed_s)} -> {seconds(gain.after_s)}: {faster}"
    for ablation in diagnosis.ablations:
        if ablation.cause == gain.cause:
            line += f"; tried: {ablation.speedup:.2f}x" if not math.isinf(ablation.speedup) else "; tried: all of it"
    return line
