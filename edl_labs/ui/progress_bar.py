"""A bar below a slow cell: how far it is, gone when it is done."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any, TypeVar

Item = TypeVar("Item")
_REDRAWN_S = 0.2  # the eye wants no more, and a page that is written to costs the measured program time


class ProgressBar:
    """For `progress=` of what takes long: shows `done` of `total` and a word; outside a notebook it does nothing.

    >>> ProgressBar()(1, 12, "fp32")
    """

    def __init__(self) -> None:
        self._shown: Any = None
        self._drawn_s = float("-inf")

    def __call__(self, done: int, total: int, what: str = "") -> None:
        """Draws the bar anew, a few times a second at most; at the end it goes."""
        now_s, ended = time.monotonic(), done >= total
        if not _in_notebook() or (now_s - self._drawn_s < _REDRAWN_S and not ended):
            return
        from IPython.display import HTML, display

        self._drawn_s = now_s
        page = HTML("" if ended else bar_html(done, total, what))
        if self._shown is not None:
            self._shown.update(page)
        elif not ended:
            self._shown = display(page, display_id=True)


def progress_bar(items: Sequence[Item], what: str = "") -> Iterator[Item]:
    """The items one by one, with a bar that says how many are done.

    >>> list(progress_bar([0, 1, 2], "workers"))
    [0, 1, 2]
    """
    bar = ProgressBar()
    for done, item in enumerate(items):
        bar(done, len(items), what)
        yield item
    bar(len(items), len(items), what)


def bar_html(done: int, total: int, what: str) -> str:
    """The bar, with what it says in words.

    >>> bar_html(3, 12, "fp32")
    '<label>fp32: 3 of 12 <progress value="3" max="12"></progress></label>'
    """
    words = f"{what}: {done} of {total}" if what else f"{done} of {total}"
    return f'<label>{escape(words)} <progress value="{done}" max="{total}"></progress></label>'


def _in_notebook() -> bool:
    """Whether a kernel shows what is displayed; a terminal's IPython would print a line for each step."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return getattr(shell, "kernel", None) is not None
