"""Where a student's code runs: levels of isolation, limits, and a list of escapes that are tried.

>>> Level.NAMESPACES.trusted, Level.UNSAFE.trusted
(True, False)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from edl_labs.course.sandbox.level import Level, best_level, level_problem
from edl_labs.course.sandbox.limits import Limits

if TYPE_CHECKING:
    from edl_labs.course.sandbox.escape import Escape, escapes

__all__ = ["Escape", "Level", "Limits", "best_level", "escapes", "level_problem"]


def __getattr__(name: str) -> object:
    # Lazy: trying escapes needs the kernel client, which a zygote must not carry into students' kernels.
    if name in ("Escape", "escapes"):
        from edl_labs.course.sandbox import escape

        return getattr(escape, name)
    raise AttributeError(f"edl_labs.course.sandbox has no {name!r}; it has {', '.join(__all__)}")
