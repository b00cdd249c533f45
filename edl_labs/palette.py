"""Every colour that plots, notebooks and pages show: one list, readable on white and on black.

The six colours of series and the grey of text lie between white and black, at a contrast of about 4 to both, since
notebooks follow their reader's theme. Pages of their own know their theme and name a colour for each.
"""

from __future__ import annotations

TEXT = "#767676"
BLUE, ORANGE, GREEN, PURPLE, RED, GREY = "#3b7dc4", "#c2641a", "#2f8f57", "#8f63c9", "#cf4f5a", "#808080"
SERIES = (BLUE, ORANGE, GREEN, PURPLE, RED, GREY)
ON_COLOUR = "#ffffff"
"""Text on an area filled with any of the colours above."""

SIGN_BIT, EXPONENT_BIT, FRACTION_BIT = "#6a6a6a", "#a85312", "#2f6cb0"
"""Buttons with small text in `ON_COLOUR`: darker grey, orange and blue, with a contrast of at least 5 against it."""

NOTE, GOOD, WARN, BAD, IDLE = "#3b7dd8", "#2e9e5b", "#c98a00", "#d0483e", "#7a8794"
"""What a mark, a bar or a word in a notebook says: for your information, good, careful, bad, nothing yet."""

# CSS variables of whole pages: paper and ink, quiet text, rules, the grounds of code and of
# pictures, links, what went wrong or well.
PAGE_LIGHT = {
    "paper": "#ffffff",
    "ink": "#1d2330",
    "dim": "#5a6472",
    "line": "#d8dde4",
    "code": "#f5f7f9",
    "link": "#0b5cad",
    "bad": "#b3261e",
    "bad-paper": "#fdecea",
    "good": "#1b7a43",
    "warn-paper": "#fff7e0",
    "picture": "#ffffff",
}
PAGE_DARK = {
    "paper": "#14181f",
    "ink": "#e4e8ee",
    "dim": "#a0aab8",
    "line": "#363e4a",
    "code": "#1d232c",
    "link": "#7db8ff",
    "bad": "#ff8a80",
    "bad-paper": "#3a1d1b",
    "good": "#6fd39a",
    "warn-paper": "#332b14",
    "picture": "#ffffff",
}
