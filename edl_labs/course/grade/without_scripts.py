"""Outputs and prose that run nothing in the browser of the person who grades them.

Formgrader shows students' HTML on the page whose buttons give marks; a script in it could press them.
"""

from __future__ import annotations

import html
import re
from typing import Any

from edl_labs.checks.score import MIME

_RUNS = re.compile(
    r"<\s*/?\s*(script|iframe|object|embed|link|meta|base|form|input|button|textarea|frame|frameset|applet|portal)\b"
    r"|<\s*style\b"
    r"|<[^>]*[\s/\"']on[a-z]+\s*="
    r"|(javascript|vbscript)\s*:|data\s*:\s*text/html|srcdoc\s*=|<\s*(svg|math)\b[^>]*(xlink:)?href"
    r"|<\s*(set|animate\w*|foreignobject|use)\b",
    re.IGNORECASE,
)
_CONTROLS = re.compile(r"[\x00-\x20]+")
_SCHEME = re.compile(r"(script)\s*:", re.IGNORECASE)
_TAG = re.compile(r"<(?=[a-zA-Z!/?])")
_SHOWN_KINDS = ("text/plain", "text/html", "text/markdown", "text/latex", "image/png", "image/jpeg", "image/svg+xml")
_LEFT_OUT = "[something that a browser would run was left out here]"


def output_without_scripts(output: dict[str, Any]) -> dict[str, Any]:
    """An output of nbformat with nothing in it that a browser runs."""
    if "data" not in output:
        return output
    data = {kind: value for kind, value in output["data"].items() if kind in _SHOWN_KINDS or kind == MIME}
    for kind in ("text/html", "image/svg+xml", "text/markdown", "text/latex"):
        if kind in data and _runs(_text(data[kind])):
            del data[kind]
            data.setdefault("text/plain", _LEFT_OUT)
    for kind in ("image/png", "image/jpeg"):
        if kind in data and not re.fullmatch(r"[A-Za-z0-9+/=\s]*", _text(data[kind])):
            del data[kind]
    return {**output, "data": data or {"text/plain": _LEFT_OUT}, "metadata": {}}


def prose_without_scripts(source: str) -> str:
    """Markdown in which every tag is text, when there is one that a browser would run; else as it is."""
    return _SCHEME.sub(r"\1 :", _TAG.sub("&lt;", source)) if _runs(source) else source


def _runs(text: str) -> bool:
    return bool(_RUNS.search(_unhidden(text)))


def _unhidden(text: str) -> str:
    """The text with entities and control characters resolved, as a browser reads attribute values."""
    resolved = html.unescape(text)
    return "\n".join((text, resolved, _CONTROLS.sub("", resolved)))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "".join(value)
