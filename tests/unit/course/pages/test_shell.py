"""One shell for every page: the same head, the same colours, and values that cannot become tags."""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path

import pytest

from edl_labs.course.marks.class_page import write_report
from edl_labs.course.marks.class_report import ClassOverview, ExerciseOverview
from edl_labs.course.marks.similarity import Pair
from edl_labs.course.pages.shell import render
from edl_labs.palette import PAGE_DARK, PAGE_LIGHT

TEMPLATES = [Path(str(file)) for file in resources.files("edl_labs.course.pages").iterdir() if "." in file.name]
KINDS = [path.name for path in TEMPLATES if path.suffix == ".html" and path.name != "page.html"]
HOSTILE = "<script>alert(1)</script>"


def class_page(folder: Path) -> str:
    exercises = (ExerciseOverview("area", 2.0, (0.0, 1.0), mistakes=((HOSTILE, 1),)), ExerciseOverview("why", 2.0, ()))
    pair = Pair("ann", HOSTILE, 0.9, 40, ("area",))
    report = ClassOverview("lab90", 2, (1.0, 9.0), 9.0, exercises, (2.0,), (("ann", ("killed",)),), (pair,), ("eve",))
    write_report(report, {"ann": {"area": "a = 1\nb"}, HOSTILE: {"area": f"a = 1\n{HOSTILE}"}}, folder / "class.html")
    return (folder / "class.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_page_is_the_one_shell(kind: str) -> None:
    text = next(path for path in TEMPLATES if path.name == kind).read_text(encoding="utf-8")

    assert text.startswith('{% extends "page.html" %}')
    assert "<style>" not in text


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_no_page_has_a_colour_of_its_own(path: Path) -> None:
    assert [] == re.findall(r"#[0-9a-fA-F]{3,8}\b|rgba?\(", path.read_text(encoding="utf-8"))


def test_both_themes_name_the_same_colours_and_pages_use_no_other() -> None:
    styles = "".join(path.read_text(encoding="utf-8") for path in TEMPLATES if path.suffix == ".css")
    used = {name for name in re.findall(r"var\(--([\w-]+)\)", styles) if not name.startswith("jp-")}

    assert PAGE_LIGHT.keys() == PAGE_DARK.keys()
    assert used == set(PAGE_LIGHT)


def test_values_are_text_and_never_tags(tmp_path: Path) -> None:
    executed = render("executed.html", title=HOSTILE, summary=HOSTILE, problems=[HOSTILE], body="")

    assert HOSTILE not in executed + class_page(tmp_path)


def test_the_class_report_tells_what_there_is(tmp_path: Path) -> None:
    page = class_page(tmp_path)

    assert "2 students, median 5 of 9 points, median grading time 2.0 min." in page
    assert "<mark>a = 1</mark>\nb</pre>" in page
    assert 'aria-label="none: 1, to 25%: 0, to 50%: 0, to 75%: 0, below all: 0, all: 1"' in page
