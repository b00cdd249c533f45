"""What a student puts out runs, loads and covers nothing in the browser of the person who grades it."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest
from nbconvert.filters.markdown_mistune import IPythonRenderer, MarkdownWithMath

from edl_labs.checks import Outcome
from edl_labs.checks.outcome_display import outcome_html, outcome_text
from edl_labs.checks.score import MIME
from edl_labs.course.grade import without_scripts
from edl_labs.course.grade.without_scripts import (
    html_without_scripts,
    outputs_without_scripts,
    pictures_without_scripts,
    prose_without_scripts,
)
from tests.attacks.page_evasions import ALL, EVASIONS

PNG = "iVBORw0KGgo="
OUTCOME = Outcome("area", "lab", "wrong", 0.0, 2.0, what="it is too large", why="5, not 4", cases_total=3)


def rendered(source: str, attachments: Any = None) -> str:
    """As nbconvert renders it for formgrader."""
    return MarkdownWithMath(renderer=IPythonRenderer(escape=False, attachments=attachments or {})).render(source)


def shown(**data: Any) -> dict[str, Any]:
    (output,) = outputs_without_scripts([{"output_type": "display_data", "data": data, "metadata": {"isolated": True}}])
    return output


def is_harmless(html: str) -> bool:
    """No tag, attribute or address but those that a page of text has; nothing is left open."""
    events = without_scripts._events(html)
    starts = [event for event in events if event[0] == "start"]
    attributes = [(tag, name, value) for _, tag, found in starts for name, value in found]
    kinds = {event[0] for event in events}
    return (
        kinds <= {"start", "end", "text"}
        and {tag for _, tag, _ in starts} <= set(without_scripts._TAGS)
        and not any(name.startswith("on") or name in ("srcset", "srcdoc", "name") for _, name, _ in attributes)
        and all(re.match(r"https?://|mailto:|#", value) for _, name, value in attributes if name == "href")
        and all(value.startswith("data:image/") for _, name, value in attributes if name == "src")
        and all("text-align" in value and ";" not in value.rstrip(";") for _, n, value in attributes if n == "style")
        and not re.search(r"\\(href|style|class|cssId|require|bbox|mmlToken)\b", html)
    )


def test_the_corpus_has_every_class():
    assert len(ALL) >= 80
    assert len(set(ALL)) == len(ALL)
    assert {"attributes", "mutation", "markdown", "TeX"} < set(EVASIONS)


def test_the_corpus_is_harmful_as_it_is():
    breaks_nbconvert = {payload for payload in ALL if "attachment:" in payload}
    harmless = [p for p in ALL if p not in breaks_nbconvert and is_harmless(p) and is_harmless(rendered(p))]

    assert len(harmless) < len(ALL) / 8  # old browsers' ways, and things that only cover or never close


@pytest.mark.parametrize("payload", ALL)
def test_evasion_in_prose(payload: str):
    assert is_harmless(rendered(prose_without_scripts(f"My answer\n\n{payload}\n\n**so**")))
    assert is_harmless(rendered(prose_without_scripts(payload)))


@pytest.mark.parametrize("payload", ALL)
def test_evasion_in_outputs(payload: str):
    data = shown(**{"text/html": payload, "image/svg+xml": payload, "text/markdown": payload, "text/latex": payload})
    found = data["data"]

    assert is_harmless(found.get("text/html", ""))
    assert is_harmless(rendered(found.get("text/markdown", "")))
    assert not re.search(r"<|\\href", found.get("text/latex", ""))
    assert not {"image/svg+xml", "application/javascript"} & set(found)


HONEST = [
    "Plain text, a < b > c, **bold**, `a < b`, *it*",
    "| a | b |\n|:--|--:|\n| 1 | 2 |",
    "# Heading\n\n1. one\n2. two\n\n> quoted",
    "$a < b$ and $$\\frac{1}{2} \\text{ of } \\alpha$$",
    "```python\nif a < b:\n    print('<b>')\n```",
    "[a page](https://example.org/x?y=1&z=2 'title'), <https://example.org>, me@example.org",
    "H<sub>2</sub>O is <b>wet</b><br>and <kbd>Ctrl</kbd>",
    f"![picture](data:image/png;base64,{PNG})",
    "Line one\nline two  \nline three",
    "<table><tr><td>1</td></tr></table>",
    "<details><summary>more</summary>text</details>",
    "~~gone~~ and a definition\n\nterm\n: what it is",
]


@pytest.mark.parametrize("source", HONEST)
def test_honest_prose_stays_as_it_was_written(source: str):
    assert source == prose_without_scripts(source)


def test_an_attached_picture_stays_and_a_missing_one_breaks_nothing():
    source = "![graph](attachment:a.png) ![other](attachment:b.png)"
    pictures = pictures_without_scripts({"a.png": {"image/png": PNG}, "b.png": {"text/html": PNG}})
    html = rendered(prose_without_scripts(source, pictures), pictures)

    assert {"a.png": {"image/png": PNG}} == pictures
    assert f'src="data:image/png;base64,{PNG}"' in html
    assert "other" in html


@pytest.mark.parametrize("bundle", [{"image/svg+xml": PNG}, {"image/png": 'AA" onerror="x'}, {"text/html": "AA=="}])
def test_an_attachment_that_is_no_picture_is_left_out(bundle: dict[str, str]):
    assert {} == pictures_without_scripts({"a": bundle})
    assert {} == pictures_without_scripts({'a" onerror="x': {"image/png": PNG}})


def test_prose_keeps_what_is_honest_beside_what_is_not():
    html = rendered(prose_without_scripts("**My** answer\n\n<img src=x onerror=alert(1)>\n\n- [x] done\n\n$x$"))

    assert all(part in html for part in ("<strong>My</strong>", "☑", "done", "$x$"))
    assert "onerror" not in html


def test_endless_or_deep_prose_is_shown_as_text():
    long, deep = "$$a" * 20_000, "<b>" * 300

    assert f"<pre>{long}</pre>" == prose_without_scripts(long)
    assert deep.replace("<", "&lt;").replace(">", "&gt;") in prose_without_scripts(deep)
    assert "" == html_without_scripts("<div>" * 2000)


def test_honest_html_loses_its_styles_alone():
    table = '<table border="1" class="dataframe"><thead><tr style="text-align: right;"><th>a</th></tr></thead></table>'
    html = html_without_scripts(f"<style scoped>td {{}}</style><div style='color:red'>{table} 1 &lt; 2</div>")

    assert '<div><table class="dataframe"><thead><tr><th>a</th></tr></thead></table> 1 &lt; 2</div>' == html


def test_a_drawing_becomes_an_image():
    html = shown(**{"image/svg+xml": '<?xml version="1.0"?><svg viewBox="0 0 1 1"><!-- 0.0 --><path d="M0 0"/></svg>'})[
        "data"
    ]

    assert html["text/html"].startswith('<img alt="drawing" src="data:image/svg+xml;base64,')
    assert "" == html_without_scripts("<svg><path></svg>")


def test_javascript_and_unknown_kinds_are_left_out():
    assert ["text/plain"] == list(shown(**{"application/javascript": "alert(1)", "application/x": "y"})["data"])


def test_picture_that_is_no_base64_is_left_out():
    assert {"text/plain": "kept"} == shown(**{"image/png": 'AA" onerror="alert(1)', "text/plain": "kept"})["data"]


def test_a_card_is_made_anew_from_the_score():
    report = {"text/plain": outcome_text(OUTCOME), "text/html": "<script>1</script>"}
    score = {"text/plain": "0.0", "text/html": "<b>forged</b>", MIME: OUTCOME.to_json()}
    outputs = [{"output_type": "display_data", "data": data, "metadata": {}} for data in (report, score)]
    (output,) = outputs_without_scripts(outputs)

    assert outcome_html(OUTCOME) == output["data"]["text/html"]


@pytest.mark.parametrize(
    "change", [{"cases_total": "<img>"}, {"case_index": "<img>"}, {"points": "<img>"}, {"state": "<img>"}]
)
def test_a_forged_card_is_none(change: dict[str, Any]):
    tree = replace(OUTCOME, case_text="x").to_json() | change
    output = shown(**{"text/html": "<b>kept</b>", MIME: tree})

    assert "<b>kept</b>" == output["data"]["text/html"]


def test_text_in_a_card_is_text():
    tree = replace(OUTCOME, **dict.fromkeys(("name", "what", "why", "next", "case_text", "printed"), "<img src=x>"))

    assert "<img" not in shown(**{"text/html": "", MIME: tree.to_json()})["data"]["text/html"]
