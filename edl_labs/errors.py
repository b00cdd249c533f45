"""Messages for people: each says what happened, why, and what to do next."""

from __future__ import annotations

import copyreg
import os
import traceback
from collections.abc import Collection, Iterable, Mapping
from typing import Any

HOLE = "…"  # where a value is left out
_CHECKS = os.path.join(os.path.dirname(__file__), "checks")


class Sentence(str):
    """Text that knows the template and the values it was made of, so that they need not be read back from it.

    >>> said = Sentence("{name} came back as {value}", name="area", value=7)
    >>> said, said.without_values(shown={"area"})
    ('area came back as 7', 'area came back as …')
    """

    template: str
    values: Mapping[str, str]

    def __new__(cls, template: str, /, **values: object) -> Sentence:
        texts = {name: str(value) for name, value in values.items()}
        self = super().__new__(cls, template.format_map(texts))
        self.template, self.values = template, texts
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, and what travels, are plain text."""
        return str, (str.__str__(self),)

    def without_values(self, *, shown: Collection[str] = ()) -> str:
        """The sentence with "…" instead of each value, but for those that may be `shown`."""
        return self.template.format_map({name: text if text in shown else HOLE for name, text in self.values.items()})


def did_you_mean(name: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """What to do about an unknown name: the nearest of those `known`, as a question; empty when none is near.

    >>> did_you_mean("lab01_gpu_basic", ["lab01_gpu_basics", "lab02_roofline"]), did_you_mean("x", ["area"])
    ('did you mean lab01_gpu_basics?', '')
    """
    from difflib import get_close_matches  # only where there is an error

    near = get_close_matches(name, list(known), n=1, cutoff=cutoff)
    return f"did you mean {near[0]}?" if near else ""


class EdlError(Exception):
    """An error a user sees: `what` happened, `why`, and what to do `next`.

    >>> print(EdlError("no lab called 'lab9'", why="solutions/ holds lab01", next="edl-labs build"))
    no lab called 'lab9'
      why:  solutions/ holds lab01
      next: edl-labs build
    """

    exit_code = 1

    def __init__(self, what: str, *, why: str = "", next: str = "") -> None:
        super().__init__(what)
        self.what, self.why, self.next = (t if type(t) is Sentence else str(t) for t in (what, why, next))

    def __reduce__(self) -> tuple[Any, ...]:
        """Travels between processes, whatever a subclass's constructor asks for."""
        return copyreg.__newobj__, (type(self), *self.args), self.__dict__  # type: ignore[attr-defined]

    def __str__(self) -> str:
        parts = [self.what]
        if self.why:
            parts.append(f"  why:  {self.why}")
        if self.next:
            parts.append(f"  next: {self.next}")
        return "\n".join(parts)


class UsageError(EdlError):
    """The command, an argument or the environment is wrong, and nothing was done."""

    exit_code = 2


class SourceError(EdlError):
    """A lab's source is wrong at one place; its text starts with `file:line:`."""

    def __init__(self, what: str, *, file: str, line: int, why: str = "", next: str = "") -> None:
        super().__init__(f"{file}:{line}: {what}", why=why, next=next)
        self.file, self.line = file, line


class NothingToDo(EdlError):
    """There was nothing to work on."""

    exit_code = 6


class PlainDataError(EdlError):
    """A value is not plain data, or its bytes are not a plain-data message. `what` is a template of the `values`."""

    def __init__(self, what: str, *, why: str = "", next: str = "", **values: object) -> None:
        super().__init__(what, why=why, next=next)
        self.what: Sentence = Sentence(what, **values)


class Wrong(EdlError):
    """What `compare` raises: the evidence is not right. The student reads what, why and next.

    `keeps` is the fraction of the case that is right: its points stay. With `values`, the three texts are templates of
    them: grading a secret case leaves the values out.

    >>> raise Wrong("the scale grew too early", why="2 clean steps, interval 3", next='hint("dynamic_scale")')
    Traceback (most recent call last):
    ...
    edl_labs.errors.Wrong: the scale grew too early
      why:  2 clean steps, interval 3
      next: hint("dynamic_scale")
    """

    def __init__(self, what: str, *, why: str = "", next: str = "", keeps: float = 0.0, **values: object) -> None:
        texts = [Sentence(text, **values) if values else text for text in (what, why, next)]
        super().__init__(texts[0], why=texts[1], next=texts[2])
        self.keeps = keeps


def place_of(error: BaseException) -> str:
    """Where an exception was raised, as text: `draws.py, line 12`; without a traceback, what kind it is.

    What an author wrote comes before what it called in `checks/`, such as a case that lacks a key.
    """
    places = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    authors = [place for place in places if os.path.dirname(place[0]) != _CHECKS]
    for path, line in reversed(authors or places):
        return f"{os.path.basename(path)}, line {line}"
    return type(error).__name__
