"""Cleans outputs and prose, so that they run nothing, load nothing and cover nothing in the grader's browser.

Formgrader shows students' HTML on the page whose buttons give marks; a script in it could press them. So everything
goes through the HTML parser of nh3 and a list of what is allowed; everything else is removed. Markdown
stays as it was written where its rendering is on the list to the last tag. TeX loses the commands with which MathJax
makes links and styles; a picture of lines (SVG) becomes an image, in which nothing runs or loads.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from html import escape
from html.parser import HTMLParser
from typing import Any

from edl_labs.checks import Outcome
from edl_labs.checks._judge import STATES
from edl_labs.checks.outcome_display import outcome_html, outcome_text
from edl_labs.checks.score import MIME
from edl_labs.errors import EdlError

_TAGS = (
    "a", "abbr", "b", "blockquote", "br", "caption", "cite", "code", "col", "colgroup", "dd", "del", "details", "dfn",
    "div", "dl", "dt", "em", "figcaption", "figure", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "ins", "kbd",
    "li", "mark", "ol", "p", "pre", "q", "s", "samp", "small", "span", "strong", "sub", "summary", "sup", "table",
    "tbody", "td", "tfoot", "th", "thead", "tr", "tt", "u", "ul", "var",
)  # fmt: skip
_ATTRIBUTES = {
    **{tag: {"class"} for tag in ("code", "div", "pre", "span", "table")},
    **{tag: {"align", "colspan", "rowspan", "style"} for tag in ("td", "th")},
    **{f"h{level}": {"id"} for level in range(1, 7)},
    "a": {"class", "href", "title"},
    "abbr": {"title"},
    "details": {"open"},
    "ol": {"start"},
    "img": {"alt", "height", "src", "title", "width"},
}
_VOID = ("br", "col", "hr", "img")
_PICTURE = r"data:image/(png|jpeg|gif|webp|svg\+xml);base64,[A-Za-z0-9+/=\s]*"
_VALUES = {
    # pandas' tables, pygments' colours and nbconvert's own marks; longer names are those of a page's own parts.
    "class": r"((dataframe|highlight|anchor-link|hl-\w+|language-[\w+.-]+|[a-z]\w{0,2})(\s+|$))*",
    "href": r"(https?://|mailto:|#).*",
    "src": _PICTURE,
    "style": r"\s*text-align:\s*(left|right|center)\s*;?\s*",
    "align": r"left|right|center",
    **dict.fromkeys(("colspan", "rowspan", "start"), r"\d{1,3}"),
    **dict.fromkeys(("width", "height"), r"\d{1,4}(px|%)?"),
    **dict.fromkeys(("alt", "id", "open", "title"), r".*"),
}
# What MathJax makes links, styles, classes and extensions with.
_TEX = re.compile(
    r"\\(?=(?:href|url|style|class|cssId|require|bbox|html\w*|data\w*|includegraphics|unicode|mmlToken)(?![A-Za-z]))"
)
_APART = "\u2060"  # a word joiner: of no width, and the command is none any more
_READ_LETTERS = 10_000  # a long answer has 5,000; mistune's time grows with the square of hostile texts
_READ_ALL_LETTERS = 100_000  # of one notebook: 4 s of hostile texts
_DEEPEST = 100  # levels of tags: honest pages have ten, and Python's own readers end at a thousand
_END = "<p>end of the cell</p>"  # tells whether something before it was left open
_TICKED = re.compile(r'<input class="task-list-item-checkbox" type="checkbox" disabled( checked)?\s*/?>')
_SVG = re.compile(r"<svg\b.*?</svg\s*>", re.IGNORECASE | re.DOTALL)
_SVG_END = re.compile(r"</svg\s*>", re.IGNORECASE)
_ATTACHED = re.compile(r"attachment:([^)\s]+)")
_RASTER = ("image/png", "image/jpeg", "image/gif", "image/webp")
_LEFT_OUT = "[content that a browser would run was removed here]"


class ReadingAllowance:
    """How many letters of markdown are still rendered of one notebook."""

    def __init__(self) -> None:
        self.left = _READ_ALL_LETTERS

    def covers(self, text: str) -> bool:
        """Whether `text` is still rendered; it counts from then on."""
        self.left -= len(text)
        return len(text) <= _READ_LETTERS and self.left >= 0


def outputs_without_scripts(
    outputs: Iterable[dict[str, Any]], allowance: ReadingAllowance | None = None
) -> list[dict[str, Any]]:
    """Outputs of nbformat with nothing in them that a browser runs; cards of checks are made anew from Scores."""
    kept: list[dict[str, Any]] = []
    for output in outputs:
        if "data" not in output:
            kept.append(output)
            continue
        data = _bundle(output["data"], allowance or ReadingAllowance())
        card = _card(data.get(MIME))
        if card is not None:
            data["text/html"] = outcome_html(card)
            if kept and kept[-1].get("data", {}).get("text/plain") == outcome_text(card):
                kept.pop()  # the same card, as the student's kernel showed it
        kept.append({**output, "data": data or {"text/plain": _LEFT_OUT}, "metadata": {}})
    return kept


def html_without_scripts(html: str) -> str:
    """The HTML that is allowed; empty where nothing is."""
    # Behind the last drawing's end each further beginning would be looked for to the end of the text.
    end = max((found.end() for found in _SVG_END.finditer(html)), default=0)
    found = _cleaned(_SVG.sub(_as_image, html[:end]) + html[end:])
    return found if _depth(found) <= _DEEPEST else ""


def prose_without_scripts(
    source: str,
    attachments: Mapping[str, Mapping[str, str]] | None = None,
    allowance: ReadingAllowance | None = None,
) -> str:
    """Markdown whose rendering is allowed to the last tag: as it is, else what is left of it, else its text."""
    if not source.strip():
        return source
    known = attachments or {}
    text = _ATTACHED.sub(lambda found: found[0] if found[1] in known else f"missing:{found[1]}", source)
    if (allowance or ReadingAllowance()).covers(text):
        html = _rendered(text, known)
        if _allowed(html):
            return text
        left = f"<div>{html_without_scripts(_TICKED.sub(_box, html))}</div>".replace("\n", "&#10;")
        if len(left) > len("<div></div>") and _allowed(_rendered(left, known)):
            return left
    plain = escape(_apart(source), quote=False).replace("\r", "").replace("\n", "&#10;")
    return f"<pre>{plain}</pre>"


def pictures_without_scripts(attachments: Mapping[str, Mapping[str, str]] | None) -> dict[str, dict[str, str]]:
    """The pictures of a cell that are pictures, under names that are names."""
    kept = {}
    for name, bundle in (attachments or {}).items():
        pictures = {kind: data for kind, data in bundle.items() if kind in _RASTER and _is_base64(data)}
        if pictures and re.fullmatch(r"[\w .()-]{1,200}", name):
            kept[name] = pictures
    return kept


def _bundle(data: Mapping[str, Any], allowance: ReadingAllowance) -> dict[str, Any]:
    """What of a MIME bundle can be shown, the first of two that are shown as one kind."""
    found: dict[str, Any] = {}
    for kind, value in data.items():
        if kind == MIME:
            found[kind] = value
        elif kind in _SHOWN_KINDS:
            text = value if isinstance(value, str) else "".join(value)
            if kind == "text/markdown":
                text = prose_without_scripts(text, allowance=allowance)
            else:
                text = _SHOWN_KINDS[kind](text)
            if text or kind == "text/plain":
                found.setdefault("text/html" if kind == "image/svg+xml" else kind, text)
    return found


def _card(data: Any) -> Outcome | None:
    """The outcome in a Score's data; None for what is no outcome, whatever it says it is."""
    try:
        found = Outcome.from_json(data)
        numbers = (found.points, found.max_points, found.cases_total, found.case_index or 0)
        return found if found.state in STATES and all(type(n) in (int, float) for n in numbers) else None
    except (EdlError, TypeError, ValueError, KeyError, AttributeError):
        return None


