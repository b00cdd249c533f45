"""Cells that use a student's own function: they wait, with a word, until it is there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def once_written(name: str) -> Iterator[None]:
    """Runs the block; when the exercise `name` is not written yet or breaks, one line says so and the notebook goes on.

    >>> with once_written("finish_times"):
    ...     raise NotImplementedError
    This cell shows something once finish_times is written.
    """
    try:
        yield
    except NotImplementedError:
        print(f"This cell shows something once {name} is written.")
    except Exception as error:
        problem = f"{type(error).__name__}: {error}"
        print(f'This cell needs a working {name}, which raised {problem}; check("{name}") says more.')
