"""How the points so far look."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

from edl_labs.palette import IDLE
from edl_labs.ui.outcome import COLOURS, SIGNS, ratio_text

if TYPE_CHECKING:
    from edl_labs.checks.progress import Progress


def progress_text(progress: Progress) -> str:
    """One line a lab, one line an exercise."""
    lines = [f"{progress.facts.title}: {ratio_text(progress.points, progress.max_points)} points so far"]
    for known in progress.facts.exercises:
        outcome = progress.outcomes[known.name]
        state = outcome.state if outcome else ("marked by hand" if known.kind == "explain" else "not checked yet")
        earned = outcome.points if outcome else 0.0
        lines.append(
            f"  {SIGNS[outcome.state] if outcome else '·'} {known.name}: {ratio_text(earned, known.points)} ({state})"
        )
    return "\n".join(lines)


def progress_html(progress: Progress) -> str:
    """A bar with one field an exercise, as wide as its points, coloured by its state and labelled in words."""
    total = progress.max_points or 1
    fields = []
    for known in progress.facts.exercises:
        outcome = progress.outcomes[known.name]
        state = outcome.state if outcome and known.kind != "explain" else ""
        colour = COLOURS.get(state, "transparent")
        words = state or ("marked by hand" if known.kind == "explain" else "not checked yet")
        earned = ratio_text(outcome.points if outcome else 0.0, known.points)
        fields.append(
            f'<span title="{escape(known.name)}: {earned}, {words}" style="display:inline-block;'
            f"width:{100 * known.points / total:.4g}%;height:1em;background:{colour};border:1px solid {IDLE};"
            'box-sizing:border-box"></span>'
        )
    head = f"<b>{escape(progress.facts.title)}</b> {ratio_text(progress.points, progress.max_points)} points so far"
    return f'<div>{head}<div style="max-width:40em;line-height:0;margin-top:.3em">{"".join(fields)}</div></div>'
