"""Cells that use a student's own function: they wait, with a word, until it is there."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

from edl_labs.checks.lab_cells import missing_name
from edl_labs.checks.time_limit import TookTooLong, time_limit

_LIMIT_S = 120.0  # the slowest such cell of the labs takes some 20 s on a busy laptop


@contextmanager
def requires_solution(name: str, *, limit_s: float = _LIMIT_S) -> Iterator[None]:
    """Runs the block; when the exercise `name` is not written yet or breaks, one line says so and the notebook goes on.

    A block that is still running after `limit_s` seconds on the clock is stopped, and the line says how to give it
    more: a slow or busy machine may need it. An undefined name that an earlier cell of the lab defines is not the
    function's mistake: the line says to run the cells above. A figure that the block began and did not finish is
    closed: it would be shown empty.

    >>> with requires_solution("finish_times"):
    ...     raise NotImplementedError
    This cell shows something once finish_times is written.
    """
    try:
        with _finished_figures(), time_limit(limit_s):
            yield
    except NotImplementedError:
        print(f"This cell shows something once {name} is written.")
    except TookTooLong:
        longer = f'requires_solution("{name}", limit_s={5 * limit_s:g})'
        loop = f"look for a loop in {name} that never ends"
        print(f"This cell was stopped after {limit_s:g} s: {loop}, or, on a slow machine, allow more time: {longer}.")
    except NameError as error:
        above = missing_name(error, name)
        print(above or _broken(name, error))
    except Exception as error:
        print(_broken(name, error))


@contextmanager
def _finished_figures() -> Iterator[None]:
    """Closes the figures that the block opened, where it raises."""
    before = _open_figures()
    try:
        yield
    except BaseException:
        for number in _open_figures() - before:
            sys.modules["matplotlib.pyplot"].close(number)
        raise


def _open_figures() -> set[int]:
    pyplot = sys.modules.get("matplotlib.pyplot")
    return set(pyplot.get_fignums()) if pyplot is not None else set()


def _broken(name: str, error: Exception) -> str:
    problem = f"{type(error).__name__}: {error}"
    return f'This cell needs a working {name}, which raised {problem}; check("{name}") says more.'
