"""An executed notebook's page loads nothing, shows what a reader needs, and follows both themes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from edl_labs.course.pages import notebook_page
from edl_labs.course.pages.notebook_page import math_html, write_page

PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def page(folder: Path, *cells: Any, **more: Any) -> BeautifulSoup:
    path = folder / "lab90_small.ipynb"
    nbformat.write(new_notebook(cells=list(cells)), path)
    write_page(path, folder / "page.html", title="Small & fine", **more)
    return BeautifulSoup((folder / "page.html").read_text(encoding="utf-8"), "html.parser")


def shown(data: dict[str, Any]) -> Any:
    return new_code_cell("x", outputs=[new_output("execute_result", data=data, execution_count=1)], execution_count=1)


def loads(soup: BeautifulSoup) -> list[str]:
    """What a browser would fetch by itself from such a page."""
    found = [
        str(tag[key])
        for key in ("src", "poster", "data", "srcset", "background")
        for tag in soup.find_all(**{key: True})
    ]
    found += [str(tag.get("href", "")) for tag in soup.find_all(["link", "image", "use", "base"])]
    found += re.findall(r"url\(([^)]*)\)|@import\s+\S+", str(soup))
    return [address for address in found if not address.strip("'\" ").startswith(("data:", "#"))]


REMOTE = "https://example.org/x"


@pytest.mark.parametrize(
    "html",
    [
        f'<script src="{REMOTE}.js"></script>',
        f'<link rel="stylesheet" href="{REMOTE}.css">',
        f'<img src="{REMOTE}.png" srcset="{REMOTE}.png 2x">',
        '<img src="//example.org/x.png">',
        '<img src="elsewhere/x.png">',
        f'<iframe src="{REMOTE}"></iframe>',
        f'<video poster="{REMOTE}.png"><source src="{REMOTE}.mp4"></video>',
        f'<object data="{REMOTE}.svg"></object><embed src="{REMOTE}">',
        f'<svg><image href="{REMOTE}.png"/><use xlink:href="{REMOTE}.svg#a"/></svg>',
        f'<style>@import "{REMOTE}.css"; p {{ background: url({REMOTE}.png) }}</style>',
        f"<p style=\"background: url('{REMOTE}.png')\">text</p>",
        f'<base href="{REMOTE}"><meta http-equiv="refresh" content="0;url={REMOTE}">',
    ],
)
@pytest.mark.parametrize("where", ["markdown", "output"])
def test_nothing_in_a_page_is_loaded_from_elsewhere(tmp_path: Path, html: str, where: str) -> None:
    cell = new_markdown_cell(html) if where == "markdown" else shown({"text/html": html, "text/plain": "x"})

    assert [] == loads(page(tmp_path, cell))


def test_the_test_above_can_fail() -> None:
    assert [f"{REMOTE}.png"] == loads(BeautifulSoup(f'<img src="{REMOTE}.png">', "html.parser"))


def test_a_page_forbids_the_browser_every_load(tmp_path: Path) -> None:
    policy = page(tmp_path).find("meta", {"http-equiv": "Content-Security-Policy"})

    assert str(policy["content"]).startswith("default-src 'none'; ")  # type: ignore[index]
    assert "http" not in str(policy["content"])  # type: ignore[index]


def test_a_picture_from_elsewhere_becomes_a_link(tmp_path: Path) -> None:
    link = page(tmp_path, new_markdown_cell(f"![the roofline]({REMOTE}.png)")).find("a", href=f"{REMOTE}.png")

    assert f"the roofline ({REMOTE}.png)" == link.text  # type: ignore[union-attr]


def test_plots_attachments_and_pictures_beside_the_notebook_are_in_the_page(tmp_path: Path) -> None:
    import base64

    (tmp_path / "beside.png").write_bytes(base64.b64decode(PIXEL))
    attached = new_markdown_cell("![a](attachment:a.png)", attachments={"a.png": {"image/png": PIXEL}})

    soup = page(
        tmp_path, attached, new_markdown_cell("![b](beside.png)"), shown({"image/png": PIXEL, "text/plain": "p"})
    )
    assert 3 == sum(str(image["src"]).startswith("data:image/png;base64,") for image in soup.find_all("img"))


def test_a_widget_shows_its_text(tmp_path: Path) -> None:
    view = {"application/vnd.jupyter.widget-view+json": {"model_id": "1"}, "text/plain": "progress: 3 of 4"}

    assert "progress: 3 of 4" in page(tmp_path, shown(view)).text


def test_both_themes_are_in_every_page(tmp_path: Path) -> None:
    text = str(page(tmp_path))

    assert "color-scheme: light dark" in text
    assert 2 == text.count("@media (prefers-color-scheme: dark)")


def test_the_head_of_a_page_says_what_went_wrong_and_escapes_it(tmp_path: Path) -> None:
    header = page(tmp_path, summary="1 of 2 points", problems=["cell 3 (<b>)"]).find("header")

    assert "Failed 1 of 2 pointscell 3 (<b>)" == header.text.strip()  # type: ignore[union-attr]


def test_terminal_colours_become_styles(tmp_path: Path) -> None:
    stream = new_code_cell("x", outputs=[new_output("stream", name="stdout", text="\x1b[31mred\x1b[0m <i>")])

    soup = page(tmp_path, stream)
    assert "\x1b" not in str(soup)
    assert ["red"] == [tag.text for tag in soup.select(".ansi-red-fg")]
    assert "<i>" in soup.text


@pytest.mark.parametrize("source", ["$a < b_1$", "$$a < b_1$$", "text \\\\(a < b_1\\\\) text"])
def test_a_formula_is_readable_without_scripts(tmp_path: Path, source: str) -> None:
    soup = page(tmp_path, new_markdown_cell(source))

    assert 1 == len(soup.select("math, code.tex"))
    assert "MathJax" not in str(soup)


def test_without_a_converter_a_formula_stays_tex(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_page, "_mathml", lambda tex, *, block: None)

    assert '<code class="tex">a &lt; b</code>' == math_html(" a < b ")
    assert '<p class="tex"><code class="tex">a</code></p>' == math_html("a", block=True)


@pytest.mark.parametrize("tex", [r"\nosuchcommand{a}", r"\begin{aligned} a &= b \end{aligned}", r"\frac{a}"])
def test_a_formula_that_no_converter_understands_is_never_mangled(tex: str) -> None:
    assert math_html(tex).startswith('<code class="tex">') or "nosuch" not in math_html(tex)
    assert r"<mi>\nosuchcommand" not in math_html(tex)


def test_a_formula_becomes_mathml_where_the_converter_is_installed() -> None:
    pytest.importorskip("latex2mathml", reason="latex2mathml is not installed: formulas stay TeX")

    assert math_html(r"\frac{a}{b}").startswith("<math")
    assert 'display="block"' in math_html(r"\frac{a}{b}", block=True)


@pytest.mark.parametrize(
    ("metadata", "clear"),
    [
        ({"image/png": {"alt": "Plot."}}, True),
        ({"image/png": {"alt": "Plot."}, "needs_background": "light"}, False),
        ({"image/png": {"alt": "Plot.", "needs_background": "light"}}, False),
        ({}, False),
    ],
)
def test_a_figure_that_reads_on_any_page_has_no_white_behind_it(tmp_path: Path, metadata: Any, clear: bool) -> None:
    output = new_output("display_data", data={"image/png": PIXEL}, metadata=metadata)
    picture = page(tmp_path, new_code_cell("x", outputs=[output], execution_count=1)).img

    assert clear is ("unconfined" in picture.get("class", []))
