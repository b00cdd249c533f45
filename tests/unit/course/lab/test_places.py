"""An exercise lives in five places; each difference between them is refused, with the file and line to mend."""

from __future__ import annotations

import json

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.build import build
from edl_labs.course.lab.prove import prove
from edl_labs.course.lab.read import read_lab, read_labs
from edl_labs.errors import EdlError, NothingToDo, SourceError, UsageError
from tests.unit.course.lab import kit

PY, TOML = f"solutions/{kit.LAB}/{kit.LAB}.py", f"solutions/{kit.LAB}/lab.toml"
MODULE = f"edl_labs/exercises/{kit.LAB}.py"
CODE_TABLE = kit.TOML[kit.TOML.index("[[exercise]]") : kit.TOML.rindex("[[exercise]]")]


def refusal(course: Course) -> str:
    """What the build says."""
    with pytest.raises(SourceError) as caught:
        build(course)
    return caught.value.what


def test_points_that_no_exercise_has_are_refused(course: Course) -> None:
    kit.replace(kit.toml(course), 'name = "doubled_time"', 'name = "doubled_tim"')

    assert f"{TOML}:13: lab.toml lists doubled_tim, but no cell has this name" == refusal(course)


def test_an_exercise_without_points_is_refused(course: Course) -> None:
    kit.replace(kit.toml(course), CODE_TABLE, "")

    assert f"{PY}:20: doubled_time is missing in lab.toml" == refusal(course)


def test_an_explain_cell_without_points_is_refused(course: Course) -> None:
    kit.toml(course).write_text(kit.TOML[: kit.TOML.rindex("[[exercise]]")])

    assert f"{PY}:34: why_twice is missing in lab.toml" == refusal(course)


def test_a_kind_that_the_cell_has_not_is_refused(course: Course) -> None:
    kit.replace(
        kit.toml(course), "points = 2", 'kind = "explain"\npoints = 2\nrubric = ["2 points: x"]\nmodel_answer = "y"'
    )

    assert f"{TOML}:13: doubled_time is prose here, but code in {PY}" == refusal(course)


