"""The look that all plots share: readable on white and on black, since pages follow the reader's theme.

Backgrounds are transparent, text is one grey, and every colour lies between the two, at a contrast of about 4 to both.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from edl_labs.palette import BLUE, GREEN, GREY, ON_COLOUR, ORANGE, PURPLE, RED, SERIES, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [  # plots and labs take their colours from here
    "BLUE", "COLOURS", "GREEN", "GREY", "ON_COLOUR", "ORANGE", "PURPLE", "RED", "TEXT",
    "dress", "look", "parameters", "subplots",
]  # fmt: skip
COLOURS = SERIES


def parameters() -> Any:
    """The look as a dict of matplotlib's rcParams."""
    from cycler import cycler

    greys = ("text.color", "axes.labelcolor", "axes.titlecolor", "axes.edgecolor", "xtick.color", "ytick.color")
    clear = ("figure.facecolor", "axes.facecolor", "savefig.facecolor", "legend.facecolor")
    return {
        **dict.fromkeys(greys, TEXT),
        **dict.fromkeys(clear, "none"),
        "axes.prop_cycle": cycler(color=COLOURS),
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": "medium",
        "axes.grid": False,
        "figure.constrained_layout.use": True,
        "grid.alpha": 0.3,
        "grid.color": TEXT,
        "legend.edgecolor": TEXT,
        "legend.framealpha": 0.0,
        "lines.linewidth": 1.6,
        "svg.hashsalt": "edl_labs",
    }


@contextmanager
def look() -> Iterator[None]:
    """A context in which new figures have the look: `with style.look(): figure, axes = plt.subplots()`."""
    import matplotlib as mpl

    with mpl.rc_context(parameters()):
        yield
        is_interactive = mpl.is_interactive()
    # A notebook's backend turns this on when the first figure loads it; undone, pictures would no longer appear.
    mpl.interactive(is_interactive)


def subplots(rows: int = 1, columns: int = 1, **options: Any) -> tuple[Figure, Any]:
    """A figure and its axes with the look, as `plt.subplots` gives them."""
    import matplotlib.pyplot as plt

    with look():
        return plt.subplots(rows, columns, **options)


def dress(axes: Axes) -> Axes:
    """Give axes that were made elsewhere the look: clear backgrounds, grey text, ticks and frame."""
    axes.figure.patch.set_alpha(0.0)
    axes.patch.set_alpha(0.0)
    axes.tick_params(colors=TEXT, which="both")
    for text in (axes.title, axes.xaxis.label, axes.yaxis.label):
        text.set_color(TEXT)
    for side, spine in axes.spines.items():
        spine.set_color(TEXT)
        spine.set_visible(side in ("left", "bottom"))
    return axes
