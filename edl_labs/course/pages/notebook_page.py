"""A notebook as HTML that loads nothing from anywhere: pictures are embedded, formulas are MathML or readable TeX."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any

from edl_labs.course.pages.shell import render

_REMOTE = re.compile(r"^\s*(?!data:|#)\S", re.IGNORECASE)
_CSS_LOAD = re.compile(r"@import[^;]*;?|url\(\s*['\"]?(?!\s*['\"]?(?:data:|#))[^)]*\)", re.IGNORECASE)
# What latex2mathml takes for letters instead of refusing it: an unknown command, or a stray alignment mark.
_NOT_UNDERSTOOD = re.compile(r"<m[iot][^>]*>(?:\\[A-Za-z]*|&(?:amp;)?)</m[iot]>")
_ENVIRONMENT = re.compile(r"\\begin\{(?!p?b?v?V?B?matrix|cases|array|align\*?\})")
_WIDGETS = ("application/vnd.jupyter.widget-view+json", "application/vnd.jupyter.widget-state+json")


def write_page(notebook: Path, page: Path, *, title: str, summary: str = "", problems: Sequence[str] = ()) -> None:
    """Writes the notebook file as an HTML page, with a line of summary and the problems above it."""
    import nbformat

    body = notebook_html(nbformat.read(str(notebook), as_version=4), folder=notebook.parent)
    text = render("executed.html", title=title, summary=summary, problems=list(problems), body=body)
    page.write_text(text, encoding="utf-8")


def notebook_html(notebook: Any, *, folder: Path) -> str:
    """The notebook's cells as an HTML fragment that refers to nothing outside itself; pictures are embedded."""
    body, _ = _exporter(folder).from_notebook_node(_shown(notebook), {"metadata": {"path": str(folder)}})
    return _self_contained(body)


def math_html(tex: str, *, block: bool = False) -> str:
    """One formula as HTML: MathML where latex2mathml is installed and understands it, else the TeX in a `code` element.

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


def _exporter(folder: Path) -> Any:
    from nbconvert import HTMLExporter
    from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

    class Renderer(IPythonRenderer):
        def inline_math(self, body: str) -> str:
            return math_html(body)

        def block_math(self, body: str) -> str:
            return math_html(body, block=True)

        def latex_environment(self, name: str, body: str) -> str:
            return math_html(f"\\begin{{{name}}}{body}\\end{{{name}}}", block=True)

        def block_mermaidjs(self, code: str) -> str:
            return f"<pre>{escape(code)}</pre>"

    class Exporter(HTMLExporter):
        def default_filters(self) -> Any:
            yield from super().default_filters()
            yield ("markdown2html", _markdown)

    def _markdown(source: str) -> str:
        return MarkdownWithMath(renderer=Renderer(escape=False, embed_images=True, path=str(folder))).render(source)

    return Exporter(template_name="basic", embed_images=True)


def _shown(notebook: Any) -> Any:
    """A copy in which each output is what a page without scripts can show, and attached pictures are in the text."""
    from copy import deepcopy

    shown = deepcopy(notebook)
    shown.metadata.pop("widgets", None)
    for cell in shown.cells:
        for name, bundle in cell.get("attachments", {}).items():
            kind, data = next(iter(bundle.items()), ("", ""))
            cell.source = cell.source.replace(f"attachment:{name}", f"data:{kind};base64,{data}")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            for mime in _WIDGETS:
                data.pop(mime, None)
            _mark_pictures_of_any_page(output.get("metadata"))
            if "text/latex" in data and not ("text/html" in data or "image/png" in data):
                data["text/html"] = math_html(str(data["text/latex"]).strip().strip("$"), block=True)
    return shown


def _mark_pictures_of_any_page(metadata: Any) -> None:
    """Give a figure with the look of `plots.style` the one class that nbconvert has for pictures: it needs no ground.

    Such a figure says what it shows, and asks for no background; one in dark ink asks for a light one.
    """
    of_picture = metadata.get("image/png") if isinstance(metadata, dict) else None
    if not isinstance(of_picture, dict) or "alt" not in of_picture:
        return
    if not (metadata.get("needs_background") or of_picture.get("needs_background")):  # JupyterLab reads either
        of_picture["unconfined"] = True


def _self_contained(body: str) -> str:
    from bs4 import BeautifulSoup

    soup = BeautifulSoup(body, "html.parser")
    for tag in soup.find_all(["script", "link", "base", "meta", "object", "embed"]):
        if tag.name != "script" or tag.get("src"):
            tag.decompose()
    for tag in soup.find_all(["img", "video", "audio", "source", "track", "iframe", "image", "use", "input"]):
        _without_remote(soup, tag)
    for tag in soup.find_all("style"):
        tag.string = _CSS_LOAD.sub("", tag.get_text())
    for tag in soup.find_all(style=True):
        tag["style"] = _CSS_LOAD.sub("none", str(tag["style"]))
    return str(soup)


def _without_remote(soup: Any, tag: Any) -> None:
    del tag["srcset"]
    remote = next(
        (str(tag[k]) for k in ("src", "href", "xlink:href", "poster") if _REMOTE.match(str(tag.get(k, "")))), ""
    )
    if not remote:
        return
    if tag.name in ("img", "video", "audio", "iframe"):
        link = soup.new_tag("a", href=remote)
        link.string = f"{tag.get('alt') or tag.name} ({remote})"
        tag.replace_with(link)
    else:
        tag.decompose()
