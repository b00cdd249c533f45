"""Whoever waits is told beforehand: text above a slow cell says how many seconds it takes."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

LABS = Path(__file__).parents[2] / "labs"
# Cells that take some ten seconds and more on two busy cores: by the budgets that they ask for and the programs that
# they start, or as runs of whole labs showed. A line of each.
SLOW = [
    ("lab02_roofline", "roofline.ceilings("),
    ("lab03_mixed_precision", "training_gradients(seed=0)"),
    ("lab04_data_pipelines", "ladder = measure_ladder("),
    ("lab04_data_pipelines", "your bound"),
    ("lab04_data_pipelines", "agreement, decoders"),
    ("lab04_data_pipelines", "large = write("),
    ("lab05_profiling", "attach(duration_s"),
    ("lab05_profiling", "side_by_side(script)"),
    ("lab05_profiling", "diagnose(my_loop("),
    ("lab12_language_model", "losses = train("),
]
_TOLD = re.compile(r"takes?\b[^.]*\b(seconds?|minute)")


@pytest.mark.parametrize(("lab", "line"), SLOW, ids=lambda text: re.sub(r"\W+", "-", text))
def test_text_above_a_slow_cell_says_how_long_it_takes(lab: str, line: str):
    cells = json.loads((LABS / lab / f"{lab}.ipynb").read_text())["cells"]
    sources = [" ".join("".join(cell["source"]).split()) for cell in cells]
    place = next(i for i, cell in enumerate(cells) if cell["cell_type"] == "code" and line in sources[i])
    above = [sources[i] for i in range(place) if cells[i]["cell_type"] == "markdown"]

    assert any(_TOLD.search(text) for text in above[-2:]), above[-1]
