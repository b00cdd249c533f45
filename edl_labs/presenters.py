"""Who shows results: values call `present`, the package's facade registers who answers, and no import runs uphill."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_PRESENTERS: dict[str, str] = {}


def present(how: str, value: Any, *args: Any, **options: Any) -> Any:
    """What the presenter registered for `how` ('plot', 'html') makes of a value; UsageError where there is none."""
    if how not in _PRESENTERS:
        raise UsageError(
            f"no presenter creates a {how} from a result",
            next="register one: register_presenter(how, 'module:function')",
        )
    module, _, name = _PRESENTERS[how].partition(":")
    return getattr(import_module(module), name)(value, *args, **options)


class Plottable:
    """Base of results with a picture; the table in `plots` says which function draws it."""

    def plot(self, axes: Axes | None = None, **options: Any) -> Axes:
        """Draws the result's picture, by default on new axes, and returns the axes."""
        drawn: Axes = present("plot", self, axes, **options)
        return drawn


def register_presenter(how: str, where: str) -> None:
    """Let `where`, as 'module:function', make `how` of values; the module is imported at the first use."""
    _PRESENTERS[how] = where
