"""The look that all plots share: readable on white and on black, since pages follow the reader's theme.

Backgrounds are transparent, text is one grey, and every colour lies between the two, at a contrast of about 4 to both.
"""

from __future__ import annotations

import numbers
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from edl_labs.palette import BLUE, GREEN, GREY, ON_COLOUR, ORANGE, PURPLE, RED, SERIES, TEXT

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [  # plots and labs take their colours from here
    "BLUE", "COLOURS", "GREEN", "GREY", "HATCHING", "MARKS", "ON_COLOUR", "ORANGE", "PURPLE", "RED", "TEXT",
    "alt_text", "dress", "look", "make_readable", "parameters", "subplots",
]  # fmt: skip
COLOURS = SERIES
HATCHING = (1.0, 1.0, 1.0, 0.5)
"""Strokes of a hatch on any of the colours: seen, and faint enough to read a name on them."""
MARKS = "osD^v<>"
"""Shapes with the colours of series, so that colour alone carries nothing."""


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
        figure, axes = plt.subplots(rows, columns, **options)
    figure.reads_on_any_page = True
    _speak_in_notebooks()
    return figure, axes


_MOST_ROWS = 12  # of a picture are named in words: more are tiring to hear


def alt_text(figure: Figure) -> str:
    """What a figure shows, in words, for readers who hear it: per axes its title, its axes and its series' ranges."""
    return " ".join(_in_words(axes) for axes in figure.axes if axes.has_data()) or "An empty figure."


def _in_words(axes: Axes) -> str:
    title = axes.get_title()
    sides = [
        f"{name}: {label}" + (" (logarithmic)" if scale == "log" else "")
        for name, label, scale in (
            ("x", axes.get_xlabel(), axes.get_xscale()),
            ("y", axes.get_ylabel(), axes.get_yscale()),
        )
        if label
    ]
    series = [
        f"{label} {_span(handle)}".strip() for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    ]
    parts = [title and f"“{title}”", ", ".join(sides), series and "series: " + "; ".join(series)]
    return f"Plot {'. '.join(part for part in (*parts, *_rows_and_marks(axes, bool(series))) if part)}."


def _rows_and_marks(axes: Axes, has_series: bool) -> list[str]:
    """What rows are called, where they have names, and what a legend of its own explains."""
    names = [label.get_text().replace("\n", ", ") for label in axes.get_yticklabels()]
    worded = [name for name in names if any(map(str.isalpha, name)) and "$" not in name]  # a number is none, 10^1 too
    rows = worded if len(axes.yaxis.get_ticklocs(minor=False)) else []
    legend = axes.get_legend()
    marks = [text.get_text() for text in legend.get_texts()] if legend and not has_series else []
    said = {"rows: ": "; ".join(rows[:_MOST_ROWS]), "marks: ": ", ".join(marks)}
    return [name + text for name, text in said.items() if text]


def _span(handle: Any) -> str:
    """From where to where a line goes."""
    values = list(handle.get_ydata()) if hasattr(handle, "get_ydata") else []
    if len(values) < 2:
        return ""
    ends = [f"{y:.3g}" if isinstance(y, numbers.Real) else str(y) for y in (values[0], values[-1])]  # or words, dates
    return f"from {ends[0]} to {ends[1]}"


def _speak_in_notebooks() -> None:
    """Where a notebook shows figures, give their pictures an alternative text and the page's own background."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is None:
        return
    from matplotlib.figure import Figure

    formatter = shell.display_formatter.formatters["image/png"]
    try:
        draw = formatter.lookup_by_type(Figure)
    except KeyError:  # nothing shows figures as PNG here
        return
    if getattr(draw, "speaks", False):
        return

    def spoken(figure: Figure) -> Any:
        if getattr(figure, "reads_on_any_page", False):
            make_readable(figure)
        picture = draw(figure)
        data, metadata = picture if isinstance(picture, tuple) else (picture, {})
        return (data, {**metadata, "alt": alt_text(figure)}) if data is not None else picture

    spoken.speaks = True  # type: ignore[attr-defined]
    formatter.for_type(Figure, spoken)
    _keep_the_pages_background()


def make_readable(figure: Figure) -> None:
    """Fix what was added after the look had ended: its text is black and its legend white, unread on a dark page."""
    from matplotlib.colors import to_hex
    from matplotlib.legend import Legend
    from matplotlib.text import Text

    for text in figure.findobj(Text):
        if to_hex(text.get_color()) == "#000000":
            text.set_color(TEXT)
    for legend in figure.findobj(Legend):
        legend.get_frame().set(facecolor="none", edgecolor=TEXT)


def _keep_the_pages_background() -> None:
    """JupyterLab puts white behind clear figures with dark ticks. The look's grey is made for either page."""
    backend: Any = sys.modules.get("matplotlib_inline.backend_inline")
    asks = getattr(backend, "_fetch_figure_metadata", None)
    if asks is None:
        return

    def metadata_of(figure: Figure) -> Any:
        return None if getattr(figure, "reads_on_any_page", False) else asks(figure)

    backend._fetch_figure_metadata = metadata_of


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
