"""A lab's intro names every deck that the lab quotes, so that a reader of `[003]` knows what to open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_labs

LABS = {lab.name: lab for lab in read_labs(Course(Path(__file__).resolve().parents[2]))}
_DECK = re.compile(r"[Dd]eck\s\[(\d{3})\]")
_NAMED = re.compile(r"\[(\d{3})\]\s+[A-Za-z]")


def unnamed(cells: Sequence[str]) -> list[str]:
    """The decks that later cells quote and the first does not name: `[003] performance and profiling`."""
    quoted = {deck for source in cells[1:] for deck in _DECK.findall(source)}
    return sorted(quoted - set(_NAMED.findall(cells[0])))


@pytest.mark.parametrize("lab", LABS)
def test_the_intro_names_every_deck_that_is_quoted(lab: str) -> None:
    assert [] == unnamed([cell.source for cell in LABS[lab].cells])


# The decks' own titles, as the first slides have them.
TITLES = {
    "000": "optimizing training pipelines",
    "001": "course introduction",
    "002": "software perspective",
    "003": "performance and profiling",
    "004": "deep learning, hopefully faster",
}


def misnamed(intro: str) -> list[str]:
    """The decks that an intro calls by another title than their own."""
    text = " ".join(intro.split())
    return sorted({deck for deck in _NAMED.findall(text) if f"[{deck}] {TITLES[deck]}" not in text})


@pytest.mark.parametrize("lab", LABS)
def test_the_intro_calls_each_deck_by_its_title(lab: str) -> None:
    assert [] == misnamed(LABS[lab].cells[0].source)


def test_another_title_is_found() -> None:
    assert ["000"] == misnamed("Decks: [000] intro, [001] course\nintroduction.")


def test_a_deck_without_a_name_is_found() -> None:
    intro = "Slides are quoted by their deck: [001] course introduction, and [003]."

    assert ["003"] == unnamed([intro, "As deck [001] says; deck [003] has a table."])