def test_an_exercise_that_no_module_registers_is_refused(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", '@exercise("doubled_time")', '@exercise("doubled")')

    assert f"{PY}:20: doubled_time is not registered in {MODULE}" == refusal(course)


def test_a_registered_exercise_without_a_cell_is_refused(course: Course) -> None:
    module = course.exercises / f"{kit.LAB}.py"
    module.write_text(kit.EXERCISES + '\n\n@exercise("halved_time")\nclass Halved(DoubledTime):\n    pass\n')

    assert f"{MODULE}:28: halved_time has no solve cell in {PY}" == refusal(course)


def test_a_draw_of_no_exercise_is_refused(course: Course) -> None:
    drawing = kit.with_judge(course)
    kit.replace(drawing, '@case_source("doubled_time")', '@case_source("doubled_tim")')

    said = f"cases of doubled_tim are drawn here, but doubled_tim is not an exercise of {kit.LAB}"
    assert f"{course.shown(drawing)}:4: {said}" == refusal(course)


def test_an_exercise_that_nothing_draws_is_refused(course: Course) -> None:
    kit.with_judge(course).write_text("")

    with pytest.raises(EdlError, match="the secret cases of doubled_time are not in this install"):
        build(course)


def test_the_judges_part_draws_what_the_method_drew(course: Course) -> None:
    build(course)
    before = (course.goldens / f"{kit.LAB}.json").read_bytes()

    kit.with_judge(course)

    assert build(course, check=True).ok
    assert before == (course.goldens / f"{kit.LAB}.json").read_bytes()


def test_an_exercise_registered_twice_is_refused(course: Course) -> None:
    module = course.exercises / f"{kit.LAB}.py"
    module.write_text(kit.EXERCISES + '\n\n@exercise("doubled_time")\nclass Again(DoubledTime):\n    pass\n')

    assert f"{MODULE}:28: doubled_time is registered twice" == refusal(course)


def test_a_folder_is_read_module_by_module(course: Course) -> None:
    folder = kit.as_folder(course)
    text = 'from edl_labs.checks import Exercise, exercise\n\n\n@exercise("halved_time")\nclass Halved(Exercise): ...\n'
    (folder / "halving.py").write_text(text)

    assert f"edl_labs/exercises/{kit.LAB}/halving.py:4: halved_time has no solve cell in {PY}" == refusal(course)


def test_an_exercise_that_no_module_of_a_folder_registers_is_refused(course: Course) -> None:
    kit.replace(kit.as_folder(course) / "doubling_time.py", '@exercise("doubled_time")', '@exercise("doubled")')

    assert f"{PY}:20: doubled_time is not registered in edl_labs/exercises/{kit.LAB}/__init__.py" == refusal(course)


def test_a_lab_without_a_module_is_refused(course: Course) -> None:
    (course.exercises / f"{kit.LAB}.py").unlink()

    assert f"{MODULE}:1: the lab has no exercise module" == refusal(course)


def test_a_module_without_a_lab_is_refused(course: Course) -> None:
    (course.exercises / "lab99_gone.py").write_text("")

    assert "edl_labs/exercises/lab99_gone.py:1: there is no solutions/lab99_gone" == refusal(course)


def test_a_folder_without_a_lab_is_refused(course: Course) -> None:
    (course.exercises / "lab99_gone").mkdir()
    (course.exercises / "lab99_gone" / "__init__.py").write_text("")

    assert "edl_labs/exercises/lab99_gone/__init__.py:1: there is no solutions/lab99_gone" == refusal(course)


def test_a_module_that_is_not_python_is_refused(course: Course) -> None:
    kit.replace(course.exercises / f"{kit.LAB}.py", "class DoubledTime(Exercise):", "class DoubledTime(Exercise)")

    assert f"{MODULE}:7: this is not valid Python: expected ':'" == refusal(course)


@pytest.mark.parametrize(("kept", "said"), [(1, "1 known mistake"), (0, "0 known mistakes")])
def test_fewer_than_two_mistakes_are_refused(course: Course, kept: int, said: str) -> None:
    kit.mistakes(course).write_text("".join(kit.MISTAKES.partition("\n\n\n")[:kept]))

    assert f"{PY}:20: doubled_time has {said}" == refusal(course)


def test_an_exercise_without_a_file_of_mistakes_is_refused(course: Course) -> None:
    kit.mistakes(course).unlink()

    assert f"{PY}:20: doubled_time has 0 known mistakes" == refusal(course)


@pytest.mark.parametrize("name", ["halved_time", "why_twice"])
def test_mistakes_of_what_is_no_exercise_in_code_are_refused(course: Course, name: str) -> None:
    kit.mistakes(course, name).write_text(kit.MISTAKES)

    said = f"this lab has no exercise {name} that is answered in code"
    assert f"solutions/{kit.LAB}/mistakes/{name}.py:1: {said}" == refusal(course)


def test_a_mistake_that_replaces_nothing_of_its_exercise_is_refused(course: Course) -> None:
    kit.replace(kit.mistakes(course), "def doubled_time", "def trebled_time")

    said = "same does not redefine any name that the solution of doubled_time defines"
    assert f"solutions/{kit.LAB}/mistakes/doubled_time.py:1: {said}" == refusal(course)


@pytest.mark.parametrize("name", ["notes.txt", "mistakes/notes.md", "mistakes/deep/x.py", "other.py", "data.csv"])
def test_a_stray_file_is_refused(course: Course, name: str) -> None:
    path = kit.source(course).parent / name
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")

    assert f"solutions/{kit.LAB}/{name}:1: this file does not belong to the lab" == refusal(course)


@pytest.mark.parametrize("name", [f"{kit.LAB}.py", "lab.toml"])
def test_a_missing_file_is_refused(course: Course, name: str) -> None:
    (kit.source(course).parent / name).unlink()

    assert f"solutions/{kit.LAB}/{name}:1: this file of the lab is missing" == refusal(course)


def test_a_folder_that_is_not_named_like_a_lab_is_refused(course: Course) -> None:
    (course.solutions / "Lab1").mkdir()

    assert "solutions/Lab1:1: 'Lab1' is not a lab's name" == refusal(course)


def test_two_labs_with_an_exercise_of_one_name_are_refused(course: Course) -> None:
    import shutil

    other = "lab81_again"
    shutil.copytree(course.solutions / kit.LAB, course.solutions / other)
    (course.solutions / other / f"{kit.LAB}.py").rename(course.solutions / other / f"{other}.py")
    shutil.copy(course.exercises / f"{kit.LAB}.py", course.exercises / f"{other}.py")

    assert f"solutions/{other}/lab.toml:13: {kit.LAB} also has an exercise called doubled_time" == refusal(course)


def test_goldens_of_other_exercises_are_refused_where_a_lab_is_proved(built: Course) -> None:
    path = built.goldens / f"{kit.LAB}.json"
    data = json.loads(path.read_text())
    data["exercises"][0]["name"] = "halved_time"
    path.write_text(json.dumps(data))

    with pytest.raises(SourceError) as caught:
        prove(built, kit.LAB)

    assert (
        f"edl_labs/exercises/goldens/{kit.LAB}.json:1: the goldens are for halved_time, why_twice" == caught.value.what
    )
    assert "run edl-labs build" == caught.value.next


def test_a_lab_that_was_never_built_is_not_proved(course: Course) -> None:
    with pytest.raises(SourceError) as caught:
        prove(course, kit.LAB)

    assert f"edl_labs/exercises/goldens/{kit.LAB}.json:1: the lab has no goldens" == caught.value.what


def test_a_lab_that_is_not_there_is_told_with_the_nearest_name(course: Course) -> None:
    with pytest.raises(UsageError, match="there is no lab called 'lab80_doublin'") as caught:
        read_lab(course, "lab80_doublin")

    assert f"did you mean {kit.LAB}?" == caught.value.next


def test_a_course_without_labs_has_nothing_to_do(tmp_path) -> None:
    (tmp_path / "solutions").mkdir()

    with pytest.raises(NothingToDo):
        read_labs(Course(tmp_path))


def test_a_course_is_found_from_a_folder_inside_it(course: Course, tmp_path) -> None:
    assert course == Course.find(course.solutions / kit.LAB)
    with pytest.raises(UsageError, match="this is not a course"):
        Course.find(tmp_path)
