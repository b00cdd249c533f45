"""Converts pages for the site: labs with their numbers, a narrow table of labs, and links that work on the site."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from pathlib import Path
from urllib.parse import quote, unquote

OUT_OF_SEARCH = "---\nnosearch: true\n---\n\n"
_HREF = re.compile(r'(?<=\bhref=")([^"#?:]*)#([^"]+)(?=")')
_ID = re.compile(r'\b(?:id|name)="([^"]+)"')
_SET_UP = {"code_prompt_show": "Show the set-up cell", "code_prompt_hide": "Hide the set-up cell"}
_ROW = re.compile(r"^\| (\[(\w+)\]\([^)]*\)) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \| (.*?) \|$", re.MULTILINE)


def lab_page(notebook: bytes, lab: str) -> bytes:
    """A lab's notebook as a page: the title begins with its number, `lab01`, so that sidebar and search have it there;
    the notebook itself is below it to download; what sets Colab up is folded.
    """
    read = json.loads(notebook)
    first = read["cells"][0]
    text = "".join(first["source"])
    if not text.startswith("# "):
        raise ValueError(f"{lab}: the first cell must begin with a title, but it begins with {text[:40]!r}")
    title, _, rest = text.partition("\n")
    given = (
        f"{{download}}`Download the notebook </files/{lab}.ipynb>`. Below is the released notebook with its outputs."
    )
    first["source"] = f"# {lab.partition('_')[0]}: {title[2:]}\n\n{given}\n{rest}"
    for cell in read["cells"]:
        if cell.get("id") == "setup":
            cell["metadata"] |= {"tags": ["hide-input"], "mystnb": _SET_UP}
    return json.dumps(read, ensure_ascii=False, indent=1).encode()


def table_of_labs(text: str) -> str:
    """labs/README.md as a page: what to do first, then a narrow table, then the exercises of each lab, folded."""
    rows = _ROW.findall(text)
    if not rows:
        raise ValueError(
            "labs/README.md has no table of labs with the columns | [lab](…) | title | minutes | points | …"
        )
    begins = text.index("| lab |")
    ends = begins + re.match(r"(?:\|.*\n)+", text[begins:]).end()  # type: ignore[union-attr]
    narrow = ["| lab | title | minutes | points |", "|---|---|---|---|"]
    narrow += [f"| {link} | {title} | {minutes} | {points} |" for link, _, title, minutes, points, _, _ in rows]
    folded = [f"* {name.partition('_')[0]}: {exercises}" for _, name, _, _, _, exercises, _ in rows]
    fold = ["```{dropdown} The exercises of each lab", *folded, "```"]
    keywords = "install, installation, colab, collab, kaggle, disk, offline, labs"
    front = f"---\nmyst:\n  html_meta:\n    keywords: {keywords}\n---\n\n"
    around = f"{text[:begins].rstrip()}\n\n{text[ends:].strip()}"
    return front + "\n".join([around, "", *narrow, "", *fold, ""])


def ids(page: str) -> set[str]:
    """Every anchor that a page has."""
    return {html.unescape(one) for one in _ID.findall(page)}


def anchored(page: str, where: str, known: dict[str, set[str]]) -> tuple[str, list[str]]:
    """A page whose links to sections lead there, and those that lead nowhere still.

    `where` is the page's path and `known` the anchors of every page, by path. JupyterLab calls a section
    `2.-The-host-does-not-wait`, Sphinx `2-the-host-does-not-wait`; sources of members that a package's page shows under
    another module's name are found by the end of it.
    """
    dead = []

    def one(found: re.Match[str]) -> str:
        target, anchor = found[1], unquote(html.unescape(found[2]))
        there = known.get(_path(where, target))
        if there is None or anchor in there:
            return found[0]
        better = _nearest(anchor, there)
        if better is None:
            dead.append(f"{where} -> {target}#{anchor}")
            return found[0]
        return f"{target}#{quote(better)}"

    return _HREF.sub(one, page), dead


def _path(where: str, target: str) -> str:
    """The path of a link's page from the site's root."""
    if not target:
        return where
    parts: list[str] = where.split("/")[:-1]
    for part in unquote(target).split("/"):
        if part == "..":
            parts = parts[:-1]
        elif part not in (".", ""):
            parts.append(part)
    return "/".join(parts)


def _nearest(anchor: str, there: Iterable[str]) -> str | None:
    """The one anchor that is meant, if only one can be."""
    slug = re.sub(r"[^\w-]", "", anchor).lower()
    if slug in set(there):
        return slug
    parts = anchor.split(".") if anchor.startswith("edl_labs.") else []
    for start in range(1, len(parts)):
        ends = [one for one in there if one.startswith("edl_labs.") and one.endswith("." + ".".join(parts[start:]))]
        if ends:
            return ends[0] if len(ends) == 1 else None
    return None


def mend_anchors(site: Path) -> list[str]:
    """Every page below `site` with links that lead to their sections; those that still lead nowhere."""
    pages = {path.relative_to(site).as_posix(): path for path in sorted(site.rglob("*.html"))}
    texts = {name: path.read_text(encoding="utf-8") for name, path in pages.items()}
    known = {name: ids(text) for name, text in texts.items()}
    dead = []
    for name, text in texts.items():
        mended, left = anchored(text, name, known)
        dead += left
        if mended != text:
            pages[name].write_text(mended, encoding="utf-8")
    return dead
