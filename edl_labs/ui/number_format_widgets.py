"""Widgets of number formats: the bits of one number, and gradients against a format's range as the loss scale moves."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from edl_labs.errors import UsageError
from edl_labs.numerics._float_format import FORMATS, float_format
from edl_labs.numerics._underflow_report import UnderflowReport, named_tensors, underflow_report
from edl_labs.palette import EXPONENT_BIT, FRACTION_BIT, ON_COLOUR, SIGN_BIT
from edl_labs.ui.live_or_still import LiveOrStill, live_image, png

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_BITS = 32  # buttons in a row


class FormatExplorer(LiveOrStill):
    """One bit pattern of a format: buttons to flip its bits in a notebook; elsewhere a picture and text.

    `fmt` is a name, a torch dtype or a `FloatFormat` of up to 32 bits; `value` is what it starts with.
    """

    def __init__(self, fmt: Any = "fp16", value: float = 1.0) -> None:
        self.fmt = float_format(fmt)
        if self.fmt.bits > _MOST_BITS:
            raise UsageError(
                f"{self.fmt.name} has {self.fmt.bits} bits",
                why=f"the page has room for only {_MOST_BITS} buttons",
                next='use FormatExplorer("fp32") or a smaller format',
            )
        self.bits = int(self.fmt.encode(float(value)))

    @property
    def value(self) -> float:
        """What the pattern means."""
        return float(self.fmt.decode(self.bits))

    def flip(self, place: int) -> float:
        """Flip one bit, counted from 0 at the right, and return the new value."""
        if not 0 <= place < self.fmt.bits:
            raise UsageError(
                f"there is no bit {place!r}",
                why=f"{self.fmt.name} has bits 0 to {self.fmt.bits - 1}",
                next="count the bits from the right, starting at 0",
            )
        self.bits ^= 1 << place
        return self.value

    def neighbours(self) -> tuple[float, float]:
        """The values just below and just above, NaN where there is none."""
        value, step = self.value, self.fmt.ulp(self.value)
        if not math.isfinite(value) or math.isnan(step):
            return math.nan, math.nan
        return self._below(value, step), -self._below(-value, step) if self.fmt.signed else self._above(value, step)

    def figure(self) -> Figure:
        """The bits above, the staircase of steps below, with the value on it."""
        from edl_labs.plots import style
        from edl_labs.plots.number_formats import draw_bits, draw_spacing

        figure, (top, bottom) = style.subplots(2, 1, figsize=(8, 4.2), height_ratios=[1, 3.2])
        draw_bits(top, self.fmt, self.bits)
        draw_spacing(bottom, self.fmt, value=self.value)
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox): a format menu, a box for a value, one button a bit."""
        import ipywidgets

        names = [name for name, fmt in FORMATS.items() if fmt.bits <= _MOST_BITS]
        options = names if self.fmt.name in names else [self.fmt.name, *names]
        menu = ipywidgets.Dropdown(options=options, value=self.fmt.name, description="format")
        box = ipywidgets.FloatText(value=self.value, description="value")
        row, text = ipywidgets.HBox(layout={"flex_flow": "row wrap"}), ipywidgets.HTML()
        picture = live_image()
        own = self.fmt

        def lay_out() -> None:
            # Once a format: a new button would not have the keyboard's focus, which stays on the one that was pressed.
            row.children = [self._button(ipywidgets, place, redraw) for place in reversed(range(self.fmt.bits))]
            redraw()

        def redraw() -> None:
            for place, button in enumerate(reversed(row.children)):
                button.description = str(self.bits >> place & 1)
            if math.isfinite(self.value):  # a box of numbers holds no infinity; the text below says it
                box.value = self.value
            text.value = f"<pre>{self!r}</pre>"
            picture.tooltip = f"the bits of {self.value:.9g} in {self.fmt.name}, and the step between its neighbours"
            picture.value = png(self.figure(), compress_level=1)

        def choose(change: Any) -> None:
            value = self.value
            self.fmt = own if change["new"] == own.name else float_format(change["new"])
            self.bits = int(self.fmt.encode(value if math.isfinite(value) else 1.0))
            lay_out()

        def enter(change: Any) -> None:
            if change["new"] != self.value:  # else it only follows the bits
                self.bits = int(self.fmt.encode(float(change["new"])))
                redraw()

        menu.observe(choose, "value")
        box.observe(enter, "value")
        lay_out()
        return ipywidgets.VBox([ipywidgets.HBox([menu, box]), row, text, picture])

    def _button(self, ipywidgets: Any, place: int, redraw: Any) -> Any:
        fmt = self.fmt
        is_sign = fmt.signed and place == fmt.bits - 1
        is_fraction = place < fmt.mantissa_bits
        field, colour = ("fraction", FRACTION_BIT) if is_fraction else ("exponent", EXPONENT_BIT)
        field, colour = ("sign", SIGN_BIT) if is_sign else (field, colour)
        begins = place in (fmt.mantissa_bits - 1, fmt.mantissa_bits + fmt.exponent_bits - 1)
        button = ipywidgets.Button(
            description=str(self.bits >> place & 1),
            tooltip=f"bit {place}, {field}",
            layout={"width": "2.2em", "padding": "0", "margin": f"2px 2px 2px {14 if begins else 2}px"},
            style={"button_color": colour, "text_color": ON_COLOUR},
        )

        def click(_: Any) -> None:
            self.flip(place)
            redraw()

        button.on_click(click)
        return button

    def _below(self, value: float, step: float) -> float:
        # Just below a power of two the step is half as wide.
        for candidate in (value - step / 2, value - step):
            if float(self.fmt.round(candidate)) == candidate != value:
                return candidate
        return math.nan

    def _above(self, value: float, step: float) -> float:
        return value + step if float(self.fmt.round(value + step)) == value + step else math.nan

    def __repr__(self) -> str:
        below, above = self.neighbours()
        digits = f"{self.bits:0{self.fmt.bits}b}"
        cuts = (int(self.fmt.signed), int(self.fmt.signed) + self.fmt.exponent_bits)
        fields = " ".join(filter(None, (digits[: cuts[0]], digits[cuts[0] : cuts[1]], digits[cuts[1] :])))
        return f"{self.fmt.name}  {fields}  =  {self.value:.9g}\n  neighbours: {below:.9g} and {above:.9g}"


