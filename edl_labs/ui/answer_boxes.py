"""Boxes to write in: a line or a few buttons, which give way to text once they are filled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from html import escape
from typing import Any

from edl_labs.ui.live_or_still import widget_bundle

_NO_BOX = "(an input box, in a running notebook)"
_EMPTY = {"text/plain": "", "text/html": ""}
Take = Callable[[str], str]
"""Stores what was written; returns what is wrong with it, or an empty text."""

# JupyterLab writes "Error displaying widget: model not found", and nothing else, where a saved widget has no kernel.
_LOST = ".jp-OutputArea-output.jupyter-widgets:not(:has(*))"
REOPENED_STYLE = (
    f"<style>{_LOST}{{font-size:0}}"
    f'{_LOST}::after{{content:"Run this cell again to use what was here.";'
    "font-size:var(--jp-ui-font-size1);color:var(--jp-ui-font-color2)}</style>"
)
"""HTML that shows what to do instead of that error message, wherever it appears on the page."""


def show_box(display: Any, make: Callable[[], tuple[Any, Any]], *, place: Any = None) -> Any:
    """Shows what `make` makes, a widget and what connects a call to its filling, in a new place or in `place`.

    The place, whose `update` replaces the box; None where no box can be shown.
    """
    try:
        widget, connect = make()
        live = {**widget_bundle(widget), "text/plain": _NO_BOX}
    except Exception:  # no ipywidgets, or no kernel to talk to
        return None
    shown = display(live, raw=True, display_id=True) if place is None else place
    if place is not None:
        place.update(live, raw=True)

    def filled() -> None:
        shown.update(_EMPTY, raw=True)
        with suppress(Exception):
            widget.close()

    connect(filled)
    return shown


def empty_place(display: Any) -> Any:
    """A place where a box can be shown later."""
    return display(_EMPTY, raw=True, display_id=True)


def line_box(take: Take, **look: Any) -> tuple[Any, Any]:
    """A line of text with the traits of `ipywidgets.Text`; `take` gets it at Enter."""
    import ipywidgets

    line = ipywidgets.Text(continuous_update=False, style={"description_width": "initial"}, **look)
    told, taking, connect = _taking(ipywidgets, take)
    line.observe(lambda change: taking(change["new"]), "value")
    return ipywidgets.VBox([line, told]), connect


def choice_box(take: Take, choices: Sequence[str], *, tooltip: str) -> tuple[Any, Any]:
    """A button for each of `choices`."""
    import ipywidgets

    told, taking, connect = _taking(ipywidgets, take)
    look = {"layout": {"width": "auto"}}
    buttons = [
        ipywidgets.Button(description=one, tooltip=f"{tooltip} {one}".replace("`", ""), **look) for one in choices
    ]
    for button in buttons:
        button.on_click(lambda pressed: taking(pressed.description))
    return ipywidgets.VBox([ipywidgets.HBox(buttons, layout={"flex_flow": "row wrap"}), told]), connect


def _taking(ipywidgets: Any, take: Take) -> tuple[Any, Take, Any]:
    """Where a problem is told, what takes an answer, and what connects a call for when one was kept."""
    told = ipywidgets.HTML()
    filled: list[Callable[[], None]] = []

    def taking(said: str) -> str:
        if not said.strip():
            return ""
        problem = take(said)
        told.value = f'<span role="alert">{escape(problem)}</span>'
        for call in filled if not problem else ():
            call()
        return problem

    return told, taking, filled.append
