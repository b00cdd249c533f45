"""What a student puts out runs nothing in the browser of the person who grades it."""

from __future__ import annotations

from typing import Any

import pytest

from edl_labs.course.grade.without_scripts import output_without_scripts, prose_without_scripts

RUNNING = [
    "<script>fetch('/formgrader/api/grade/1', {method: 'PUT'})</script>",
    "<img src=x onerror=alert(1)>",
    "<IMG SRC=x OnError = 'alert(1)'>",
    "<img/onload=alert(1) src=x>",
    '<a href="javascript:alert(1)">x</a>',
    '<a href="java&#115;cript:alert(1)">x</a>',
    '<a href="java\tscript:alert(1)">x</a>',
    '<iframe srcdoc="&lt;script&gt;"></iframe>',
    "<svg><animate onbegin=alert(1) attributeName=x></svg>",
    '<svg><use href="data:image/svg+xml;base64,AA=="/></svg>',
    "<form action=/formgrader/api><button>Show more</button></form>",
    "<meta http-equiv=refresh content='0;url=/x'>",
    "<object data=x></object>",
    "<style>body { display: none }</style>",
    "<a href='data:text/html,<script>1</script>'>x</a>",
]


def shown(**data: str) -> dict[str, Any]:
    bundle = {kind.replace("__", "/"): text for kind, text in data.items()}
    return {"output_type": "display_data", "data": bundle, "metadata": {"isolated": True}}


@pytest.mark.parametrize("text", RUNNING)
def test_html_that_runs_is_left_out(text: str):
    output = output_without_scripts(shown(text__html=text, text__plain="kept"))

    assert {"text/plain": "kept"} == output["data"]


@pytest.mark.parametrize("text", RUNNING)
def test_prose_that_runs_becomes_text(text: str):
    assert "<" not in prose_without_scripts(f"My answer {text}")


@pytest.mark.parametrize(
    "text", ["<b>bold</b>", "<table><tr><td>1 &lt; 2</td></tr></table>", "<div style='color:red'>x</div>", "a < b > c"]
)
def test_harmless_html_stays(text: str):
    assert text == output_without_scripts(shown(text__html=text))["data"]["text/html"]
    assert text == prose_without_scripts(text)


def test_javascript_and_unknown_kinds_are_left_out():
    output = output_without_scripts({**shown(), "data": {"application/javascript": "alert(1)", "application/x": "y"}})

    assert ["text/plain"] == list(output["data"])


def test_picture_that_is_no_base64_is_left_out():
    picture = {"image/png": 'AA" onerror="alert(1)'}

    assert "image/png" not in output_without_scripts({**shown(), "data": picture})["data"]
