"""Times as learning systems and people write them; an ambiguous time is rejected."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache

_YEARS = range(2000, 2200)
_DASHES = re.compile(r"(\d{4}-\d\d-\d\d)-(\d\d)-(\d\d)-(\d\d)")  # Blackboard's file names
_NO_COLON = re.compile(r"(?<=\d{4} )(\d{1,2})(\d\d)(?= [AP]M$)")  # Brightspace's folders: "Nov 20, 2026 1159 PM"
_CLOCK = re.compile(r"\b(\d{1,2})[:.h](\d\d)$")  # at the end, so that no "p. m." can follow


def read_time(text: str) -> datetime | None:
    """The moment that a text names, without an offset where it names none; None where it is not certain.

    >>> read_time("Friday, 20 November 2026, 11:59 PM"), read_time("03/04/2026 10:00")
    (datetime.datetime(2026, 11, 20, 23, 59), None)
    """
    try:
        return datetime.fromisoformat(_DASHES.sub(r"\1T\2:\3:\4", text).replace(" UTC", "+00:00"))
    except ValueError:
        return _read_english(_NO_COLON.sub(r"\1:\2", text)) or _read_other_language(text)


def _read_english(text: str) -> datetime | None:
    from dateutil import parser

    # Two readings show what was missing, or could be day or month.
    readings = ((datetime(2001, 1, 1), True), (datetime(2002, 2, 2, 2, 2), False))
    try:
        found, other = (parser.parse(text, default=default, dayfirst=day) for default, day in readings)
    except (ValueError, OverflowError):
        return None
    return found if found == other and found.year in _YEARS and str(found.year) in text else None


def _read_other_language(text: str) -> datetime | None:
    """A day of the week, a day, a month's name, a year and a 24-hour clock: the week day tells languages apart.

    "listopada" is November in Polish and October in Croatian.
    """
    clock = _CLOCK.search(text)
    numbers = [int(number) for number in re.findall(r"\d+", text[: clock.start()])] if clock else []
    if clock is None or len(numbers) != 2 or max(numbers) not in _YEARS:
        return None
    hour, minute = int(clock[1]), int(clock[2])
    words = frozenset(re.findall(r"[^\W\d_]+", text.casefold()))
    found = set()
    for month, weekday in _months_and_days(words):
        try:
            moment = datetime(max(numbers), month, min(numbers), hour, minute)
        except ValueError:
            continue
        found |= {moment} if moment.weekday() == weekday else set()
    return found.pop() if len(found) == 1 else None


def _months_and_days(words: frozenset[str]) -> Iterator[tuple[int, int]]:
    """The month and the day of the week that the words name, in each language that has both."""
    for months, days in _languages():
        month, day = ({names[word] for word in words & names.keys()} for names in (months, days))
        if len(month) == len(day) == 1:
            yield month.pop(), day.pop()


@cache
def _languages() -> tuple[tuple[Mapping[str, int], Mapping[str, int]], ...]:
    """Each language's names of months (1 to 12) and of days of the week (0 is Monday)."""
    from babel import Locale, localedata

    known = [Locale.parse(name) for name in localedata.locale_identifiers() if "_" not in name]
    return tuple((_names(locale.months), _names(locale.days)) for locale in known)


def _names(forms: Mapping[str, Mapping[str, Mapping[int, str]]]) -> dict[str, int]:
    wide = (forms[form]["wide"] for form in ("format", "stand-alone"))
    return {word: number for names in wide for number, name in names.items() for word in _words(name)}


def _words(name: str) -> list[str]:
    """The words of a name that are long enough to be its own: "terça-feira" is known by "terça"."""
    return [word for word in re.findall(r"[^\W\d_]+", name.casefold()) if len(word) > 2 and word != "feira"]
