"""One server and one browser for all tests of a process."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.jupyter import SHOTS, STEP_MS, Started, started
from tests.course.browser import BROWSER


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Started]:
    """JupyterLab with all labs, as `edl-labs start` leaves it."""
    home = tmp_path_factory.mktemp("jupyter")
    with started(home / "my-labs", home) as running:
        yield running


@pytest.fixture(scope="session")
def browser() -> Iterator[Any]:
    """Debian's Chromium without a window; nothing is downloaded."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: make test-all installs it")
    with api.sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture
def page(browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """A page of its own, 1280 pixels wide, with a profile of its own."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(STEP_MS)
    page = context.new_page()
    yield page
    SHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SHOTS / f"end-of-{re.sub(r'[^a-z0-9]+', '-', request.node.name)}.png")
    context.close()


@pytest.fixture
def scratch(server: Started, request: pytest.FixtureRequest) -> Path:
    """A folder of this test that the server shows."""
    folder: Path = server.folder / re.sub(r"\W+", "-", request.node.name)  # a part of addresses
    folder.mkdir()
    return folder
