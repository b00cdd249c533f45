"""`edit`: text to notebook and back, with no noise and no lost work."""

from __future__ import annotations

import difflib
import json
from pathlib import Path

import nbformat
import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.edit import as_notebook, as_text, edit, from_notebook, to_notebook
from edl_labs.course.lab.source import parse
from edl_labs.errors import EdlError, SourceError, UsageError
from tests.unit.course.lab import kit

REPOSITORY = Course(Path(__file__).resolve().parents[4])


def change(notebook: Path, *, cell: int, source: str) -> None:
    """Edit one cell as JupyterLab saves it: with tags, outputs and metadata of its own."""
    data = json.loads(notebook.read_text())
    edited = data["cells"][cell]
    edited["source"] = source.splitlines(keepends=True)
    edited["metadata"] |= {"tags": ["x"], "editable": True, "slideshow": {"slide_type": ""}}
    if edited["cell_type"] == "code":
        edited["execution_count"] = 7
        edited["outputs"] = [{"output_type": "stream", "name": "stdout", "text": ["4\n"]}]
    data["metadata"]["language_info"] = {"name": "python", "version": "3.11"}
    notebook.write_text(json.dumps(data))


def changed_lines(before: str, after: str) -> list[str]:
    """The lines that a diff shows as removed or added."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=0)
    return [line for line in lines if line[:1] in "+-" and line[:3] not in ("+++", "---")]


@pytest.mark.parametrize("name", REPOSITORY.lab_names())
def test_the_text_of_every_lab_survives_an_untouched_notebook_byte_for_byte(name: str) -> None:
    text = (REPOSITORY.solutions / name / f"{name}.py").read_text(encoding="utf-8")

    assert text == as_text(as_notebook(text, lab=name))


T = "# %% [markdown]\n# # T\n"
SPACING = {
    "no blank lines": T + '# %% setup\nx = 1\n# %% solve="a"\ndef a():\n    pass\n# %% check="a"\ncheck("a")\n',
    "two blank lines": T + "\n\n# %% setup\nx = 1\n\n\n# %%\ndef a():\n    pass\n\n\n# %%\ny = 2\n",
    "prose upon prose": T + '#\n# a\n\n# %% [markdown] explain="b"\n# b\n# %% [markdown]\n# c\n',
    "comments and strings": T + "\n# %%\n# only a comment\n\n# %% given\ns = '''\n# not %% this\n'''\n# %time\n",
    "odd prose": T + "#\n# `# %%`\n#\n#     code\n#\n# | a | b |\n# |---|---|\n#\n# trailing  \n# end\n",
    "the same cell twice": T + "\n# %%\nx = 1\n\n\n# %%\nx = 1\n",
}
OTHER_SPACING = {
    "three blank lines": T + "\n\n\n# %%\nx = 1\n\n\n\n# %%\ny = 2\n",
    "blank lines before and after all": "\n\n" + T + "\n# %%\n\n\nx = 1\n\n\n\n",
    "no newline at the end": T + "# %%\nx = 1",
    "white space in blank lines": T + "  \n# %%\nx = 1  \n    \n",
}


@pytest.mark.parametrize("case", SPACING)
def test_spacing_and_odd_cells_survive_too(case: str) -> None:
    assert SPACING[case] == as_text(as_notebook(SPACING[case], lab="lab80_x"))


@pytest.mark.parametrize("case", OTHER_SPACING)
def test_spacing_that_no_formatter_leaves_is_made_usual_and_nothing_else(case: str) -> None:
    text = as_text(as_notebook(OTHER_SPACING[case], lab="lab80_x"))

    before, after = parse(OTHER_SPACING[case], file="x"), parse(text, file="x")
    assert [(c.kind, c.role, c.source.rstrip()) for c in before] == [(c.kind, c.role, c.source) for c in after]
    assert text == as_text(as_notebook(text, lab="lab80_x"))


def test_spacing_stays_while_the_notebook_is_untouched(course: Course) -> None:
    kit.replace(kit.source(course), "\n\n# %%\nprint(size)", "\n\n\n\n\n# %%\nprint(size)")
    before = kit.source(course).read_text()

    assert not from_notebook(course, kit.LAB, to_notebook(course, kit.LAB))
    assert before == kit.source(course).read_text()


def test_roles_are_still_there_in_the_notebook(course: Course) -> None:
    notebook = nbformat.read(to_notebook(course, kit.LAB), as_version=4)

    nbformat.validate(notebook)
    assert [
        *({}, {"title": "setup"}, {"title": "parameters"}, {"title": "given"}),
        *({"solve": "doubled_time"}, {"check": "doubled_time"}, {}, {"explain": "why_twice"}),
    ] == [{k: v for k, v in c.metadata.items() if k != "lines_to_next_cell"} for c in notebook.cells]


def test_an_untouched_notebook_changes_nothing(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)

    assert not from_notebook(course, kit.LAB, notebook)
    assert kit.SOURCE == kit.source(course).read_text()


def test_one_edited_cell_changes_its_lines_alone(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=6, source="print(label)\nprint(size)")

    assert from_notebook(course, kit.LAB, notebook)
    assert ["+print(label)"] == changed_lines(kit.SOURCE, kit.source(course).read_text())


def test_edited_prose_and_solutions_change_their_lines_alone(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=0, source="# Doubling\n\nAbout 30 minutes.\n\nMore.")
    change(notebook, cell=4, source=parse(kit.SOURCE, file="x")[4].source.replace("4 * half", "2.0 * 2 * half"))

    from_notebook(course, kit.LAB, notebook)

    assert [
        *("+#", "+# More."),
        *("-    twice_as_long_s = 4 * half_of(duration_s)", "+    twice_as_long_s = 2.0 * 2 * half_of(duration_s)"),
    ] == changed_lines(kit.SOURCE, kit.source(course).read_text())


def test_a_cell_made_in_jupyterlab_is_a_plain_cell(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    data = json.loads(notebook.read_text())
    new = {"cell_type": "code", "id": "abc", "metadata": {}, "source": ["x = 3"], "outputs": [], "execution_count": 1}
    data["cells"].insert(7, new)
    notebook.write_text(json.dumps(data))

    from_notebook(course, kit.LAB, notebook)

    assert {"+# %%", "+x = 3", "+"} == set(changed_lines(kit.SOURCE, kit.source(course).read_text()))


def test_saving_twice_in_one_session_is_no_conflict(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=6, source="print(label)")
    from_notebook(course, kit.LAB, notebook)
    change(notebook, cell=6, source="print(size, label)")

    assert from_notebook(course, kit.LAB, notebook)
    assert "print(size, label)" in kit.source(course).read_text()


def test_a_text_that_changed_meanwhile_is_not_overwritten(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=6, source="print(label)")
    kit.replace(kit.source(course), "size = 4", "size = 5")
    before = kit.source(course).read_text()

    with pytest.raises(EdlError, match="has changed since the notebook was created"):
        from_notebook(course, kit.LAB, notebook)
    assert before == kit.source(course).read_text()
    assert "print(label)" in notebook.read_text()


def test_a_notebook_that_is_no_lab_any_more_is_refused_and_shown(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=5, source='check("doubled_tim")')

    with pytest.raises(SourceError) as caught:
        from_notebook(course, kit.LAB, notebook)

    rejected = course.root / caught.value.file
    assert kit.SOURCE == kit.source(course).read_text()
    assert 'check("doubled_tim")' == rejected.read_text().split("\n")[caught.value.line - 1]


def test_unwritten_work_of_an_earlier_edit_is_not_overwritten(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=5, source='check("doubled_tim")')

    with pytest.raises(EdlError, match="contains work that is not in"):
        to_notebook(course, kit.LAB)
    assert "doubled_tim" in notebook.read_text()


def test_a_notebook_whose_work_was_written_back_is_made_anew(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=6, source="print(label)")
    from_notebook(course, kit.LAB, notebook)
    kit.replace(kit.source(course), "size = 4", "size = 5")

    assert "size = 5" in to_notebook(course, kit.LAB).read_text()


def test_an_untouched_notebook_does_not_undo_what_the_text_got_meanwhile(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    kit.replace(kit.source(course), "size = 4", "size = 5")
    before = kit.source(course).read_text()

    assert not from_notebook(course, kit.LAB, notebook)
    assert before == kit.source(course).read_text()


def test_two_notebooks_of_one_text_do_not_undo_each_other(course: Course) -> None:
    one = to_notebook(course, kit.LAB, course.root / "build" / "one.ipynb")
    other = to_notebook(course, kit.LAB, course.root / "build" / "other.ipynb")
    change(one, cell=6, source="print(label)")
    change(other, cell=2, source='size = 5\nlabel = "full"')
    from_notebook(course, kit.LAB, one)

    with pytest.raises(EdlError, match="has changed since the notebook was created"):
        from_notebook(course, kit.LAB, other)
    assert "print(label)" in kit.source(course).read_text()


def test_a_notebook_that_was_written_back_does_not_undo_what_the_text_got_since(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=6, source="print(label)")
    from_notebook(course, kit.LAB, notebook)
    kit.replace(kit.source(course), "size = 4", "size = 5")
    before = kit.source(course).read_text()

    assert not from_notebook(course, kit.LAB, notebook)
    assert before == kit.source(course).read_text()


def test_taking_an_edit_back_is_an_edit(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    change(notebook, cell=6, source="print(label)")
    from_notebook(course, kit.LAB, notebook)
    change(notebook, cell=6, source="print(size)")

    assert from_notebook(course, kit.LAB, notebook)
    assert kit.SOURCE == kit.source(course).read_text()


def test_an_empty_cell_that_jupyterlab_leaves_is_dropped(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    data = json.loads(notebook.read_text())
    data["cells"].append({"cell_type": "code", "id": "e", "metadata": {}, "source": [], "outputs": []})
    notebook.write_text(json.dumps(data))

    assert not from_notebook(course, kit.LAB, notebook)


def test_moved_cells_keep_their_lines(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    data = json.loads(notebook.read_text())
    data["cells"].append(data["cells"].pop(6))
    notebook.write_text(json.dumps(data))

    from_notebook(course, kit.LAB, notebook)

    text = kit.source(course).read_text()
    assert text.endswith("# %%\nprint(size)\n")
    assert sorted(kit.SOURCE.split("\n")) == sorted(text.split("\n"))


@pytest.mark.parametrize("broken", ["", "{}", "[]", '{"cells": [3]}', '{"cells": []}'])
def test_a_notebook_that_cannot_be_read_changes_nothing(course: Course, broken: str) -> None:
    notebook = to_notebook(course, kit.LAB)
    notebook.write_text(broken)

    with pytest.raises(EdlError, match="the notebook"):
        from_notebook(course, kit.LAB, notebook)
    assert kit.SOURCE == kit.source(course).read_text()


def test_a_raw_cell_is_refused(course: Course) -> None:
    notebook = to_notebook(course, kit.LAB)
    notebook.write_text(notebook.read_text().replace('"cell_type": "code"', '"cell_type": "raw"', 1))

    with pytest.raises(EdlError, match="a lab cannot have raw cells"):
        from_notebook(course, kit.LAB, notebook)


def test_notebook_and_lab_that_are_not_there_are_told(course: Course) -> None:
    with pytest.raises(UsageError, match="there is no lab called 'lab99_gone'"):
        to_notebook(course, "lab99_gone")
    with pytest.raises(UsageError, match=r"there is no build/gone\.ipynb"):
        from_notebook(course, kit.LAB, course.root / "build" / "gone.ipynb")


class Editor:
    """An editor that runs one step at each look, then ends."""

    def __init__(self, steps: list) -> None:
        self.steps, self.notebook, self.ended = steps, None, False

    def launch(self, notebook: Path) -> Editor:
        self.notebook = notebook
        return self

    def poll(self) -> int | None:
        if not self.steps:
            return 0
        self.steps.pop(0)(self.notebook)
        return None

    def terminate(self) -> None:
        self.ended = True


def test_each_save_is_written_back_while_the_editor_runs(course: Course) -> None:
    seen: list[bool] = []
    steps = [
        lambda notebook: change(notebook, cell=6, source="print(label)"),
        lambda notebook: seen.append("print(label)" in kit.source(course).read_text()),
        lambda notebook: change(notebook, cell=6, source="print(size, label)"),
    ]

    report = edit(course, kit.LAB, launch=Editor(steps).launch, sleep=lambda seconds: None)

    assert [True] == seen
    assert report.changed
    assert "print(size, label)" in kit.source(course).read_text()


def test_a_save_that_is_no_lab_is_said_and_mended_by_the_next(course: Course) -> None:
    said: list[str] = []
    steps = [
        lambda notebook: change(notebook, cell=5, source="check()"),
        lambda notebook: change(notebook, cell=5, source='check("doubled_time")'),
        lambda notebook: change(notebook, cell=6, source="print(label)"),
    ]

    edit(course, kit.LAB, launch=Editor(steps).launch, said=said.append, sleep=lambda seconds: None)

    assert said[0].startswith("not written back yet: build/edit/")
    assert ["-print(size)", "+print(label)"] == changed_lines(kit.SOURCE, kit.source(course).read_text())


def test_stopping_with_control_c_writes_back_and_ends_the_editor(course: Course) -> None:
    def stop(notebook: Path) -> None:
        change(notebook, cell=6, source="print(label)")
        raise KeyboardInterrupt

    editor = Editor([stop])

    report = edit(course, kit.LAB, launch=editor.launch, sleep=lambda seconds: None)

    assert (True, True) == (editor.ended, report.changed)
