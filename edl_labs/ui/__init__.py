"""What notebooks show: reports and widgets, each with a text fallback."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Which function writes the HTML of a value of which class, by `presenters.present("html", self)`.
_WRITTEN_BY: dict[str, str] = {
    "Comparison": "timing_reports:comparison_html",
    "Measurement": "timing_reports:measurement_html",
    "Diagnosis": "diagnosis:as_html",
}


def html(value: Any, **options: Any) -> str:
    """A result as HTML that is readable in light and dark."""
    module, _, name = _WRITTEN_BY[type(value).__name__].partition(":")
    return getattr(import_module(f"edl_labs.ui.{module}"), name)(value, **options)
