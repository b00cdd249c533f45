"""Every refusal of lab.toml, with the line of the key."""

from __future__ import annotations

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.lab_toml import read_lab_toml
from edl_labs.course.lab.read import read_lab
from edl_labs.course.toml_file import key_lines
from edl_labs.errors import SourceError
from tests.unit.course.lab import kit

FILE = f"solutions/{kit.LAB}/lab.toml"
HINTS = 'hints = [\n  "How long do two runs take?",\n  "Add the duration to itself.",\n]'
RUBRIC = 'rubric = ["1 point: says that nothing is kept", "2 points: names the allocator as what could be kept"]'

REFUSALS = {
    "no toml": ("minutes = 30", "minutes =", 2, "this is not valid TOML: Invalid value (at line 2, column 10)"),
    "an unknown key": ("minutes = 30", "minutes = 30\nminuts = 3", 3, "unknown key minuts"),
    "an unknown key of an exercise": ("points = 2", "points = 2\npoint = 2", 16, "unknown key point"),
    "a rubric for code": ("points = 2", 'points = 2\nrubric = ["2 points: x"]', 16, "unknown key rubric"),
    "no title": ('title = "Doubling"\n', "", 1, "title is missing or empty"),
    "an empty title": ('"Doubling"', '" "', 1, "title is missing or empty"),
    "no minutes": ("minutes = 30\n", "", 1, "minutes must be a whole number above 0"),
    "minutes as text": ("minutes = 30", 'minutes = "30"', 2, "minutes must be a whole number above 0"),
    "true minutes": ("minutes = 30", "minutes = true", 2, "minutes must be a whole number above 0"),
    "an unknown device": ('"any"', '"tpu"', 3, "device is 'tpu'"),
    "data that is no file": ('"any"', '"any"\ndata = ["../secret"]', 4, "'../secret' is not a data file of the lab"),
    "a source as data": (
        '"any"',
        f'"any"\ndata = ["{kit.LAB}.py"]',
        4,
        f"'{kit.LAB}.py' is not a data file of the lab",
    ),
    "data that is not there": ('"any"', '"any"\ndata = ["x.csv"]', 4, "there is no x.csv"),
    "graded with neither": ('"any"', '"any"\ngraded_with = "quick"', 4, "graded_with is 'quick'"),
    "no list of texts": (
        '"any"',
        '"any"\ngives_away = { pan = "three" }',
        4,
        "`gives_away` must be a table that has a list of strings for each box",
    ),
    "a box that is not there": (
        '"any"',
        '"any"\ngives_away = { pan = ["three"] }',
        4,
        "`gives_away` lists pan, but there is no box with this name",
    ),
    "no smoke run": ("[parameters.smoke]", "[parameters.quick]", 5, "unknown table parameters.quick"),
    "no full run": (
        '[parameters.full]\nsize = 4\nlabel = "full"\n',
        "",
        1,
        "parameters.smoke or parameters.full is missing",
    ),
    "no exercise": (kit.TOML[kit.TOML.index("[[exercise]]") :], "", 1, "the lab has no exercise"),
    "no name": ('name = "doubled_time"\n', "", 13, "name is missing or empty"),
    "a bad name": ('"doubled_time"', '"Doubled"', 14, "'Doubled' is not an exercise's name"),
    "an exercise twice": ('"why_twice"', '"doubled_time"', 22, "there is a second exercise named doubled_time"),
    "no points": ("points = 2\n", "", 13, "doubled_time: points must be a number above 0"),
    "zero points": ("points = 2", "points = 0", 15, "doubled_time: points must be a number above 0"),
    "negative points": ("points = 2", "points = -1", 15, "doubled_time: points must be a number above 0"),
    "points that are nan": ("points = 2", "points = nan", 15, "doubled_time: points must be a number above 0"),
    "true points": ("points = 2", "points = true", 15, "doubled_time: points must be a number above 0"),
    "points as text": ("points = 2", 'points = "2"', 15, "doubled_time: points must be a number above 0"),
    "minutes of an exercise as text": (
        "points = 2",
        'points = 2\nminutes = "20"',
        16,
        "doubled_time: minutes must be a number that is not negative",
    ),
    "minutes of some exercises": (
        "points = 2",
        "points = 2\nminutes = 30",
        2,
        "the exercises' minutes do not add up to the lab's",
    ),
    "a pause that is no truth value": (
        "points = 2",
        "points = 2\npause_after = 1",
        16,
        "doubled_time: a sitting cannot end here",
    ),
    "a pause after practice": (
        "points = 2",
        "optional = true\npause_after = true",
        16,
        "doubled_time: a sitting cannot end here",
    ),
    "one hint": ('  "Add the duration to itself.",\n', "", 16, "doubled_time has 1 hint"),
    "no hints": (HINTS, "", 13, "doubled_time has 0 hints"),
    "the same hint twice": (
        '"Add the duration to itself."',
        '"how long  do two runs take?"',
        16,
        "doubled_time has the same hint twice",
    ),
    "an empty hint": ('"Add the duration to itself."', '" "', 16, "hints must be a list of strings"),
    "hints as text": (HINTS, 'hints = "Add."', 16, "hints must be a list of strings"),
    "an unknown kind": ('kind = "explain"', 'kind = "essay"', 23, "kind is 'essay'"),
    "no rubric": (f"{RUBRIC}\n", "", 21, "why_twice has no rubric"),
    "a rubric without points": (
        "1 point: says",
        "says",
        26,
        "why_twice: 'says that nothing is kept' does not state its points",
    ),
    "a rubric that gives too much": (
        "2 points: names",
        "3 points: names",
        26,
        "why_twice: the rubric has 4 points, but the exercise has 3",
    ),
    "no model answer": (kit.TOML[kit.TOML.index("model_answer") :], "", 21, "model_answer is missing or empty"),
    "an empty model answer": (
        kit.TOML[kit.TOML.index("model_answer") :],
        'model_answer = ""',
        27,
        "model_answer is missing or empty",
    ),
    "a parameter that no cell has": (
        "[parameters.smoke]",
        "[parameters.smoke]\nwidth = 3",
        6,
        "the parameter width is not assigned in the parameters cell",
    ),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_lab_toml_is_refused_with_file_and_line(course: Course, case: str) -> None:
    old, new, line, what = REFUSALS[case]
    kit.replace(kit.toml(course), old, new)

    with pytest.raises(SourceError) as caught:
        read_lab(course, kit.LAB)

    assert f"{FILE}:{line}: {what}" == caught.value.what


def test_a_parameter_without_a_value_is_refused_in_the_cell(course: Course) -> None:
    kit.replace(kit.toml(course), "[parameters.full]\nsize = 4\n", "[parameters.full]\n")

    with pytest.raises(SourceError) as caught:
        read_lab(course, kit.LAB)

    assert (
        f"solutions/{kit.LAB}/{kit.LAB}.py:13: the parameter size has no value in [parameters.full]"
        == caught.value.what
    )


def test_a_valid_lab_toml_gives_its_facts() -> None:
    toml = read_lab_toml(kit.TOML, file="lab.toml")

    assert ("Doubling", 30, "any") == (toml.title, toml.minutes, toml.device)
    assert {"smoke": {"size": 1, "label": "smoke"}, "full": {"size": 4, "label": "full"}} == toml.parameters
    assert ["code", "explain"] == [one.kind for one in toml.exercises]
    assert "Nothing is kept between the runs" in toml.exercises[1].model_answer


def test_lines_are_found_behind_texts_and_arrays_of_many_lines() -> None:
    text = 'a = """\n[b]\nc = 1\n"""\n[b] # table\n"c d" = [\n  "x=1 [", # it\'s\n  "y",\n]\ne.f = 1\n'
    text += "[[g]]\nh = '['\n[[g]]\nh = 2\n"

    lines = key_lines(text)

    assert {
        (): 1,
        ("a",): 1,
        ("b",): 5,
        ("b", "c d"): 6,
        ("b", "e", "f"): 10,
        ("g", 0): 11,
        ("g", 0, "h"): 12,
        ("g", 1): 13,
        ("g", 1, "h"): 14,
    } == lines
