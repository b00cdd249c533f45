"""Drag a program of a matrix product over its grid, and see which parts of A, B and C it touches."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.ui.live_or_still import LiveOrStill, live_image, png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PROGRAMS = 400  # more tiles are thinner than their lines
TILES = (16, 32, 64, 128)  # sides to choose from


class TileExplorer(LiveOrStill):
    """A live picture with three sliders in a notebook; elsewhere the first, a middle and the last program.

    C = A·B with `m` rows, `n` columns and a sum over `k`.
    """

    def __init__(self, *, m: int = 300, n: int = 200, k: int = 160) -> None:
        if min(m, n, k) < 1 or -(-m // TILES[0]) * -(-n // TILES[0]) > _MOST_PROGRAMS:
            raise UsageError(
                f"got m = {m}, n = {n}, k = {k}",
                why=f"the picture has room for 1 to {_MOST_PROGRAMS} tiles of {TILES[0]} × {TILES[0]}",
                next="use, for example, TileExplorer(m=300, n=200, k=160)",
            )
        self.m, self.n, self.k = m, n, k

    def programs(self, bm: int, bn: int) -> int:
        """How many tiles C has."""
        return -(-self.m // bm) * -(-self.n // bn)

    def read_elements(self, bm: int, bn: int) -> int:
        """Elements of A and B that all programs read."""
        return self.k * (self.m * -(-self.n // bn) + self.n * -(-self.m // bm))

    def describe(self, bm: int, bn: int) -> str:
        """One line about a size of tiles: programs, and how often an element is read."""
        often = self.read_elements(bm, bn) / (self.k * (self.m + self.n))
        return f"{self.programs(bm, bn)} programs; each element of A and B is read {often:.3g} times on average"

    def figure(self, bm: int = 64, bn: int = 64, programs: tuple[int, ...] | None = None) -> Figure:
        """The picture of some programs, side by side."""
        from edl_labs.plots import style
        from edl_labs.plots.tile_pictures import draw_tile

        last = self.programs(bm, bn) - 1
        chosen = (0, last // 2, last) if programs is None else programs
        figure, rows = style.subplots(1, len(chosen), figsize=(4.6 * len(chosen), 4.4), squeeze=False)
        for axes, program in zip(rows[0], chosen, strict=True):
            draw_tile(axes, m=self.m, n=self.n, k=self.k, bm=bm, bn=bn, program=program)
        figure.suptitle(f"tiles of {bm} × {bn}: {self.describe(bm, bn)}", color=style.TEXT)
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox)."""
        import ipywidgets

        look = {"style": {"description_width": "6em"}, "layout": {"width": "30em"}}
        bm = ipywidgets.SelectionSlider(options=TILES, value=64, description="BM", **look)
        bn = ipywidgets.SelectionSlider(options=TILES, value=64, description="BN", **look)
        program = ipywidgets.IntSlider(value=0, min=0, max=self.programs(64, 64) - 1, description="program", **look)
        picture = live_image()

        def redraw(_: Any = None) -> None:
            program.max = self.programs(bm.value, bn.value) - 1
            picture.tooltip = self.describe(bm.value, bn.value)
            picture.value = png(self.figure(bm.value, bn.value, (program.value,)), compress_level=1)

        for slider in (bm, bn, program):
            slider.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([bm, bn, program, picture])

    def __repr__(self) -> str:
        lines = [f"tiles of {side} × {side}: {self.describe(side, side)}" for side in TILES]
        return "\n".join([f"C = A·B, {self.m} × {self.k} times {self.k} × {self.n}:", *lines])
