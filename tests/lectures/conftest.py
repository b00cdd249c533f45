"""What tests of several labs' numbers share."""

from __future__ import annotations

import pytest

from edl_labs.course.lab.source import parse


@pytest.fixture(scope="module")
def lab(request):
    """The names of the solution notebook `LAB` of the test's module."""
    source = request.module.LAB
    names: dict[str, object] = {}
    for cell in parse(source.read_text(encoding="utf-8"), file=source.name):
        if cell.role in ("setup", "parameters", "given", "solve"):
            exec(compile(cell.source, cell.label, "exec"), names)
    return names
