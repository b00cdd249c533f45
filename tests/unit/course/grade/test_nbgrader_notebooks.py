"""What a student's notebook brings of its own into a page of formgrader, where nbgrader's rules graded it."""

from __future__ import annotations

from dataclasses import replace

from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from edl_labs.course.grade.nbgrader_assignments import remove_scripts
from edl_labs.course.sandbox.limits import DEFAULTS


def test_of_metadata_only_nbgraders_own_and_the_kernel_stay():
    graded = {"grade": True, "grade_id": "squares"}
    cells = [new_code_cell(metadata={"nbgrader": graded, "tags": ["x modal-backdrop"]}), new_markdown_cell("Because.")]
    cells[1].metadata.raw_mimetype = "text/html"
    kernel = {"name": "python3", "display_name": "Python 3"}
    named = {
        "kernelspec": kernel,
        "title": "<b>",
        "widgets": {},
        "language_info": {"name": "python", "pygments_lexer": "<b>"},
    }
    notebook = new_notebook(cells=cells, metadata=named)
    remove_scripts(notebook, limits=DEFAULTS)

    assert {"kernelspec": kernel} == notebook.metadata
    assert [{"nbgrader": graded}, {}] == [cell.metadata for cell in notebook.cells]


def test_outputs_of_all_cells_together_are_cut_to_what_is_shown():
    limits = replace(DEFAULTS, shown_bytes=10_000)
    cells = [new_code_cell(outputs=[new_output("stream", text="x" * 4_000)]) for _ in range(20)]
    notebook = new_notebook(cells=cells)
    remove_scripts(notebook, limits=limits)

    kept = ["xxx" in cell.outputs[0].text for cell in notebook.cells]
    assert [True] * 2 + [False] * 18 == kept
