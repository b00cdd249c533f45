"""How commands print: tables, JSON, progress, and the exit code at the end."""

from __future__ import annotations

import json
import sys
import time
from types import TracebackType
from typing import TYPE_CHECKING, Annotated, Any

import typer

from edl_labs.units import byte_count

if TYPE_CHECKING:
    from edl_labs.course.marks.leaderboard import Leaderboard

PLAIN_EVERY_S = 2.0  # a log shows life, and ten minutes stay under 300 lines
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON value instead of text.")]


def emit(value: Any) -> None:
    """One JSON value on standard output."""
    print(json.dumps(value, indent=1, sort_keys=True, ensure_ascii=False, default=str))


def table(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table: as wide as the terminal, or wide enough for a log."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    made = Table(title=title or None, title_justify="left")
    for index, column in enumerate(columns):
        made.add_column(column, justify="left" if index in (0, len(columns) - 1) else "right", overflow="fold")
    for row in rows:
        made.add_row(*(Text(cell) for cell in row))
    Console(width=None if sys.stdout.isatty() else 160).print(made)


def stop(exit_code: int) -> None:
    """End the command with `exit_code`."""
    raise typer.Exit(exit_code)


class ProgressLines:
    """`progress(done, total, text)`: a bar with time left in a terminal, plain lines elsewhere, nothing for --json."""

    def __init__(self, *, quiet: bool = False) -> None:
        self._quiet, self._last, self._last_s = quiet, "", -PLAIN_EVERY_S
        self._bar: Any = None

    def __enter__(self) -> ProgressLines:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, done: int, total: int, text: str) -> None:
        if self._quiet:
            return
        if sys.stderr.isatty():
            self._draw(done, total, text)
        elif text != self._last and (done == total or time.monotonic() - self._last_s >= PLAIN_EVERY_S):
            print(f"[{done}/{total}] {text}", file=sys.stderr, flush=True)
            self._last, self._last_s = text, time.monotonic()

    def _draw(self, done: int, total: int, text: str) -> None:
        from tqdm import tqdm

        if self._bar is None:
            self._bar = tqdm(total=total, leave=False, dynamic_ncols=True)
        self._bar.total, self._bar.n = total, done
        self._bar.set_description_str(text)


def print_board(board: Leaderboard) -> None:
    """A leaderboard as a table."""
    head = ["place", "who", "efficiency", "memory", "money"]
    rows = [
        [str(one.place), one.name, f"{one.efficiency:.1%}", byte_count(one.peak_bytes), f"{one.money:.3f}"]
        for one in board.standings
    ]
    table(f"{board.assignment}: {board.exercise}", head, rows)