def _cleaned(html: str) -> str:
    import nh3

    return _apart(
        nh3.clean(
            html,
            tags=set(_TAGS),
            attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
            attribute_filter=_value,
            url_schemes={"http", "https", "mailto", "data"},
            link_rel=None,
        )
    )


def _value(_tag: str, name: str, value: str) -> str | None:
    return value if name in _VALUES and re.fullmatch(_VALUES[name], value, re.DOTALL) else None


def _apart(text: str) -> str:
    """The text with MathJax's dangerous commands taken apart."""
    return _TEX.sub(lambda found: found[0] + _APART, text)


def _allowed(html: str) -> bool:
    """Whether cleaning takes nothing away and nothing is left open: two parsers see the same tags and text."""
    if not html:
        return False
    whole = html + _END
    seen, kept = _events(whole), _events(_cleaned(whole))
    return seen == kept and kept[-3:] == _events(_END) and _depth(html) <= _DEEPEST


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.events: list[tuple[Any, ...]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag != "tbody":  # the one tag that parsers put in for the author
            self.events.append(("start", tag, sorted((name, value or "") for name, value in attrs)))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in _VOID:
            self.events.append(("open and closed", tag))

    def handle_endtag(self, tag: str) -> None:
        if tag != "tbody":
            self.events.append(("end", tag))

    def handle_data(self, data: str) -> None:
        if self.events and self.events[-1][0] == "text":
            data = self.events.pop()[1] + data
        self.events.append(("text", data))

    def handle_comment(self, data: str) -> None:
        self.events.append(("comment", data))

    handle_decl = handle_pi = unknown_decl = handle_comment  # type: ignore[assignment]


def _events(html: str) -> list[tuple[Any, ...]]:
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.events


def _depth(html: str) -> int:
    deepest = depth = 0
    for event in _events(html):
        depth += (event[0] == "start" and event[1] not in _VOID) - (event[0] == "end")
        deepest = max(deepest, depth)
    return deepest


def _rendered(source: str, attachments: Mapping[str, Mapping[str, str]]) -> str:
    """The HTML that nbconvert makes of markdown for formgrader and feedback; empty when it cannot."""
    try:
        return _markdown()(source, attachments)
    except Exception:
        return ""


@cache
def _markdown() -> Any:
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    def render(source: str, attachments: Mapping[str, Mapping[str, str]]) -> str:
        renderer = IPythonRenderer(escape=False, attachments={name: dict(b) for name, b in attachments.items()})
        return MarkdownWithMath(renderer=renderer).render(source)

    return render


def _box(found: re.Match[str]) -> str:
    return "☑ " if found[1] else "☐ "


def _as_image(found: re.Match[str]) -> str:
    """A drawing as an image: browsers run and load nothing in one. Empty for a drawing that is not well formed."""
    from xml.etree import ElementTree

    text = found[0] if "xmlns" in found[0] else found[0].replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    try:
        ElementTree.fromstring(text)  # it begins with its root, so that it declares no entities
    except ElementTree.ParseError:
        return ""
    return f'<img alt="drawing" src="data:image/svg+xml;base64,{b64encode(text.encode("utf-8", "replace")).decode()}">'


def _is_base64(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9+/=\s]+", text))


_SHOWN_KINDS: dict[str, Callable[[str], str]] = {
    "text/plain": str,
    "text/html": html_without_scripts,
    "text/markdown": prose_without_scripts,
    "text/latex": lambda text: _apart(text).replace("<", r"\lt "),
    "image/svg+xml": html_without_scripts,
    **dict.fromkeys(_RASTER, lambda text: text if _is_base64(text) else ""),
}
