"""Passages of the lectures that the labs quote, word for word, in `quoted/`; a file's name begins with its deck."""

from __future__ import annotations

import re
from pathlib import Path

QUOTED = Path(__file__).with_name("quoted")


def quotations(name: str, pattern: str) -> list:
    """All matches of `pattern` in a passage; ValueError where there is none."""
    found = re.findall(pattern, (QUOTED / f"{name}.txt").read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{name} does not hold {pattern!r}")
    return found


def quotation(name: str, pattern: str) -> str:
    """The first match."""
    return quotations(name, pattern)[0]
