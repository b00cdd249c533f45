"""Each widget in a live notebook: dragged with the mouse, moved with the keyboard, judged by axe-core, looked at."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook

from tests.browser.axe import violations
from tests.browser.jupyter import OpenNotebook, Started
from tests.course.browser import NEEDS_BROWSER

pytestmark = NEEDS_BROWSER
WIDGETS = {
    "timeline": "from edl_labs.ui.timeline_widget import TimelineExplorer\nTimelineExplorer()",
    "loader": "from edl_labs.ui.loader_widget import LoaderExplorer\nLoaderExplorer()",
    "underflow": "import numpy as np\nfrom edl_labs.ui.number_format_widgets import UnderflowSlider\n"
    "UnderflowSlider(10.0 ** np.random.default_rng(0).normal(-6, 2, 5000))",
    "format": "from edl_labs.ui.number_format_widgets import FormatExplorer\nFormatExplorer('fp16', 0.1)",
    "roofline": """from edl_labs.roofline import Machine, Point, bound, work
from edl_labs.ui.roofline_widget import RooflineExplorer
here = Machine.simple("laptop", peak_flop_per_s={"fp32": 1e11}, bandwidth_byte_per_s=20e9)
works = {"product": work.gemm(512, 512, 512), "relu": work.elementwise(10**7), "softmax": work.softmax(4096, 4096)}
points = [Point(name, one, 2 * bound(here, one).light_s) for name, one in works.items()]
RooflineExplorer(here, points, others=("A100", "H200"))""",
}


def open_cells(server: Started, scratch: Path, page: Any, *sources: str) -> OpenNotebook:
    """A notebook of these cells in the browser, not run yet."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = new_notebook(cells=[new_code_cell(source) for source in sources], metadata=kernel)
    nbformat.write(notebook, scratch / "cells.ipynb")
    return OpenNotebook(page, server, f"{scratch.name}/cells.ipynb")


_SPEAKS = """([cell, before]) => {
    const image = cell.querySelector('img.widget-image')
    const readout = cell.querySelector('.widget-readout')
    return image && readout && image.title.includes(readout.textContent.trim()) && image.src !== before
}"""


def redrawn(page: Any, cell: Any, before: str) -> str:
    """Where the browser has the widget's picture, once it shows the first slider's value, in words too."""
    page.wait_for_function(_SPEAKS, arg=[cell.element_handle(), before])
    return str(cell.locator("img.widget-image").get_attribute("src"))


@pytest.mark.parametrize("name", ["timeline", "loader", "underflow"])
def test_a_slider_is_dragged_redraws_and_speaks(server: Started, scratch: Path, page: Any, name: str):
    notebook = open_cells(server, scratch, page, WIDGETS[name])
    notebook.run_all()
    cell = notebook.code(WIDGETS[name][:20])
    first = redrawn(page, cell, "")
    handle = cell.locator(".noUi-handle").first
    box = handle.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(box["x"] + 60, box["y"] + box["height"] / 2, steps=4)
    while_dragging = redrawn(page, cell, first)
    page.mouse.up()
    handle.focus()
    page.keyboard.press("ArrowLeft")
    moved = redrawn(page, cell, while_dragging)
    label, readout = (
        cell.locator(f".widget-slider .widget-{part}").first.inner_text() for part in ("label", "readout")
    )
    spoken = [handle.get_attribute(f"aria-{part}") for part in ("label", "valuetext")]
    notebook.shot(f"widget-{name}-light", cell)
    notebook.theme("JupyterLab Dark")
    notebook.shot(f"widget-{name}-dark", cell)

    assert 3 == len({first, while_dragging, moved})
    assert [label, readout] == spoken
    assert [] == violations(page)
    assert [] == notebook.errors


def test_a_roofline_is_explored_by_its_menu(server: Started, scratch: Path, page: Any):
    notebook = open_cells(server, scratch, page, WIDGETS["roofline"])
    notebook.run_all()
    cell = notebook.code(WIDGETS["roofline"][:20])
    drawing = cell.locator("svg[role=img]").first
    here, old = drawing.get_attribute("aria-label"), drawing.element_handle()
    cell.locator("select").first.select_option(index=2)
    page.wait_for_function("svg => !svg.isConnected", arg=old)
    there = cell.locator("svg[role=img]").first.get_attribute("aria-label")
    notebook.shot("widget-roofline-light", cell)
    notebook.theme("JupyterLab Dark")
    notebook.shot("widget-roofline-dark", cell)

    assert "50 % of the speed of light" in here
    assert "at best (computed)" in there
    assert [] == violations(page)
    assert [] == notebook.errors


_HOLDS = "([box, value]) => Number(box.value) === value"


def test_bits_are_flipped_with_the_keyboard(server: Started, scratch: Path, page: Any):
    notebook = open_cells(server, scratch, page, WIDGETS["format"])
    notebook.run_all()
    cell = notebook.code("from edl_labs.ui.number")
    value = cell.locator("input[type=number]")
    first = value.input_value()
    button = cell.locator("button.jupyter-button").nth(0)
    button.focus()
    page.keyboard.press("Enter")
    page.wait_for_function(_HOLDS, arg=[value.element_handle(), -float(first)])
    negative = value.input_value()
    page.keyboard.press("Enter")
    page.wait_for_function(_HOLDS, arg=[value.element_handle(), float(first)])
    notebook.shot("widget-format-light", cell)
    notebook.theme("JupyterLab Dark")
    notebook.shot("widget-format-dark", cell)

    assert float(first) == -float(negative), "the box follows the bits"
    assert first == value.input_value(), "the focus stays on the bit that was flipped"
    assert [] == violations(page)
    assert [] == notebook.errors
