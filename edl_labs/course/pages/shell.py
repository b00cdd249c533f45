"""The shell of every page: one file that loads nothing, and follows its reader's light or dark theme."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from edl_labs.palette import PAGE_DARK, PAGE_LIGHT
from edl_labs.units import counted

_SYNTAX_LIGHT, _SYNTAX_DARK = "default", "github-dark"


def render(template: str, **values: Any) -> str:
    """A page from a template of this folder. Every value is escaped, except where the template says that it is HTML."""
    return _environment().get_template(template).render(**values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("edl_labs.course", "pages"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    made.globals.update(
        counted=counted, light=_variables(PAGE_LIGHT), dark=_variables(PAGE_DARK), syntax_colours=_syntax_colours
    )
    return made


def _variables(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _syntax_colours() -> str:
    """Colours of code in both themes."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style=_SYNTAX_LIGHT).get_style_defs(".highlight")
    dark = HtmlFormatter(style=_SYNTAX_DARK).get_style_defs(".highlight")
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}"
