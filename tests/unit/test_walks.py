"""docs/walks.md names files that exist, and says nothing of the rest."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = sorted(
    set(re.findall(r"`((?:edl_labs|tools)/[^`]*)`", (ROOT / "docs" / "walks.md").read_text(encoding="utf-8")))
)


@pytest.mark.parametrize("name", NAMED)
def test_a_file_of_a_walk_exists(name: str):
    assert (ROOT / name).is_file()


def test_each_walk_names_files():
    assert len(NAMED) > 30
