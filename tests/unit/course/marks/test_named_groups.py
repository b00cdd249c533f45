"""Groups that students name in their notebooks: nobody joins one against what they handed in."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.groups import NAMED_FILE, from_notebooks, read_groups
from edl_labs.course.marks.named_groups import agreed, named_in, take_named_groups
from edl_labs.course.sandbox.limits import DEFAULTS
from edl_labs.errors import UsageError

LAB = "lab01_mine"
CLASS = ("ann", "bob", "cleo", "dora")


def notebook(*prose: str) -> bytes:
    cells = [{"cell_type": "markdown", "source": text, "metadata": {}} for text in prose]
    return json.dumps({"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}).encode()


@pytest.fixture
def course(tmp_path: Path) -> CourseFolder:
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    (tmp_path / "course.toml").write_text("[course]\ngroups_from_notebooks = true\n")
    return CourseFolder(tmp_path)


def taken(course: CourseFolder, **notebooks: bytes) -> dict[str, tuple[str, ...]]:
    take = take_named_groups(course, LAB, notebooks, roster=None)
    return {who: read_groups(course.root, LAB).mates(who) for who in CLASS} | {"told": tuple(sorted(take))}


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Group: ann, bob", ("ann", "bob")),
        ("# Lab 1\n\n**Group:** `ann`; bob.", ("ann", "bob")),
        ("* _group_ : ann bob ann", ("ann", "bob")),
        ("Our group: ann", ()),
        ("a group of four: ann", ()),
        ("Group:", ()),
    ],
)
def test_a_line_of_prose_names_the_group(text: str, ids: tuple[str, ...]):
    assert ids == named_in(notebook("intro", text), limits=DEFAULTS)


def test_code_names_nobody_and_what_cannot_be_read_neither():
    code = notebook("x").replace(b"markdown", b"code").replace(b'"x"', b'"Group: ann"')

    assert () == named_in(code, limits=DEFAULTS) == named_in(b"{", limits=DEFAULTS)


def test_who_is_named_and_handed_in_nothing_gets_the_groups_notebook(course: CourseFolder):
    found = taken(course, ann=notebook("Group: bob"), cleo=notebook("mine"))

    assert ("ann", "bob") == found["bob"] == found["ann"]
    assert (("cleo",), ("dora",), ()) == (found["cleo"], found["dora"], found["told"])


def test_all_who_hand_in_name_the_same_group(course: CourseFolder):
    found = taken(course, ann=notebook("Group: bob, cleo"), bob=notebook("Group: ann, bob, cleo"))

    assert ("ann", "bob", "cleo") == found["cleo"]


@pytest.mark.parametrize(
    ("other", "told"),
    [("my own work", ("ann",)), ("Group: dora", ("ann",)), ("Group: cleo, dora", ("ann",))],
)
def test_whose_own_notebook_says_something_else_is_in_no_group(course: CourseFolder, other: str, told: tuple[str, ...]):
    found = taken(course, ann=notebook("Group: bob"), bob=notebook(other))

    assert ("ann",) == found["ann"]
    assert "ann" not in found["bob"]
    assert set(told) <= set(found["told"])


def test_two_who_name_one_get_nobody(course: CourseFolder):
    found = taken(course, ann=notebook("Group: cleo"), bob=notebook("Group: cleo"))

    assert (("ann",), ("bob",), ("cleo",), ("ann", "bob")) == tuple(found[k] for k in ("ann", "bob", "cleo", "told"))


def test_an_id_that_nobody_has_is_told():
    found = agreed({"ann": ("bbo",)}, lambda name: name if name in CLASS else None)

    assert () == found.groups
    assert "bbo" in found.remarks["ann"]


def test_groups_stay_until_one_of_them_hands_in_something_else(course: CourseFolder):
    taken(course, ann=notebook("Group: bob"))
    kept = taken(course, cleo=notebook("mine"))
    left = taken(course, bob=notebook("now mine"))

    assert ("ann", "bob") == kept["bob"]
    assert (("ann",), ("bob",)) == (left["ann"], left["bob"])
    assert "group,id,assignment" in (course.root / NAMED_FILE).read_text()


def test_the_table_of_the_course_comes_first(course: CourseFolder):
    (course.root / "course.toml").write_text('[course]\ngroups = "groups.csv"\ngroups_from_notebooks = true\n')
    (course.root / "groups.csv").write_text("group,id\nred,bob\nred,dora\n")
    found = taken(course, ann=notebook("Group: bob"))

    assert (("ann",), ("bob", "dora"), ("ann",)) == (found["ann"], found["bob"], found["told"])


def test_nothing_is_read_unless_the_course_says_so(tmp_path: Path):
    (tmp_path / "nbgrader_config.py").write_text("c = get_config()\n")
    course = CourseFolder(tmp_path)

    assert {} == take_named_groups(course, LAB, {"ann": notebook("Group: bob")}, roster=None)
    assert not (tmp_path / NAMED_FILE).exists()
    (tmp_path / "course.toml").write_text('[course]\ngroups_from_notebooks = "yes"\n')
    with pytest.raises(UsageError, match="groups_from_notebooks"):
        from_notebooks(tmp_path)
