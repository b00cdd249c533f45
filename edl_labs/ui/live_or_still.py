"""Things that are a widget in a live notebook and a picture anywhere else."""

from __future__ import annotations

from base64 import b64encode
from functools import cache
from html import escape
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure


_DPI = 110  # sharp enough for a screen of today, and drawn while a slider moves


class LiveOrStill:
    """Shows `widget()` where there is a kernel to talk to, and the picture of `figure()` with `repr` elsewhere."""

    def figure(self) -> Figure:
        """The still picture."""
        raise NotImplementedError

    def widget(self) -> Any:
        """The live picture."""
        raise NotImplementedError

    def html(self) -> str:
        """The still picture as HTML, where it shows more than `figure()`; empty where it does not."""
        return ""

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        # A page without a live kernel drops the widget; one that shows no HTML has the picture.
        still = {"text/plain": repr(self), "image/png": b64encode(png(self.figure())).decode()}
        html = self.html()
        told = {"image/png": {"alt": " ".join(still["text/plain"].split())}}
        return {**self._live(), **still, **({"text/html": html} if html else {})}, told

    def _live(self) -> dict[str, Any]:
        try:
            return widget_bundle(speaking(self.widget()))
        except Exception:  # no ipywidgets, or no kernel to talk to: the still picture remains
            return {}


def widget_bundle(widget: Any) -> dict[str, Any]:
    """What shows a widget in a notebook, by MIME type; raises where there is no kernel to talk to.

    Colab has ipywidgets 7, whose widgets display themselves and do not say how.
    """
    if hasattr(widget, "_repr_mimebundle_"):
        return dict(widget._repr_mimebundle_())
    view = {"version_major": 2, "version_minor": 0, "model_id": widget.model_id}
    return {"application/vnd.jupyter.widget-view+json": view, "text/plain": repr(widget)}


def speaking(widget: Any) -> Any:
    """The widget, with a script that gives every slider of the page a name and a value to be heard.

    Without it under ipywidgets 7, whose pages refuse an output that a widget is made with.
    """
    import ipywidgets

    if not hasattr(widget, "_repr_mimebundle_"):
        return widget
    script = (Path(__file__).parent / "speaking_sliders.js").read_text(encoding="utf-8")
    shown = {"output_type": "display_data", "data": {"application/javascript": script}, "metadata": {}}
    return ipywidgets.VBox([widget, ipywidgets.Output(outputs=(shown,))])


@cache
def _image_class() -> Any:
    import ipywidgets
    import traitlets

    class SpokenImage(ipywidgets.Image):
        # The front end of ipywidgets 8.1 asks whatever has a tooltip how long its description is. An Image has none,
        # and in place of the picture stands "Click to show javascript error".
        description = traitlets.Unicode("").tag(sync=True)

    return SpokenImage


def live_image() -> Any:
    """A picture to redraw: `value` is a PNG, `tooltip` describes it to those who point at it or hear it."""
    return _image_class()(format="png", layout={"max_width": "100%"})


def png(figure: Figure, *, compress_level: int = 6) -> bytes:
    """A figure as the bytes of a PNG; the figure is closed. zlib's level 1 is quicker, for what stays on a machine."""
    return stacked_png(pixels(figure), compress_level=compress_level)


def pixels(figure: Figure) -> Any:
    """A figure as an array of rows, columns and RGBA, of bytes; the figure is closed."""
    import matplotlib.pyplot as plt
    import numpy as np
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    from edl_labs.plots.style import make_readable

    make_readable(figure)
    figure.set_dpi(_DPI)
    # `savefig` would draw twice, once to lay the figure out; drawing does that as well, and a slider is quicker for it.
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    plt.close(figure)
    return np.array(canvas.buffer_rgba())


def stacked_png(*parts: Any, compress_level: int = 1) -> bytes:
    """Pictures of one width, as `pixels` gives them, below each other as the bytes of a PNG."""
    import numpy as np
    from PIL import Image

    buffer = BytesIO()
    whole = Image.fromarray(np.concatenate(parts))
    whole.save(buffer, format="png", compress_level=compress_level, dpi=(_DPI, _DPI))
    return buffer.getvalue()


def picture_html(figure: Figure, alternative: str = "") -> str:
    """A figure as an image of HTML; `alternative` says what it shows, or the figure's own words. It is closed."""
    from edl_labs.plots.style import alt_text

    told, source = escape(alternative or alt_text(figure)), b64encode(png(figure)).decode()
    return f'<img alt="{told}" style="max-width:100%" src="data:image/png;base64,{source}">'
