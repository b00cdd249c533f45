"""A lab as a notebook: what nbgrader, papermill and Jupyter need, and ids that stay."""

from __future__ import annotations

import hashlib
import json

import nbformat
import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_lab
from edl_labs.course.lab.source_notebook import NBGRADER_SCHEMA, dumps, locked_digests, release, source_notebook
from edl_labs.errors import EdlError
from tests.unit.course.lab import kit


@pytest.fixture
def notebook(course: Course) -> dict:
    """The small lab's source notebook."""
    return source_notebook(read_lab(course, kit.LAB))


def cell(notebook: dict, cell_id: str) -> dict:
    """The cell with that id."""
    return next(c for c in notebook["cells"] if c["id"] == cell_id)


def test_the_notebook_is_valid_and_takes_nbgraders_current_schema(notebook: dict) -> None:
    from nbgrader.nbgraderformat import MetadataValidator

    read = nbformat.reads(dumps(notebook), as_version=4)

    nbformat.validate(read)
    MetadataValidator().validate_nb(read)
    assert NBGRADER_SCHEMA == MetadataValidator.schema_version


def test_cell_ids_come_from_roles(notebook: dict) -> None:
    ids = [c["id"] for c in notebook["cells"]]

    assert [
        *("title", "setup", "parameters", "c-parameters-1", "solve-doubled-time", "check-doubled-time"),
        *("c-check-doubled-time-1", "explain-why-twice", "answer-why-twice"),
    ] == ids


def test_a_new_cell_changes_no_id_beyond_the_next_role(course: Course, notebook: dict) -> None:
    before = [c["id"] for c in notebook["cells"]]
    kit.replace(kit.source(course), "# %% given", "# %%\nimport math\n\n# %% given")

    after = [c["id"] for c in source_notebook(read_lab(course, kit.LAB))["cells"]]

    assert {"c-parameters-2"} == set(after) - set(before)
    assert before == [one for one in after if one != "c-parameters-2"]


def test_the_parameters_of_a_quick_run_go_to_who_grades_and_into_no_release(course: Course, notebook: dict) -> None:
    released = release({kit.LAB: dumps(notebook)})[kit.LAB]

    assert {"lab": kit.LAB, "graded_with": {"size": 1, "label": "smoke"}} == notebook["metadata"]["edl_labs"]
    assert {"lab", "release"} == released["metadata"]["edl_labs"].keys()

    kit.replace(kit.toml(course), 'device = "any"', 'device = "any"\ngraded_with = "full"')

    assert {"lab": kit.LAB} == source_notebook(read_lab(course, kit.LAB))["metadata"]["edl_labs"]


def test_nbgraders_metadata_says_who_writes_what_for_how_many_points(notebook: dict) -> None:
    roles = {
        c["id"]: (m["grade_id"], m["grade"], m["solution"], m["locked"], m.get("points"))
        for c in notebook["cells"]
        if (m := c["metadata"].get("nbgrader"))
    }

    assert {
        "solve-doubled-time": ("doubled_time", False, True, False, None),
        "check-doubled-time": ("check_doubled_time", True, False, True, 2),
        "explain-why-twice": ("why_twice_question", False, False, True, None),
        "answer-why-twice": ("why_twice", True, True, False, 3),
    } == roles


def test_the_parameters_cell_is_tagged_for_papermill(notebook: dict) -> None:
    tagged = [c["id"] for c in notebook["cells"] if "parameters" in c["metadata"].get("tags", [])]

    assert ["parameters"] == tagged


def test_the_installer_is_folded_and_no_other_cell(notebook: dict) -> None:
    folded = [c["id"] for c in notebook["cells"] if c["metadata"].get("jupyter", {}).get("source_hidden")]

    assert ["setup"] == folded


def test_the_kernel_is_python_3(notebook: dict) -> None:
    assert ("python3", "python") == (
        notebook["metadata"]["kernelspec"]["name"],
        notebook["metadata"]["language_info"]["name"],
    )


def test_the_release_has_stubs_and_no_model_answer(notebook: dict) -> None:
    released = release({kit.LAB: dumps(notebook)})[kit.LAB]

    assert [
        "def doubled_time(duration_s):\n",
        '    """Twice the duration."""\n',
        "    # YOUR CODE HERE\n",
        "    raise NotImplementedError()",
    ] == cell(released, "solve-doubled-time")["source"]
    assert ["YOUR ANSWER HERE"] == cell(released, "answer-why-twice")["source"]
    assert [c["id"] for c in notebook["cells"]] == [c["id"] for c in released["cells"]]


def test_our_stub_is_nbgraders(course: Course, notebook: dict) -> None:
    kit.replace(
        kit.source(course),
        "    ### END SOLUTION\n",
        "    ### END SOLUTION\n\n\nclass More:\n    def a(self):\n        ### BEGIN SOLUTION\n        pass\n"
        "        ### END SOLUTION\n\n    def b(self):\n        ### BEGIN SOLUTION\n        pass\n"
        "        ### END SOLUTION\n",
    )
    lab = read_lab(course, kit.LAB)

    released = release({kit.LAB: dumps(source_notebook(lab))})[kit.LAB]

    assert lab.cell("solve", "doubled_time").stub == "".join(cell(released, "solve-doubled-time")["source"])


def test_the_release_is_stamped_with_a_digest_of_its_cells(course: Course, notebook: dict) -> None:
    first = release({kit.LAB: dumps(notebook)})[kit.LAB]
    kit.replace(kit.source(course), "print(size)", "print(label)")
    second = release({kit.LAB: dumps(source_notebook(read_lab(course, kit.LAB)))})[kit.LAB]

    assert first["metadata"]["edl_labs"]["release"] != second["metadata"]["edl_labs"]["release"]
    assert first["metadata"]["edl_labs"] == {"lab": kit.LAB, "release": first["metadata"]["edl_labs"]["release"]}


def test_locked_cells_are_known_by_the_digest_of_their_source(notebook: dict) -> None:
    released = release({kit.LAB: dumps(notebook)})[kit.LAB]

    locked = locked_digests(released)

    assert {"check-doubled-time", "explain-why-twice"} == set(locked)
    assert hashlib.sha256(b'check("doubled_time")').hexdigest() == locked["check-doubled-time"]


def test_what_nbgrader_refuses_is_said_in_a_sentence(notebook: dict) -> None:
    broken = json.loads(dumps(notebook))
    broken["cells"][4]["source"] = ["def f():\n", "    ### BEGIN SOLUTION\n", "    pass"]

    with pytest.raises(EdlError, match=f"nbgrader could not create the release of {kit.LAB}") as caught:
        release({kit.LAB: dumps(broken)})

    assert "end solution" in caught.value.why.lower()
