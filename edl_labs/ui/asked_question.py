"""A question that a student answers before the answer is known: what an answer is, and how far it is from the truth."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError
from edl_labs.ui.number_entry import apart, number_text, typed_number

MOST_LETTERS = 300  # of an answer in words: four lines of a notebook


class Instead(float):
    """A figure in the place of a measurement that decided nothing, such as on a busy machine.

    `source` says what it is: "modelled on a V100". A reveal that shows it says why.
    """

    source: str

    def __new__(cls, value: float, source: str) -> Instead:
        figure = super().__new__(cls, value)
        figure.source = source
        return figure

    def __str__(self) -> str:
        return f", {self.source}, since the measurement here was inconclusive"


@dataclass(frozen=True)
class Question:
    """What is asked: a number where there is a `unit`, one of `choices`, else words.

    >>> pan = Question("pan", "The toast takes", "min", ())
    >>> pan.compared("4", 180.0), pan.is_off("4", 180.0), pan.kept("4", 180.0)["said"]
    ('The toast takes … 3 min (you predicted 4 min: 33 % too much)', True, 240.0)
    """

    name: str
    text: str
    unit: str
    choices: tuple[str, ...]

    def checked(self, said: str) -> str:
        """What was said, tidied; UsageError where it is no answer to this."""
        said = " ".join(said.split())[:MOST_LETTERS]
        if self.choices and said not in self.choices:
            raise UsageError(
                f"{said[:40]!r} is not one of the choices",
                why="this question has fixed choices",
                next=f"write {' or '.join(self.choices)}",
            )
        if self.unit:
            typed_number(said, self.unit)
        return said

    def shown(self, said: str) -> str:
        """What was said, as it is shown."""
        return number_text(typed_number(said, self.unit), self.unit) if self.unit else said

    def compared(self, said: str, true: Any) -> str:
        """One line: how the question's sentence ends, and how it was predicted to; empty where neither is known."""
        if true is None:
            return f"{self.text} … you predicted {self.shown(said)}" if said else ""
        ends = number_text(float(true), self.unit) if self.unit else str(true)
        ends += str(true) if isinstance(true, Instead) else ""
        told = f"you predicted {self.shown(said)}: {self._verdict(said, true)}" if said else "you made no prediction"
        return f"{self.text} … {ends} ({told})".replace(": )", ")")

    def _verdict(self, said: str, true: Any) -> str:
        if self.unit:
            return apart(typed_number(said, self.unit), float(true))
        return ("right" if said == true else "not right") if self.choices else ""

    def is_off(self, said: str, true: Any) -> bool:
        """Whether what turned out is known, and is something else."""
        return bool(said) and true is not None and self._verdict(said, true) not in ("", "right")

    def kept(self, said: str, true: Any) -> dict[str, Any]:
        """The prediction as data: numbers in SI units."""
        value = typed_number(said, self.unit) if self.unit else said
        known = float(true) if self.unit and true is not None else None if true is None else str(true)[:MOST_LETTERS]
        return {"name": self.name, "said": value, "true": known}
