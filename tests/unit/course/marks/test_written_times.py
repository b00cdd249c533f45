"""Times as learning systems write them, in other languages too; what could mean two things is no time."""

from __future__ import annotations

import pytest

from edl_labs.course.marks.written_times import read_time

FRIDAY = "2026-11-20T23:59:00"


@pytest.mark.parametrize(
    "text",
    [
        "Friday, 20 November 2026, 11:59 PM",
        "Freitag, 20. November 2026, 23:59",
        "viernes, 20 de noviembre de 2026, 23:59",
        "vendredi 20 novembre 2026, 23:59",
        "piątek, 20 listopada 2026, 23:59",
        "sexta-feira, 20 de novembro de 2026, 23:59",
        "пятница, 20 ноября 2026, 23:59",
        "Nov 20, 2026 1159 PM",
        "2026-11-20-23-59-00",
    ],
)
def test_a_time_is_read(text: str) -> None:
    found = read_time(text)

    assert found is not None
    assert FRIDAY == found.isoformat()


@pytest.mark.parametrize(
    "text",
    [
        "Samstag, 20. November 2026, 23:59",  # it was a Friday
        "viernes, 20 de noviembre de 2026, 11:59 p. m.",
        "20. November 26",
        "20 listopada 2026, 23:59",  # November in Polish, October in Croatian
        "Freitag, 20. November 2026",
        "Freitag, 31. November 2026, 23:59",
    ],
)
def test_no_time_is_guessed(text: str) -> None:
    assert None is read_time(text)
