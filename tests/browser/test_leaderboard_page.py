"""A leaderboard's page as a file in a browser: rows unfold, arrow keys go from step to step, and axe finds nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from edl_labs.course.marks.leaderboard import Leaderboard, Standing, write_page
from tests.browser.axe import violations
from tests.unit.course.marks.test_entry_timelines import KEPT, LAB

pytestmark = [pytest.mark.slow]


@pytest.fixture
def address(tmp_path: Path) -> str:
    names = ("blue finch", "coral lynx", "jade owl")
    rows = [Standing(at + 1, name, f"s{at}", 0.9, 1e9, 1.0, timelines=KEPT) for at, name in enumerate(names)]
    rows.append(Standing(4, "ruby fox", "s4", 0.1, 1e9, 1.0))
    write_page(LAB, [Leaderboard(LAB, "score", tuple(rows))], tmp_path / "page.html", instructor=True)
    return (tmp_path / "page.html").as_uri()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 900, 400])
def test_axe_finds_nothing_in_either_theme_and_nothing_is_asked_of_a_network(
    browser: Any, address: str, scheme: str, width: int
) -> None:
    # axe is a script of ours in a page that allows none.
    context = browser.new_context(color_scheme=scheme, bypass_csp=True, viewport={"width": width, "height": 900})
    page, asked = context.new_page(), []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(address)

    assert [] == violations(page, ours=("main",))
    assert [] == [url for url in asked if not url.startswith(("file:", "data:"))]
    context.close()


def test_a_row_leads_to_its_entry_and_arrow_keys_go_from_step_to_step_without_a_script(
    browser: Any, address: str
) -> None:
    context = browser.new_context(java_script_enabled=True)
    page = context.new_page()
    page.goto(address)
    page.get_by_role("link", name="coral lynx").click()
    entry = page.locator("details").nth(1)
    seen = []
    entry.get_by_role("radio").first.focus()
    for _ in range(3):
        seen.append(entry.locator("h3:visible").all_inner_texts())
        page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowLeft")

    assert [["Whole run"], ["Step 0"], ["Step 1"]] == seen
    assert ["Step 1"] == entry.locator("h3:visible").all_inner_texts()
    assert "coral lynx" in str(entry.locator("img:visible").get_attribute("alt"))
    context.close()


def test_every_step_is_printed(browser: Any, address: str) -> None:
    context = browser.new_context()
    page = context.new_page()
    page.goto(address)
    page.emulate_media(media="print")

    assert 3 == page.locator("details[open] h3:visible").count()
    context.close()
