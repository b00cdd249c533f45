"""Live pictures are made in one place: a plain `ipywidgets.Image` with a tooltip is an error message in the page."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

import edl_labs.ui

UI = Path(edl_labs.ui.__path__[0])
MADE_IN = "live_or_still.py"


def plain_images(source: str) -> list[int]:
    """The lines that call `ipywidgets.Image`."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [call.lineno for call in calls if ast.unparse(call.func).endswith("ipywidgets.Image")]


@pytest.mark.parametrize("path", sorted(UI.glob("*.py")), ids=lambda path: path.stem)
def test_a_widget_takes_its_picture_from_live_image(path: Path) -> None:
    assert path.name == MADE_IN or [] == plain_images(path.read_text(encoding="utf-8"))


def test_a_plain_image_is_found() -> None:
    assert [2] == plain_images('import ipywidgets\npicture = ipywidgets.Image(format="png")')


def test_the_one_place_gives_a_picture_that_the_front_end_can_ask_for_its_description() -> None:
    from edl_labs.ui.live_or_still import live_image

    assert {"description", "tooltip", "value"} <= set(live_image().trait_names())


class OldWidget:
    """A widget of ipywidgets 7, as far as showing it goes."""

    model_id = "seven"


def test_a_widget_of_colabs_ipywidgets_has_a_view() -> None:
    from edl_labs.ui.live_or_still import speaking, widget_bundle

    view = widget_bundle(OldWidget())["application/vnd.jupyter.widget-view+json"]

    assert "seven" == view["model_id"]
    assert isinstance(speaking(OldWidget()), OldWidget)


def test_a_widget_without_a_kernel_has_none() -> None:
    from edl_labs.ui.live_or_still import widget_bundle

    with pytest.raises(AttributeError):
        widget_bundle(object())
