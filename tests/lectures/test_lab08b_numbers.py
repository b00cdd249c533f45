"""Every number of a lecture that lab08b_layouts quotes, recomputed, and found in the lab's text."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from edl_labs.course.lab.source import parse
from tests.lectures.decks import quotation, quotations

NAME = "lab08b_layouts"
LAB = Path(__file__).resolve().parents[2] / "solutions" / NAME / f"{NAME}.py"
TEXT = re.sub(r"\s*\n# ?", " ", LAB.read_text(encoding="utf-8"))


def says(*texts: str) -> list[str]:
    """Those of `texts` that the lab does not say."""
    return [text for text in texts if text not in TEXT]


@pytest.fixture(scope="module")
def solution() -> dict[str, Any]:
    """The names of the lab's given and solve cells."""
    names: dict[str, Any] = {}
    for cell in parse(LAB.read_text(encoding="utf-8"), file=LAB.name):
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    return names


def test_channels_are_padded_as_the_deck_says(solution):
    """strides: C = 4 or a multiple of 8, in the text's words and in what the solution copies."""
    four, eight = map(int, quotation("002_layouts", r"Choosing C = (\d+) or a multiple of (\d+)"))
    image = {"name": "x", "op": "input", "inputs": [], "shape": [1, 3, 8, 8], "layout": "NCHW"}
    conv = {"name": "y", "op": "conv", "inputs": ["x"], "shape": [1, 8, 8, 8], "weight": [8, 3, 3, 3]}
    wider = [{**image, "shape": [1, 12, 8, 8]}, {**conv, "weight": [8, 12, 3, 3]}]
    layouts = {"x": "NCHW", "y": "NHWC"}

    assert 2 * 64 * (3 + four) == solution["conversions"]([image, conv], layouts)["x"]
    assert 2 * 64 * (12 + 2 * eight) == solution["conversions"](wider, layouts)["x"]
    assert "C = 4 or a multiple of 8" in quotation("002_layouts", r"Choosing (C = 4 or a multiple of 8) gives best")
    assert [] == says('"C = 4 or a multiple of 8"')


def test_layouts_are_quoted():
    assert [] == says(
        '"' + quotation("002_layouts", r"Convolutions implemented for Tensor Cores require NHWC layout") + '"',
        quotation("002_layouts", r"(input.*?)\) model").replace("\\", "") + ")",
    )


def test_contractions_take_61_percent_of_the_time():
    flops, times = quotations("002_fusion", r"(99\.80) \S+ \S+\t(61\.0)")[0]

    assert [] == says(f"contractions do {flops} % of the FLOPs in {times} % of the time")


def test_what_fuses_best_is_quoted():
    assert [] == says(
        '"' + quotation("002_fusion", r"the best activation as it can be fused with conv-BN") + '"',
        '"' + quotation("002_fusion", r"Concatenate matrices together like qkv") + '"',
    )


def test_gelu_written_out_moves_nine_times_the_bytes(solution):
    """fuse: eight operators; what the prediction of section 2 comes to."""
    torch = pytest.importorskip("torch")
    from edl_labs.graph import Graph, fusions

    chain = Graph.of(solution["written_out"], torch.empty(64))

    assert (8, 1) == (len(chain.nodes), fusions(chain).launches)
    assert 2 / 18 == fusions(chain).moved_bytes / chain.moved_bytes


def test_the_block_of_section_3_has_the_convolution_of_deck_001_before_tuning():
    forward_us, _ = quotations("001_cudnn", r"\[us\]\s+(\d+)\s+(\d+)")[0]

    assert [] == says(
        f"never tuned, and takes {forward_us} µs on 64 x 64 pixels", f"duration_s={forward_us}e-6 * (side / 64) ** 2"
    )


def test_what_a_compiler_makes_of_the_loop(solution):
    """Section 3: 30 operators in 3 kernels, and the modelled times of a block on small images."""
    torch = pytest.importorskip("torch")
    from functools import partial

    from edl_labs.graph import Graph, fusions

    x, ((weight, scale), _) = solution["inputs"](torch.contiguous_format)
    graph = Graph.of(partial(solution["block"], checks=False, unfolds=False), x, weight, scale)

    assert (30, 3) == (len(graph.nodes), fusions(graph).launches)
    assert [] == says("how many kernels do its 30 operators become", "The 30 operators become")
