"""The bar below a slow cell."""

from __future__ import annotations

from typing import Any

import IPython.display
import pytest

from edl_labs.ui import progress_bar as module
from edl_labs.ui.progress_bar import ProgressBar, progress_bar


class Page:
    """What a notebook's display shows, and what it is updated to."""

    def __init__(self) -> None:
        self.shown: list[str] = []

    def display(self, page: Any, *, display_id: bool) -> Page:
        assert display_id
        self.update(page)
        return self

    def update(self, page: Any) -> None:
        self.shown.append(page.data)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    made = Page()
    monkeypatch.setattr(IPython.display, "display", made.display)
    monkeypatch.setattr(module, "_in_notebook", lambda: True)
    monkeypatch.setattr(module, "_REDRAWN_S", 0.0)
    return made


def test_a_bar_says_how_far_it_is_and_goes(page: Page) -> None:
    bar = ProgressBar()
    for done in range(3):
        bar(done, 2, "fp32 < fp64")

    assert "fp32 &lt; fp64: 0 of 2" in page.shown[0]
    assert '<progress value="1" max="2">' in page.shown[1]
    assert "" == page.shown[-1]


def test_items_come_in_order_and_the_bar_goes_also_when_there_are_none(page: Page) -> None:
    assert ["a", "b"] == list(progress_bar(["a", "b"], "loaders"))
    assert ["loaders: 0 of 2", "loaders: 1 of 2"] == [text[7:22] for text in page.shown[:-1]]

    page.shown.clear()
    assert [] == list(progress_bar([]))
    assert [] == page.shown


def test_many_steps_are_drawn_a_few_times_a_second(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_REDRAWN_S", 3600.0)

    assert 1000 == len(list(progress_bar(range(1000))))
    assert 2 == len(page.shown)


def test_outside_a_notebook_nothing_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert [1, 2] == list(progress_bar([1, 2]))
    assert ("", "") == capsys.readouterr()
