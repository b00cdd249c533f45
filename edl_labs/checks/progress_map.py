"""The exercises of a lab as a map: the state of each in words and signs, and what is left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from urllib.parse import quote

from edl_labs.checks._judge import Outcome
from edl_labs.checks.lab_cells import section_of
from edl_labs.checks.lab_facts import ExerciseFacts, LabFacts
from edl_labs.checks.outcome_display import COLOURS, SIGNS, number_text, ratio_text
from edl_labs.palette import IDLE

_NEXT = "→"
_OPEN = "·"
_PRACTICE = "practice, without points:"
# A sitting ends here: the next card begins a row of its own.
_PAUSE = '<li style="flex-basis:100%"><small>a good place to stop for today</small></li>'
_STEP_MIN = 5  # minutes are an estimate, and look like one
_LIST = "display:flex;flex-wrap:wrap;gap:.35em;list-style:none;margin:.4em 0 0;padding:0"


@dataclass(frozen=True)
class _Stop:
    """One exercise of the map."""

    known: ExerciseFacts
    outcome: Outcome | None
    section: str

    @property
    def sign(self) -> str:
        """The colour alone never carries the result."""
        return SIGNS[self.outcome.state] if self.outcome else _OPEN

    @property
    def words(self) -> str:
        """The result in words."""
        if self.outcome is None:
            return "marked by hand" if self.known.kind == "explain" else "not checked yet"
        return f"{self.outcome.state}, before the restart" if self.outcome.before_restart else self.outcome.state

    @property
    def points(self) -> str:
        """Points of how many; nothing where there are none to earn."""
        earned = self.outcome.points if self.outcome else 0.0
        return "" if self.known.optional else ratio_text(earned, self.known.points)

    @property
    def is_done(self) -> bool:
        """Whether nothing is left to do in it."""
        return self.outcome is not None and self.outcome.state == "passed"

    def html(self, *, is_next: bool) -> str:
        """A small card that leads to the exercise's section."""
        colour = COLOURS[self.outcome.state] if self.outcome and self.known.kind != "explain" else IDLE
        name = f"<b>{escape(self.known.name)}</b>"
        name = f'<a href="{anchor(self.section)}" title="{escape(self.section)}">{name}</a>' if self.section else name
        below = ", ".join(filter(None, (self.words, self.points)))
        look = f"border:1px solid {colour};border-left-width:4px;border-radius:3px;padding:.15em .5em;line-height:1.35"
        here = f"{_NEXT} next: " if is_next else ""
        sign = f'<span style="color:{colour}" aria-hidden="true">{self.sign}</span>'
        card = f'<li style="{look}">{here}{sign} {name}<br><small>{escape(below)}</small></li>'
        return card + _PAUSE * self.known.pause_after


def as_text(facts: LabFacts, outcomes: Mapping[str, Outcome | None]) -> str:
    """The map as text: one line for the lab, one for each exercise."""
    graded, practice = _stops(facts, outcomes)
    lines = [f"{facts.title}: {_so_far(facts, outcomes)} points so far{_time_left(facts, graded)}"]
    for stop in graded:
        lines.append(f"  {stop.sign} {stop.known.name}: {stop.points} ({stop.words})")
        lines += ["  -- a good place to stop for today"] * stop.known.pause_after
    return "\n".join([*lines, *([_PRACTICE] if practice else []), *(f"  {_line(stop)}" for stop in practice)])


def as_html(facts: LabFacts, outcomes: Mapping[str, Outcome | None]) -> str:
    """The map as HTML: a card for each exercise, which leads to its section."""
    graded, practice = _stops(facts, outcomes)
    head = f"<b>{escape(facts.title)}</b> {_so_far(facts, outcomes)} points so far{_time_left(facts, graded)}"
    return f"<div>{head}{_cards(graded)}{f'<div>{_PRACTICE}</div>{_cards(practice)}' if practice else ''}</div>"


def below_a_check(facts: LabFacts, outcomes: Mapping[str, Outcome | None]) -> str:
    """What stands under a report: the lab so far in one line, which opens as the map."""
    graded, _ = _stops(facts, outcomes)
    before = sum(outcome.points for outcome in outcomes.values() if outcome is not None and outcome.before_restart)
    note = f", {number_text(before)} of them before the restart" if before else ""
    line = f"{escape(facts.title)} so far: {_so_far(facts, outcomes)} points{note}{_time_left(facts, graded)}"
    summary = f'<summary style="cursor:pointer;opacity:.8">{line}</summary>'
    return f"<details>{summary}{as_html(facts, outcomes)}</details>"


def earned_points(outcomes: Mapping[str, Outcome | None]) -> float:
    """The points of the outcomes that there are."""
    return sum(outcome.points for outcome in outcomes.values() if outcome is not None)


def anchor(heading: str) -> str:
    """The link to a heading of the same notebook, as JupyterLab and nbconvert name headings.

    >>> anchor("5. 100 % of what?")
    '#5.-100-%25-of-what%3F'
    """
    return "#" + quote("-".join(heading.split()))


def _stops(facts: LabFacts, outcomes: Mapping[str, Outcome | None]) -> tuple[list[_Stop], list[_Stop]]:
    """The exercises with points, and those without, in the lab's order."""
    stops = [_Stop(known, outcomes[known.name], section_of(facts.lab, known.name)) for known in facts.exercises]
    return [stop for stop in stops if not stop.known.optional], [stop for stop in stops if stop.known.optional]


def _cards(stops: list[_Stop]) -> str:
    ahead = next((stop for stop in stops if not stop.is_done and not stop.known.optional), None)
    cards = (stop.html(is_next=stop is ahead) for stop in stops)
    return f'<ul style="{_LIST}">{"".join(cards)}</ul>'


def _line(stop: _Stop) -> str:
    return f"{stop.sign} {stop.known.name} ({stop.words})"


def _so_far(facts: LabFacts, outcomes: Mapping[str, Outcome | None]) -> str:
    return ratio_text(earned_points(outcomes), facts.points)


def _time_left(facts: LabFacts, graded: list[_Stop]) -> str:
    """About how many of the lab's minutes are left: those of its open exercises, or their shares by points."""
    left = sum(stop.known.minutes or _share(facts, stop.known.points) for stop in graded if not stop.is_done)
    if not left:
        return ""
    here = _rounded(_until_pause(facts, graded))
    pause = f", {here} of them in this sitting" if here < _rounded(left) else ""
    return f", about {min(_rounded(left), facts.minutes)} of {facts.minutes} minutes left{pause}"


def _until_pause(facts: LabFacts, graded: list[_Stop]) -> float:
    """Minutes of the open exercises of the first sitting that has any."""
    minutes = 0.0
    for stop in graded:
        minutes += 0.0 if stop.is_done else stop.known.minutes or _share(facts, stop.known.points)
        if stop.known.pause_after and minutes:
            break
    return minutes


def _rounded(minutes: float) -> int:
    return max(_STEP_MIN, _STEP_MIN * round(minutes / _STEP_MIN))


def _share(facts: LabFacts, points: float) -> float:
    """So many points' part of the lab's minutes."""
    return facts.minutes * points / facts.points if facts.points else 0.0
