"""A roofline to look around in: names under the pointer, menus for module, dtype and machine; a picture elsewhere."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from io import StringIO
from typing import TYPE_CHECKING, Any

from edl_labs.errors import EdlError
from edl_labs.roofline._bound import bound
from edl_labs.roofline._place import Placed, Point, place_all, you_are_here
from edl_labs.roofline.machine_ceilings import Machine
from edl_labs.ui.live_or_still import LiveOrStill

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ALL = "all"


class RooflineExplorer(LiveOrStill):
    """The roofline of `machine` with `points`: hover names an operation, menus choose modules, dtypes and machines.

    `others` are machines, or names that `Machine.of` knows: there the same operations stand where they would be at
    best. In a notebook without a live kernel the picture alone remains, still with names under the pointer; as text it
    says where you are. AboveRoof at once where a point lies above its roof.
    """

    def __init__(
        self,
        machine: Machine,
        points: Iterable[Point],
        *,
        others: Iterable[Machine | str] = (),
        size: tuple[float, float] = (8.5, 5.6),
    ) -> None:
        self.machine, self.points, self.size = machine, tuple(points), size
        self.placed = place_all(machine, self.points)
        self.others = {one.name: one for one in (Machine.of(o) if isinstance(o, str) else o for o in others)}

    @property
    def modules(self) -> list[str]:
        """The modules to choose from."""
        return [ALL, *sorted({point.module for point in self.points if point.module})]

    @property
    def dtypes(self) -> list[str]:
        """The dtypes to choose from."""
        return [ALL, *sorted({point.work.dtype for point in self.points})]

    @property
    def machines(self) -> list[str]:
        """The machines to choose from: the one that was measured, then the others."""
        return [self.machine.name, *(name for name in self.others if name != self.machine.name)]

    def chosen(self, *, module: str = ALL, dtype: str = ALL) -> tuple[Point, ...]:
        """The points of a module (with all inside it) and a dtype, worst first."""
        return tuple(
            placed.point
            for placed in self.placed
            if _inside(placed.point.module, module) and dtype in (ALL, placed.point.work.dtype)
        )

    def at_best(self, machine: str, *, module: str = ALL, dtype: str = ALL) -> tuple[Point, ...]:
        """The same choice as it would be at best on one of the others, without what that one has no roof for."""
        other, points = self.others[machine], []
        for point in self.chosen(module=module, dtype=dtype):
            level = other.level_of(point.work.moved_bytes).name if point.level else None
            try:
                time_s = bound(other, point.work, level=level).time_s
            except EdlError:  # no roof for its dtype
                continue
            points.append(Point(point.name, point.work, time_s, module=point.module, calls=point.calls, level=level))
        return tuple(points)

    def figure(self, *, module: str = ALL, dtype: str = ALL, machine: str = "") -> Figure:
        """The picture of a choice."""
        from edl_labs.plots import style
        from edl_labs.plots.roofs import roofline

        there, points, title = self._where(module, dtype, machine)
        figure, axes = style.subplots(figsize=self.size)
        roofline(axes, there, points, title=title)
        return figure

    def svg(self, *, module: str = ALL, dtype: str = ALL, machine: str = "") -> str:
        """The picture as SVG in which each point carries its story, shown under the pointer."""
        import matplotlib.pyplot as plt

        from edl_labs.plots.roofs import drawn
        from edl_labs.plots.style import alt_text

        there, points, _ = self._where(module, dtype, machine)
        figure = self.figure(module=module, dtype=dtype, machine=machine)
        buffer = StringIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        plt.close(figure)
        text = buffer.getvalue()
        for index, placed in enumerate(drawn(place_all(there, points))):
            mark = f'<g id="point-{index}">'
            text = text.replace(mark, f"{mark}<title>{escape(_story(placed))}</title>", 1)
        told = escape(f"{alt_text(figure)} {you_are_here(place_all(there, points))}", quote=True)
        spoken = f'<svg role="img" aria-label="{told}" style="max-width:100%;height:auto"'
        return spoken + text[text.index("<svg") + len("<svg") :]

    def _where(self, module: str, dtype: str, machine: str) -> tuple[Machine, tuple[Point, ...], str | None]:
        if machine in ("", self.machine.name):
            return self.machine, self.chosen(module=module, dtype=dtype), None
        other = self.others[machine]
        title = f"{other.name}, {other.origin}: the same operations, at best (computed)"
        return other, self.at_best(machine, module=module, dtype=dtype), title

    def html(self) -> str:
        """The picture with the stories of its points."""
        return self.svg()

    def widget(self) -> Any:
        """The live form (an ipywidgets.VBox): a menu for each thing with several values, above the picture."""
        import ipywidgets

        choices = {"module": self.modules, "dtype": self.dtypes, "machine": self.machines}
        least = {"module": 2, "dtype": 3, "machine": 2}  # "all" and two of them, or there is nothing to choose
        menus = {
            name: ipywidgets.Dropdown(options=options, value=options[0], description=name)
            for name, options in choices.items()
            if len(options) >= least[name]
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
