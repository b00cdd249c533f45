"""The roofline explorer names operations under the pointer, filters, and falls back to a picture and to words."""

from __future__ import annotations

import base64
import xml.etree.ElementTree as ET

import pytest

from edl_labs.roofline import AboveRoof, Machine, Point, Work, bound, work
from edl_labs.ui.roofline_widget import ALL, RooflineExplorer

MACHINE = Machine.simple("m", peak_flop_per_s={"fp32": 1e12, "fp16": 2e12}, bandwidth_byte_per_s=20e9)


@pytest.fixture(autouse=True)
def off_screen():
    import matplotlib

    matplotlib.use("Agg")


def point(name, done, module):
    return Point(name, done, 2 * bound(MACHINE, done).light_s, module=module)


POINTS = [
    point("mm", work.gemm(256, 256, 256), "layers.0.mlp"),
    point("add <&>", work.elementwise(10**6, inputs=2), "layers.0"),
    point("softmax", work.softmax(512, 512, dtype="fp16"), "layers.1"),
    point("embedding", work.embedding(100, 64), ""),
]


def titles(svg):
    return [element.text for element in ET.fromstring(svg).iter() if element.tag.endswith("title")]


def test_every_point_tells_its_story_under_the_pointer():
    found = [text for text in titles(RooflineExplorer(MACHINE, POINTS).svg()) if text]

    assert {"layers.0.mlp.mm", "layers.0.add <&>", "layers.1.softmax"} <= {text.splitlines()[0] for text in found}
    assert any("50 % of the speed of light" in text for text in found)


def test_a_module_filters_with_all_inside_it_and_a_dtype_alone():
    explorer = RooflineExplorer(MACHINE, POINTS)

    assert {"mm", "add <&>"} == {p.name for p in explorer.chosen(module="layers.0")}
    assert ["softmax"] == [p.name for p in explorer.chosen(dtype="fp16")]
    assert 1 == len([text for text in titles(explorer.svg(module="layers.0.mlp")) if text and "speed of light" in text])
    assert [ALL, "layers.0", "layers.0.mlp", "layers.1"] == explorer.modules


def test_the_menus_redraw_the_picture():
    explorer = RooflineExplorer(MACHINE, POINTS)
    box = explorer.widget()
    menu, picture = box.children[0].children[0], box.children[1]
    before = picture.value
    menu.value = "layers.1"

    assert "layers.1.softmax" in picture.value
    assert "layers.0.mlp.mm" in before
    assert "layers.0.mlp.mm" not in picture.value


def test_on_another_machine_the_same_operations_stand_where_they_would_be_at_best():
    explorer = RooflineExplorer(
        MACHINE,
        POINTS,
        others=["A100", Machine.simple("old", peak_flop_per_s={"fp32": 1e12}, bandwidth_byte_per_s=1e9)],
    )
    there = explorer.machines[1]
    best = {point.name: point.time_s for point in explorer.at_best(there)}
    box = explorer.widget()
    menu = box.children[0].children[-1]
    menu.value = there

    assert ["m", there, "old"] == explorer.machines
    assert best["softmax"] == bound(explorer.others[there], POINTS[2].work).time_s
    assert "softmax" not in {point.name for point in explorer.at_best("old")}, "it has no roof for fp16"
    assert "at best (computed)" in box.children[1].value
    assert 'role="img" aria-label="Plot' in box.children[1].value


def test_a_menu_with_nothing_to_choose_is_left_out():
    box = RooflineExplorer(MACHINE, [point("mm", work.gemm(256, 256, 256), "")], others=["H200"]).widget()

    assert ["machine"] == [menu.description for menu in box.children[0].children]


def test_an_empty_choice_still_draws_the_machine():
    assert [] == [
        t for t in titles(RooflineExplorer(MACHINE, POINTS).svg(module="layers.1", dtype="fp32")) if t and "light" in t
    ]


def test_a_page_without_a_kernel_has_picture_and_words(monkeypatch):
    explorer = RooflineExplorer(MACHINE, POINTS)

    def broken():
        raise RuntimeError("no kernel")

    monkeypatch.setattr(explorer, "widget", broken)
    bundle, about = explorer._repr_mimebundle_()

    assert " ".join(bundle["text/plain"].split()) == about["image/png"]["alt"]
    assert {"text/plain", "text/html", "image/png"} == set(bundle)
    assert b"\x89PNG" == base64.b64decode(bundle["image/png"])[:4]
    assert bundle["text/plain"].startswith("you are here: ")


def test_a_point_above_its_roof_is_refused_at_once():
    with pytest.raises(AboveRoof):
        RooflineExplorer(MACHINE, [Point("mm", work.gemm(256, 256, 256), 1e-9)])


def test_a_point_that_moves_nothing_shifts_no_title():
    still = point("still", Work(1e12, 0, 0), "")
    story = titles(RooflineExplorer(MACHINE, [still, POINTS[0]]).svg())

    assert ["layers.0.mlp.mm"] == [text.splitlines()[0] for text in story if text and "speed of light" in text]
