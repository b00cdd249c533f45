"""A real browser without a window: a page as it is once its scripts have run."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDS_BROWSER = [
    pytest.mark.browser,
    pytest.mark.skipif(BROWSER is None, reason="no chromium here: apt-get install chromium"),
]
_QUIET = ("gpu", "quic", "background-networking", "component-update", "sync")


def page_after(url: str, profile: Path, *options: str) -> str:
    """The document at `url`, as the browser has it after its scripts have run."""
    assert BROWSER is not None
    off = [f"--disable-{name}" for name in _QUIET]
    usual = ["--headless", "--no-sandbox", "--no-first-run", *off, f"--user-data-dir={profile}"]
    command = [BROWSER, *usual, *options, "--virtual-time-budget=20000", "--timeout=60000", "--dump-dom", url]
    return subprocess.run(command, capture_output=True, text=True, timeout=120).stdout
