"""Text for reports holds neither terminal codes nor what XML forbids."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from edl_labs.course.run.safe_text import one_line, plain_text


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b[38;2;10;20;30mtrue colour\x1b[m", "true colour"),
        ("\x1b]8;;https://example.org\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]0;title\x07text", "text"),
        ("\x9b1mbold", "bold"),
        ("\x1b(Bset", "set"),
        ("bell\x07 null\x00 back\x08", "bell null back"),
        ("lone \ud800 half", "lone  half"),
        ("\ufffe\uffff", ""),
        ("µ × − ✓ 😀\ttab\nline", "µ × − ✓ 😀\ttab\nline"),
        ("an escape at the end\x1b", "an escape at the end"),
    ],
)
def test_terminal_codes_and_forbidden_characters_are_gone(raw: str, expected: str) -> None:
    assert expected == plain_text(raw)


def test_every_character_comes_out_as_xml_can_hold_it() -> None:
    text = plain_text("".join(map(chr, range(0x3000))) + "".join(map(chr, range(0xD700, 0x10100))))

    ElementTree.fromstring(f"<a>{text.replace('&', '').replace('<', '')}</a>")


def test_a_long_text_is_cut_to_one_line_and_says_so() -> None:
    assert "a b…" == one_line("a\n b\nc d", limit=4)
