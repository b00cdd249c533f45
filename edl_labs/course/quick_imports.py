"""nbgrader's modules without three seconds of grammars that nothing here uses."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

# jsonschema imports it, where it is installed, for the formats of internet names; it builds 38 parsers when imported.
_GRAMMARS = "rfc3987_syntax"


@contextmanager
def without_grammars() -> Iterator[None]:
    """While active, a first import of jsonschema (through nbformat or nbgrader) does without them."""
    if _GRAMMARS in sys.modules:
        yield
        return
    sys.modules[_GRAMMARS] = None  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.modules.pop(_GRAMMARS, None)
