"""Points so far in a lab."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from edl_labs.checks import progress_map
from edl_labs.checks._judge import STATES, Outcome
from edl_labs.checks.lab_cells import tell_missing_names
from edl_labs.checks.lab_facts import NOTEBOOK_LAB, ExerciseFacts, LabFacts, facts
from edl_labs.checks.progress_store import is_notebook, read_beside, write_beside

if TYPE_CHECKING:
    from ipywidgets import HTML

_LATEST: dict[tuple[str, str], Outcome] = {}
_WIDGETS: list[tuple[str, Any]] = []
_MAPS: dict[str, list[Any]] = {}  # by lab: handles of the maps that a notebook shows
_MAPS_KEPT = 4  # two stand in a lab; who runs their cells again leaves older ones behind


def remember(outcome: Outcome) -> None:
    """Keep an outcome as the latest of its exercise: in this process, and in a file next to the notebook for the next
    one.

    Where a restarted kernel has not run the exercise's cells yet, what an earlier kernel said of it stays.
    """
    if outcome.lab and is_notebook():
        tell_missing_names(outcome.lab)
        if outcome.state == "not attempted" and (outcome.lab, outcome.name) not in _LATEST and _is_kept(outcome):
            return
    _LATEST[outcome.lab, outcome.name] = outcome
    NOTEBOOK_LAB[:] = [outcome.lab or NOTEBOOK_LAB[0]]
    if outcome.lab and is_notebook():
        _write_beside(outcome)
    for lab, widget in _WIDGETS:
        if lab == outcome.lab:
            widget.value = Progress(lab).html()
    for handle in _MAPS.get(outcome.lab, []):
        with suppress(Exception):  # a page that is gone
            handle.update(Progress(outcome.lab)._repr_mimebundle_(), raw=True)


def _write_beside(outcome: Outcome) -> None:
    """What a restarted kernel shows as earned before it."""
    earlier = {name: told for name, told in read_beside(outcome.lab).items() if _is_outcome(told)}
    write_beside(outcome.lab, {**earlier, outcome.name: [outcome.state, outcome.points, outcome.max_points]})


def _is_kept(outcome: Outcome) -> bool:
    known = facts(outcome.lab).exercise(outcome.name)
    return _before_restart(known, outcome.lab, read_beside(outcome.lab)) is not None


def _before_restart(known: ExerciseFacts, lab: str, kept: dict[str, Any]) -> Outcome | None:
    """What an earlier kernel said of an exercise, where it can be believed."""
    state, points, most = kept[known.name] if _is_outcome(kept.get(known.name)) else ("", 0.0, 0.0)
    if state not in STATES or most != known.points or not 0 <= points <= most:
        return None
    return Outcome(known.name, lab, state, points, most, before_restart=True)


def _is_outcome(value: Any) -> bool:
    """Whether it is a state, points and the most points; `bool` is no number here."""
    if not isinstance(value, list) or len(value) != 3:
        return False
    return type(value[0]) is str and all(type(part) in (int, float) for part in value[1:])


def failing_case(name: str) -> int | None:
    """The place of the first case that was not right in the latest check of an exercise in this process."""
    return next((outcome.case_index for (_, known), outcome in _LATEST.items() if known == name), None)


class Progress:
    """The points of a lab so far, as they were checked, here or before a restart: text, or a map in a notebook.

    A map that a notebook shows follows later checks. Exercises marked by hand count as open until a person has read
    them.
    """

    def __init__(self, lab: str) -> None:
        self.lab = lab
        self.facts: LabFacts = facts(lab)
        NOTEBOOK_LAB[:] = [lab]

    @property
    def outcomes(self) -> dict[str, Outcome | None]:
        """The latest outcome of each exercise in the lab's order; None where it was not checked yet.

        In a notebook, what this kernel has not checked is as an earlier one left it, and says so.
        """
        kept = read_beside(self.lab) if is_notebook() else {}
        return {
            e.name: _LATEST.get((self.lab, e.name)) or _before_restart(e, self.lab, kept) for e in self.facts.exercises
        }

    @property
    def points(self) -> float:
        """Points earned so far."""
        return progress_map.earned_points(self.outcomes)

    @property
    def max_points(self) -> float:
        """The points of the whole lab."""
        return self.facts.points

    def widget(self) -> HTML:
        """A live copy of the map, which every later check of this lab brings up to date (an ipywidgets.HTML)."""
        import ipywidgets

        widget = ipywidgets.HTML(self.html())
        _WIDGETS.append((self.lab, widget))
        return widget

    def html(self) -> str:
        """The map as HTML."""
        return progress_map.as_html(self.facts, self.outcomes)

    def __str__(self) -> str:
        return progress_map.as_text(self.facts, self.outcomes)

    __repr__ = __str__

    def _repr_mimebundle_(self, **_: Any) -> dict[str, Any]:
        return {"text/plain": str(self), "text/html": self.html()}

    def _ipython_display_(self) -> None:
        if not is_notebook():
            print(self)
            return
        from IPython.display import display

        tell_missing_names(self.lab)
        handle = display(self._repr_mimebundle_(), raw=True, display_id=True)
        _MAPS[self.lab] = [*_MAPS.get(self.lab, []), handle][-_MAPS_KEPT:]
