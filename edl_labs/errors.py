"""Messages for people: each says what happened, why, and what to do next."""

from __future__ import annotations

import copyreg
import os
from typing import Any


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
        self.what, self.why, self.next = str(what), str(why), str(next)

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
    """The command, an argument or the environment is wrong; nothing was done."""

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
    """A value is not plain data, or its bytes are not a plain-data message."""


class Wrong(EdlError):
    """What `compare` raises: the evidence is not right. The student reads what, why and next.

    `keeps` is the fraction of the case that is right all the same: its points stay, and the sentence is told.

    >>> raise Wrong("the scale grew too early", why="2 clean steps, interval 3", next='hint("dynamic_scale")')
    Traceback (most recent call last):
    ...
    edl_labs.errors.Wrong: the scale grew too early
      why:  2 clean steps, interval 3
      next: hint("dynamic_scale")
    """

    def __init__(self, what: str, *, why: str = "", next: str = "", keeps: float = 0.0) -> None:
        super().__init__(what, why=why, next=next)
        self.keeps = keeps


def place_of(error: BaseException) -> str:
    """Where an exception was raised, as text: `draws.py, line 12`; without a traceback, what kind it is."""
    at = error.__traceback__
    while at is not None and at.tb_next is not None:
        at = at.tb_next
    if at is None:
        return type(error).__name__
    return f"{os.path.basename(at.tb_frame.f_code.co_filename)}, line {at.tb_lineno}"
