"""Points so far in a lab."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import outcome_display as display
from edl_labs.checks._judge import Outcome
from edl_labs.checks.lab_facts import LabFacts, facts

_LATEST: dict[tuple[str, str], Outcome] = {}
_WIDGETS: list[tuple[str, Any]] = []


def remember(outcome: Outcome) -> None:
    """Keep an outcome as the latest of its exercise in this process."""
    _LATEST.pop((outcome.lab, outcome.name), None)
    _LATEST[outcome.lab, outcome.name] = outcome
    for lab, widget in _WIDGETS:
        if lab == outcome.lab:
            widget.value = Progress(lab).html()


def latest_lab() -> str:
    """The lab whose check was asked for most recently in this process; empty when none was."""
    return next((lab for lab, _ in reversed(_LATEST) if lab), "")


class Progress:
    """The points of a lab so far, as this process has checked them: text, or a small picture in a notebook.

    Exercises marked by hand count as open until a person has read them.
    """

    def __init__(self, lab: str) -> None:
        self.lab = lab
        self.facts: LabFacts = facts(lab)

    @property
    def outcomes(self) -> dict[str, Outcome | None]:
        """The latest outcome of each exercise in the lab's order; None where it was not checked yet."""
        return {e.name: _LATEST.get((self.lab, e.name)) for e in self.facts.exercises}

    @property
    def points(self) -> float:
        """Points earned so far."""
        return display.earned_points(self.outcomes)

    @property
    def max_points(self) -> float:
        """The points of the whole lab."""
        return self.facts.points

    def widget(self) -> Any:
        """A live copy of the picture, which every later check of this lab brings up to date (an ipywidgets.HTML)."""
        import ipywidgets

        widget = ipywidgets.HTML(self.html())
        _WIDGETS.append((self.lab, widget))
        return widget

    def html(self) -> str:
        """The picture as HTML."""
        return display.progress_html(self.facts, self.outcomes)

    def __str__(self) -> str:
        return display.progress_text(self.facts, self.outcomes)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": self.html()}
