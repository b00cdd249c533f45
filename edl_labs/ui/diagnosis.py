"""A diagnosis in a notebook: a page with pictures, and what they say in words."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from edl_labs.ui.live_or_still import picture_html
from edl_labs.units import percent, seconds

if TYPE_CHECKING:
    from edl_labs.trace import Diagnosis, Finding

_CELL = "text-align:left;padding:.1em 1em .1em 0"  # columns stay apart where a page gives tables no space


def as_html(diagnosis: Diagnosis) -> str:
    """The report as HTML: verdict, pictures, shares and gains as tables, habits with their lines."""
    found = diagnosis.attribution
    parts = [
        f"<h4>{escape(diagnosis.name)}: {escape(diagnosis.verdict)}</h4>",
        *(f"<p>Note: {escape(note)}.</p>" for note in diagnosis.notes),
        f"<p>{seconds(found.wall_s)} per step, over {len(found.steps)} steps; traced by {escape(found.origin)}. "
        f"What usually helps: {escape(diagnosis.advice[1])}.</p>",
        picture_html(diagnosis.figure(), alternative(diagnosis)),
        _table(("cause", "share", "interval", "line to blame"), _share_rows(diagnosis)),
        *(f"<p>{escape(line)}.</p>" for line in [diagnosis.replay()] if line),
        _table(("without", "time per step", "faster", "tried"), _gain_rows(diagnosis)),
    ]
    if diagnosis.findings:
        parts.append("<ul>" + "".join(map(_finding, diagnosis.findings)) + "</ul>")
    return "".join(parts)


def alternative(diagnosis: Diagnosis) -> str:
    """What the pictures say, for those who do not see them."""
    shares = ", ".join(f"{cause} {percent(diagnosis.shares[cause], digits=2)}" for cause in diagnosis.shown_shares())
    return f"{diagnosis.verdict}: {shares}"


def _share_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    found = diagnosis.attribution
    rows: list[tuple[str, ...]] = []
    for cause in diagnosis.shown_shares():
        low, high = found.intervals[cause]
        doubt = "" if low != low else f"{percent(low, digits=2)} to {percent(high, digits=2)}"
        blame = found.blames[cause][0] if found.blames[cause] else None
        rows.append((cause, percent(found.shares[cause]), doubt, (blame.line or blame.what) if blame else ""))
    return rows


def _gain_rows(diagnosis: Diagnosis) -> list[tuple[str, ...]]:
    tried = {ablation.cause: f"{ablation.speedup:.2f}x" for ablation in diagnosis.ablations}
    return [
        (gain.cause, seconds(gain.after_s), f"{gain.speedup:.2f}x", tried.get(gain.cause, ""))
        for gain in diagnosis.shown_gains()
    ]


def _finding(finding: Finding) -> str:
    line = f" <code>{escape(finding.line)}</code>" if finding.line else ""
    return f"<li><b>{escape(finding.what)}</b>{line}<br>{escape(finding.why)}<br><i>{escape(finding.next)}</i></li>"


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    if not rows:
        return ""
    top = "".join(f'<th style="{_CELL}">{escape(cell)}</th>' for cell in head)
    body = "".join(
        "<tr>" + "".join(f'<td style="{_CELL}">{escape(cell)}</td>' for cell in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{top}</tr>{body}</table>"