MAX_NUMBERS = 200_000  # a histogram of them follows the slider
_STILLS = (0, 8, 16, 24)  # powers of two: no scale, some, torch's first, and beyond
_MOST_POWER = 40  # far beyond 2**16, torch's first scale


class UnderflowSlider(LiveOrStill):
    """The histogram of gradients against a format's range, with the scale as a slider; elsewhere four fixed scales.

    `tensors` is a tensor, a list or a dict of them. Of more than 200,000 numbers an even sample is kept, so that
    dragging stays quick; then the title says so.
    """

    def __init__(self, tensors: Any, fmt: Any = "fp16", *, power: int = 0) -> None:
        import numpy as np

        from edl_labs.numerics import arrays

        self.fmt = float_format(fmt)
        self.power = _checked(power)
        given = np.concatenate([arrays.float64(values).ravel() for _, values in named_tensors(tensors)])
        given = np.abs(given[(given != 0) & np.isfinite(given)])
        self.step = max(1, -(-given.size // MAX_NUMBERS))
        self._values = given[:: self.step]

    def report(self, power: int) -> UnderflowReport:
        """What the format makes of the numbers times 2**power."""
        return underflow_report(self._values, self.fmt, scale=2.0 ** _checked(power))

    def figure(self, powers: tuple[int, ...] | None = None) -> Figure:
        """The histograms at some scales, given as powers of two, one below the other."""
        from edl_labs.plots import style
        from edl_labs.plots.number_formats import draw_underflow

        powers = _STILLS if powers is None else powers
        figure, rows = style.subplots(len(powers), 1, figsize=(8, 2.5 * len(powers)), squeeze=False, sharex=True)
        for axes, power in zip(rows[:, 0], powers, strict=True):
            draw_underflow(axes, self.report(power))
            if self.step > 1:
                axes.set_title(f"{axes.get_title()} (every {self.step}th number)", color=style.TEXT)
        for axes in rows[:-1, 0]:
            axes.set_xlabel("")
        return figure

    def widget(self) -> Any:
        """The live picture (an ipywidgets.VBox): a format menu and the scale's slider above the histogram."""
        import ipywidgets

        menu = ipywidgets.Dropdown(options=self._names(), value=self.fmt.name, description="format")
        slider = ipywidgets.IntSlider(
            value=self.power,
            min=-10,
            max=_MOST_POWER,
            description="log2 of the scale",
            style={"description_width": "10em"},
            layout={"width": "34em"},
        )
        picture = live_image()
        own = self.fmt

        def redraw(_: Any = None) -> None:
            self.fmt = own if menu.value == own.name else float_format(menu.value)
            self.power = slider.value
            picture.tooltip = f"times 2^{self.power}, {self.fmt.name}: {str(self.report(self.power).total)[5:]}"
            picture.value = png(self.figure((slider.value,)), compress_level=1)

        for control in (menu, slider):
            control.observe(redraw, "value")
        redraw()
        return ipywidgets.VBox([menu, slider, picture])

    def _names(self) -> list[str]:
        return list(dict.fromkeys([self.fmt.name, *(n for n, f in FORMATS.items() if f.signed and f.bits <= 32)]))

    def __repr__(self) -> str:
        reports = ((power, self.report(power)) for power in _STILLS)
        return "\n".join(f"times 2^{power}, {report.fmt.name}: {str(report.total)[5:]}" for power, report in reports)


def _checked(power: Any) -> int:
    if not (isinstance(power, int) and math.isfinite(2.0 ** max(-1000, min(1000, power))) and abs(power) <= 1000):
        raise UsageError(
            f"cannot use a scale of 2**{power!r}",
            why="the power must be a whole number from -1000 to 1000",
            next="use, for example, 16: torch begins with a scale of 2**16",
        )
    return power
