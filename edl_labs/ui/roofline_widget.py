"""A roofline to look around in: names under the pointer, filters by module and dtype; a still picture elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from edl_labs.roofline._place import Placed, Point, place_all, you_are_here
from edl_labs.roofline.machine_ceilings import Machine
from edl_labs.ui.live_or_still import LiveOrStill

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "all"


class RooflineExplorer(LiveOrStill):
    """The roofline of `machine` with `points`: hover names an operation, two menus choose modules and dtypes.

    In a notebook without a live kernel the picture alone remains, still with names under the pointer; as text it says
    where you are. AboveRoof at once where a point lies above its roof.
    """

    def __init__(self, machine: Machine, points: Iterable[Point], *, size: tuple[float, float] = (8.5, 5.6)) -> None:
        self.machine, self.points, self.size = machine, tuple(points), size
        self.placed = place_all(machine, self.points)

    @property
    def modules(self) -> list[str]:
        """The modules to choose from."""
        return [ALL, *sorted({point.module for point in self.points if point.module})]

    @property
    def dtypes(self) -> list[str]:
        """The dtypes to choose from."""
        return [ALL, *sorted({point.work.dtype for point in self.points})]

    def chosen(self, *, module: str = ALL, dtype: str = ALL) -> tuple[Point, ...]:
        """The points of a module (with all inside it) and a dtype, worst first."""
        return tuple(
            placed.point
            for placed in self.placed
            if _inside(placed.point.module, module) and dtype in (ALL, placed.point.work.dtype)
        )

    def figure(self, *, module: str = ALL, dtype: str = ALL) -> Figure:
        """The picture of a choice."""
        from edl_labs.plots import style
        from edl_labs.plots.roofs import roofline

        figure, axes = style.subplots(figsize=self.size)
        roofline(axes, self.machine, self.chosen(module=module, dtype=dtype))
        return figure

    def svg(self, *, module: str = ALL, dtype: str = ALL) -> str:
        """The picture as SVG in which each point carries its story, shown under the pointer."""
        import matplotlib.pyplot as plt

        from edl_labs.plots.roofs import drawn

        figure = self.figure(module=module, dtype=dtype)
        buffer = StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
        text = buffer.getvalue()
        kept = set(self.chosen(module=module, dtype=dtype))
        for index, placed in enumerate(drawn(one for one in self.placed if one.point in kept)):
            mark = f'<g id="point-{index}">'
            text = text.replace(mark, f"{mark}<title>{escape(_story(placed))}</title>", 1)
        return text[text.index("<svg") :]

    def html(self) -> str:
        """The picture with the stories of its points."""
        return self.svg()

    def widget(self) -> Any:
        """The live form (an ipywidgets.VBox): two menus over the picture."""
        import ipywidgets

        menus = {
            "module": ipywidgets.Dropdown(options=self.modules, value=ALL, description="module"),
            "dtype": ipywidgets.Dropdown(options=self.dtypes, value=ALL, description="dtype"),
        }
        picture = ipywidgets.HTML()

        def redraw(_: Any = None) -> None:
            picture.value = self.svg(**{name: menu.value for name, menu in menus.items()})

        for menu in menus.values():
            menu.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([ipywidgets.HBox(list(menus.values())), picture])

    def __repr__(self) -> str:
        return you_are_here(self.placed)


def _inside(module: str, chosen: str) -> bool:
    return chosen == ALL or module == chosen or module.startswith(f"{chosen}.")


def _story(placed: Placed) -> str:
    point = placed.point
    lines = [f"{point.module}.{point.name}" if point.module else point.name, str(point.work), placed.words]
    return "\n".join(lines)
