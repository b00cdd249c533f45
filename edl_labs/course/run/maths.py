"""Formulas without a network: MathML where latex2mathml is installed and understands, else the readable TeX."""

from __future__ import annotations

import re
from html import escape

# What latex2mathml takes for letters instead of refusing it: an unknown command, or a stray alignment mark.
_NOT_UNDERSTOOD = re.compile(r"<m[iot][^>]*>(?:\\[A-Za-z]*|&(?:amp;)?)</m[iot]>")
_ENVIRONMENT = re.compile(r"\\begin\{(?!p?b?v?V?B?matrix|cases|array|align\*?\})")


def math_html(tex: str, *, block: bool = False) -> str:
    """One formula as HTML: MathML, or the TeX itself in a `code` element.

    >>> math_html("N_ops").startswith(("<math", "<code"))
    True
    """
    found = None if _ENVIRONMENT.search(tex) else _mathml(tex, block=block)
    if found is None:
        text = f'<code class="tex">{escape(tex.strip(), quote=False)}</code>'
        return f'<p class="tex">{text}</p>' if block else text
    return found


def _mathml(tex: str, *, block: bool) -> str | None:
    try:
        from latex2mathml.converter import convert
    except ImportError:
        return None
    try:
        found = convert(tex, display="block" if block else "inline")
    except Exception:  # each kind of malformed TeX is another exception there
        return None
    return None if _NOT_UNDERSTOOD.search(found) else found
