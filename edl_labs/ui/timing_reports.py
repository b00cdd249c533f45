"""Measurements and comparisons as HTML that is readable in light and dark."""

from __future__ import annotations

from html import escape

from edl_labs.bench.results import Comparison, Measurement, Mistake, RatioRow, Side, condition, side_time
from edl_labs.palette import BAD, GOOD, IDLE, NOTE, WARN
from edl_labs.units import counted, percent, ratio_text, seconds, time_text

_COLOURS = {"faster": GOOD, "same": NOTE, "slower": BAD, "inconclusive": IDLE}
_LEFT = "border-left:4px solid {};padding:.4em .8em;margin:.3em 0"


def measurement_html(m: Measurement) -> str:
    """The measurement as HTML: the number first, its warnings below, the details folded."""
    colour = WARN if m.warnings else NOTE
    time = escape(time_text(m.median_s, m.half_width))
    rows = [
        f"<div><b>{escape(m.name)}</b>: <b>{time}</b> {escape(condition(m))}</div>",
        *(f'<div style="opacity:.8">{escape(note)}</div>' for note in m.notes),
        *map(_mistake_html, m.warnings),
        _details("How it was measured", _measurement_facts(m)),
    ]
    return f'<div style="{_LEFT.format(colour)}">{"".join(rows)}</div>'


def comparison_html(c: Comparison) -> str:
    """The comparison as HTML: one row per function with its ratio, interval and verdict."""
    head = "".join(f'<th style="text-align:left;padding:.1em .8em .1em 0">{t}</th>' for t in _HEAD)
    by_name = {row.name: row for row in c.rows}
    body = "".join(_html_row(side, by_name.get(side.name), c) for side in c.sides)
    colour = _COLOURS[c.verdict]
    rows = [
        f"<table><tr>{head}</tr>{body}</table>",
        *(f'<div style="opacity:.8">{escape(note)}</div>' for note in c.notes),
        *map(_mistake_html, c.warnings),
        _details("How it was compared", _comparison_facts(c)),
    ]
    return f'<div style="{_LEFT.format(colour)}">{"".join(rows)}</div>'


_HEAD = ("function", "time per call", "time relative to the first", "verdict")


def _html_row(side: Side, row: RatioRow | None, c: Comparison) -> str:
    ratio = ratio_text(row.ratio, row.low, row.high) if row else "1"
    # The word keeps the page's ink, which is read on any page; the colour is below it.
    word = f'<b style="border-bottom:.2em solid {_COLOURS[row.verdict]}">{row.verdict}</b>' if row else ""
    cells = (escape(side.name), escape(side_time(side)), escape(ratio), word)
    return "<tr>" + "".join(f'<td style="text-align:left;padding:.1em .8em .1em 0">{t}</td>' for t in cells) + "</tr>"


def _measurement_facts(m: Measurement) -> str:
    lines = [
        f"{counted(m.blocks, 'block')} of {counted(m.calls, 'call')}",
        f"{percent(m.level)} interval: {seconds(m.low_s, digits=5)} to {seconds(m.high_s, digits=5)}",
        f"warm-up: {counted(m.warm_calls, 'call')}, the first took {seconds(m.first_call_s)}",
        _clock_line(m),
        f"shape: {m.shape.words}; drift {percent(m.drift, digits=2)}; blocks dropped {m.dropped}",
        f"budget {seconds(m.budget_s)}, took {seconds(m.wall_s)}",
        *(f"not checked, {kind}: {reason}" for kind, reason in m.off.items()),
    ]
    return "\n".join([*lines, *_stamp_lines(m)])


def _comparison_facts(c: Comparison) -> str:
    lines = [
        f"{counted(c.rounds, 'paired round')} in random order ({c.dropped} dropped); stopped: {c.stopped}",
        f"{percent(c.level)} intervals; band {percent(c.band)}; outputs {c.compared_outputs}",
        *(
            f"{row.name}, when run one after the other: {row.blocked_ratio:.3g}"
            for row in c.rows
            if row.blocked_ratio > 0
        ),
        _clock_line(c),
        f"budget {seconds(c.budget_s)}, took {seconds(c.wall_s)}",
    ]
    return "\n".join([*lines, *_stamp_lines(c)])


def _clock_line(value: Measurement | Comparison) -> str:
    clock = value.clock
    step, cost = seconds(clock.resolution_s), seconds(clock.read_cost_s)
    return f"clock: {clock.name}, resolution {step}, cost per reading {cost}; {clock.trust}"


def _stamp_lines(value: Measurement | Comparison) -> list[str]:
    stamp = value.stamp
    if stamp is None:
        return []
    if stamp.kind == "virtual":
        return [f"on {stamp.device_name}: virtual time, not this machine's"]
    torch = f", torch {stamp.torch}, {stamp.threads} threads" if stamp.torch else ""
    return [f"on {stamp.device_name} ({stamp.usable_cores} cores usable), Python {stamp.python}{torch}"]


def _mistake_html(mistake: Mistake) -> str:
    return (
        f'<div style="margin-top:.3em"><b style="border-bottom:.2em solid {WARN}">⚠ {escape(mistake.what)}</b>'
        f"<br><b>Why</b> {escape(mistake.why)}<br><b>Next</b> {escape(mistake.next)}</div>"
    )


def _details(title: str, text: str) -> str:
    return (
        f'<details style="margin-top:.25em"><summary style="cursor:pointer">{title}</summary>'
        f'<pre style="white-space:pre-wrap;margin:.2em 0;font-size:.92em">{escape(text)}</pre></details>'
    )
