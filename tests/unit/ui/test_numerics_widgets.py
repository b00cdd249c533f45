"""The format explorer and the underflow slider: values first, then the still picture, then the controls."""

from __future__ import annotations

import base64
import math

import numpy as np
import pytest

from edl_labs.errors import UsageError
from edl_labs.numerics import FORMATS, FloatFormat
from edl_labs.ui.number_format_widgets import MAX_NUMBERS, FormatExplorer, UnderflowSlider


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


def test_flipping_a_bit_changes_the_value_and_flipping_it_again_restores_it() -> None:
    explorer = FormatExplorer("fp16", 1.0)

    assert [-1.0, 1.0, 1.0009765625] == [explorer.flip(15), explorer.flip(15), explorer.flip(0)]


@pytest.mark.parametrize("name", ["fp16", "e4m3fn", "e5m2", "e2m1fn", "e4m3fnuz"])
def test_neighbours_are_the_next_values_on_both_sides(name: str) -> None:
    fmt = FORMATS[name]
    values = np.unique(fmt.all_values()[np.isfinite(fmt.all_values())])
    for below, value, above in list(zip(values, values[1:], values[2:], strict=False))[:: max(1, len(values) // 50)]:
        assert (below, above) == FormatExplorer(fmt, float(value)).neighbours()


def test_the_last_value_has_no_neighbour_above_and_infinity_none_at_all() -> None:
    below, above = FormatExplorer("fp16", 65504.0).neighbours()

    assert (65472.0, True) == (below, math.isnan(above))
    assert all(math.isnan(v) for v in FormatExplorer("fp16", math.inf).neighbours())


def test_as_text_the_fields_stand_apart() -> None:
    assert "fp16  0 01111 0000000000  =  1" == repr(FormatExplorer("fp16", 1.0)).splitlines()[0]


@pytest.mark.parametrize("make", [lambda: FormatExplorer("bf16", 3.0), lambda: UnderflowSlider([1e-9, 1.0])])
def test_a_page_without_a_kernel_gets_a_picture_and_text(make) -> None:
    bundle, about = make()._repr_mimebundle_()

    assert " ".join(bundle["text/plain"].split()) == about["image/png"]["alt"]
    assert base64.b64decode(bundle["image/png"]).startswith(b"\x89PNG")
    assert len(bundle["text/plain"]) > 20


def test_clicking_a_bit_redraws_and_choosing_a_format_keeps_the_value() -> None:
    explorer = FormatExplorer("fp16", 1.5)
    box = explorer.widget()
    (menu, _), row, text, picture = box.children[0].children, *box.children[1:]
    before = bytes(picture.value)
    row.children[0].click()

    assert (-1.5, 16) == (explorer.value, len(row.children))
    assert before != bytes(picture.value)
    menu.value = "e4m3fn"
    assert (-1.5, 8) == (explorer.value, len(row.children))
    assert "e4m3fn" in text.value
    assert "-1.5 in e4m3fn" in picture.tooltip


def test_the_box_follows_the_bits_and_the_buttons_stay() -> None:
    explorer = FormatExplorer("fp16", 1.5)
    widget = explorer.widget()
    (_, box), row = widget.children[0].children, widget.children[1]
    buttons = row.children
    buttons[0].click()

    assert (-1.5, "1") == (box.value, buttons[0].description)
    assert all(now is before for now, before in zip(row.children, buttons, strict=True))
    assert ["bit 15, sign", "bit 14, exponent", "bit 9, fraction"] == [buttons[k].tooltip for k in (0, 1, 6)]
    for button in buttons[1:6]:  # a pattern of an infinity or NaN leaves the box as it was
        if button.description == "0":
            button.click()
    assert not math.isfinite(explorer.value)
    assert math.isfinite(box.value)


def test_typing_a_value_shows_what_it_rounds_to() -> None:
    explorer = FormatExplorer("e4m3fn", 1.0)
    box = explorer.widget()
    box.children[0].children[1].value = 0.3

    assert 0.3125 == explorer.value


def test_a_format_of_your_own_is_in_the_menu() -> None:
    own = FloatFormat("mine", exponent_bits=3, mantissa_bits=2)
    menu = FormatExplorer(own, 1.0).widget().children[0].children[0]

    assert "mine" == menu.value


def test_dragging_the_scale_moves_the_histogram() -> None:
    slider = UnderflowSlider(2.0 ** np.linspace(-40, 0, 500))
    menu, control, picture = slider.widget().children
    before = bytes(picture.value)
    control.value = 16

    assert before != bytes(picture.value)
    assert 16 == slider.power
    menu.value = "bf16"
    assert "bf16" == slider.fmt.name
    assert 0.0 == slider.report(16).flushed


def test_large_tensors_are_thinned_evenly() -> None:
    slider = UnderflowSlider(np.ones(3 * MAX_NUMBERS))

    assert (3, MAX_NUMBERS) == (slider.step, slider.report(0).total.count)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: FormatExplorer("fp64"), "has 64 bits"),
        (lambda: FormatExplorer("fp16").flip(16), "no bit 16"),
        (lambda: UnderflowSlider([1.0], power=0.5), "whole number"),
        (lambda: UnderflowSlider({}), "no tensors"),
    ],
)
def test_what_cannot_be_shown_is_refused(make, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        make()

    assert text in str(caught.value)
