"""How an outcome and a hint look: HTML that is readable in light and dark, and text."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from edl_labs.checks._judge import Outcome
from edl_labs.palette import BAD, GOOD, IDLE, NOTE, WARN

COLOURS = {"passed": GOOD, "partly": WARN, "wrong": BAD, "not attempted": IDLE}
SIGNS = {"passed": "✓", "partly": "◐", "wrong": "✗", "not attempted": "○"}
_CODE = "font-family:var(--jp-code-font-family,monospace);font-size:.92em;white-space:pre-wrap;margin:.2em 0"


def number_text(points: float) -> str:
    """A number of points as people read it: two decimals at most."""
    return f"{round(points, 2):g}"


def ratio_text(points: float, most: float) -> str:
    """Points out of how many: `1.17 / 2`."""
    return f"{number_text(points)} / {number_text(most)}"


def points_text(points: float, most: float) -> str:
    """Points as people write them: `2 / 3 points`."""
    return f"{ratio_text(points, most)} point{'' if most == 1 else 's'}"


def worth_text(outcome: Outcome) -> str:
    """What an outcome is worth: points, or the word for what gives none; empty where nothing was judged."""
    if outcome.max_points:
        return points_text(outcome.points, outcome.max_points)
    return "practice, no points" if outcome.lab else ""


def outcome_text(outcome: Outcome) -> str:
    """The report as plain text."""
    worth = worth_text(outcome)
    lines = [f"{SIGNS[outcome.state]} {outcome.name}: {outcome.state}{f', {worth}' if worth else ''}"]
    if outcome.state != "passed":
        for word in ("what", "why", "next"):
            text = getattr(outcome, word)
            if text:
                lines.append(f"  {word + ':':<5} {_indent(text)}")
    if outcome.case_text:
        lines.append(f"  {_case_title(outcome)}:\n    {_indent(outcome.case_text)}\n    {_case_call(outcome)}")
    if outcome.printed.strip():
        lines.append(f"  {_printed_title(outcome).lower()}: {_indent(_cut(outcome.printed))}")
    return "\n".join(lines)


def outcome_html(outcome: Outcome) -> str:
    """The report as HTML: colours carry no meaning alone, and text keeps the page's own colour."""
    colour = COLOURS[outcome.state]
    worth = worth_text(outcome)
    points = f" · {worth}" if worth else ""
    rows = [
        f'<div style="font-weight:600"><span style="color:{colour}">{SIGNS[outcome.state]}</span> '
        f"{escape(outcome.name)}: {outcome.state}{points}</div>"
    ]
    if outcome.state != "passed":
        rows += [
            f'<div style="margin-top:.25em"><b>{word.capitalize()}</b> {prose_html(getattr(outcome, word))}</div>'
            for word in ("what", "why", "next")
            if getattr(outcome, word)
        ]
    if outcome.case_text:
        title = _case_title(outcome).capitalize()
        rows.append(_details(title, f"{outcome.case_text}\n{_case_call(outcome)}", is_open=True))
    if outcome.printed.strip():
        rows.append(_details(_printed_title(outcome), _cut(outcome.printed), is_open=False))
    body = "".join(rows)
    return f'<div style="border-left:4px solid {colour};padding:.4em .8em;margin:.3em 0">{body}</div>'


@dataclass(frozen=True)
class Hint:
    """A hint that shows itself as text or HTML."""

    name: str
    number: int
    total: int
    text: str

    def __repr__(self) -> str:
        last = " (the last)" if self.is_last else ""
        return f"hint {self.number} of {self.total}{last} for {self.name}: {self.text}" if self.total else self.text

    @property
    def is_last(self) -> bool:
        """Whether no further hint follows."""
        return 1 < self.total == self.number

    def _repr_html_(self) -> str:
        head = f"Hint {self.number} of {self.total}" if self.total else "Hint"
        head += " (the last)" if self.is_last else ""
        return (
            f'<div style="border-left:4px solid {NOTE};padding:.4em .8em;margin:.3em 0"><b>{head}</b> '
            f"{prose_html(self.text)}</div>"
        )


class ShownHint(Hint):
    """A hint that a notebook has shown already: as the last line of a cell it is not shown again."""

    def _ipython_display_(self) -> None:
        pass


def shown_hint(hint: Hint) -> Hint:
    """The hint, shown at once in a notebook, wherever in a cell the call is."""
    try:
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython() is None:
            return hint
        display(hint)
    except Exception:
        return hint
    return ShownHint(hint.name, hint.number, hint.total, hint.text)


class _Report:
    def __init__(self, outcome: Outcome) -> None:
        self.outcome = outcome

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/plain": outcome_text(self.outcome), "text/html": outcome_html(self.outcome)}


def show_outcome(outcome: Outcome) -> None:
    """Displays the report: HTML in a notebook, text elsewhere. A front end that fails to show it stops nothing."""
    try:
        from IPython import get_ipython
        from IPython.display import display

        if get_ipython() is not None:
            display(_Report(outcome))
            return
    except Exception:
        pass
    print(outcome_text(outcome))


def _case_title(outcome: Outcome) -> str:
    failing = outcome.cases_total - outcome.cases_right
    place = f"case {(outcome.case_index or 0) + 1} of {outcome.cases_total}"
    return f"{place}; {failing} {'is' if failing == 1 else 'are'} not right"


def _case_call(outcome: Outcome) -> str:
    return f'case("{outcome.name}", {(outcome.case_index or 0) + 1}) returns these inputs as values'


def show_running(name: str, after_s: float) -> None:
    """In a notebook, a line that says how to stop a check that takes long; from any thread, past caught output."""
    try:
        from IPython import get_ipython

        publish = get_ipython().display_pub.publish
    except Exception:
        return
    text = f"{name}: still running after {after_s:g} s; press ■ (interrupt) to stop it. It stops at its time limit."
    with suppress(Exception):
        publish({"text/plain": text, "text/html": f'<div style="opacity:.75">{escape(text)}</div>'})


def _printed_title(outcome: Outcome) -> str:
    return "Your code printed" if outcome.case_index is None else "Your code printed in this case"


def prose_html(text: str) -> str:
    """Text with `code` between backticks set as code."""
    parts = escape(text).split("`")
    if len(parts) % 2 == 0:
        return escape(text)
    return "".join(f"<code>{part}</code>" if i % 2 else part for i, part in enumerate(parts)).replace("\n", "<br>")


def _details(title: str, text: str, *, is_open: bool) -> str:
    head = f'<details style="margin-top:.25em"{" open" if is_open else ""}>'
    return f'{head}<summary style="cursor:pointer">{title}</summary><pre style="{_CODE}">{escape(text)}</pre></details>'


def _cut(text: str, most: int = 2000) -> str:
    return text if len(text) <= most else text[: most - 2] + " …"


def _indent(text: str) -> str:
    return text.replace("\n", "\n    ")
