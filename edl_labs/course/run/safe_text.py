"""Text from a notebook made safe for reports: no terminal codes, no characters that XML forbids."""

from __future__ import annotations

import re

_ANSI = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\^_]|[ -/][0-~])|\x9b[0-?]*[ -/]*[@-~]"
)
_NOT_XML = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufdcf\ufdf0-\ufffd\U00010000-\U0010ffff]")


def plain_text(value: object) -> str:
    """`value` as text without terminal codes, holding only characters that XML 1.0 allows.

    >>> plain_text("\\x1b[31mred\\x1b[0m and \\x00 nothing")
    'red and  nothing'
    """
    return _NOT_XML.sub("", _ANSI.sub("", str(value)))


def one_line(value: object, *, limit: int = 200) -> str:
    """`value` as one line of plain text of at most `limit` characters.

    >>> one_line("first\\n  second", limit=12)
    'first second'
    """
    text = " ".join(plain_text(value).split())
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
