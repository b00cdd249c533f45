"""Nothing of a released notebook's code is cut off: JupyterLab shows 88 characters of a line at 1280 pixels."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[2] / "labs").glob("*/*.ipynb"))
_MOST = 88


def too_long(cells: list[dict]) -> list[str]:
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    return [line for source in code for line in source.splitlines() if len(line) > _MOST]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_line_of_code_fits(path: Path):
    assert [] == too_long(json.loads(path.read_text())["cells"])


def test_a_line_that_does_not_fit_is_found():
    long = "x = " + 88 * "1"

    assert [long] == too_long(
        [{"cell_type": "code", "source": ["y = 1\n", long]}, {"cell_type": "raw", "source": long}]
    )
