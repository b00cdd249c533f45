"""What nbgrader's own pages and releases get from edl_labs."""

from __future__ import annotations

import nbformat
from nbconvert import HTMLExporter
from nbgrader.converters import GenerateAssignment

from edl_labs.course.marks.nbgrader_plugins import TableBorders
from edl_labs.course.own_course import GENERATE_STEPS

TABLE = "| format | bits |\n|---|---|\n| fp64 | 64 |\n"


def test_tables_of_prose_have_borders_in_nbgraders_pages() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(TABLE)])
    page, _ = HTMLExporter(template_name="classic", preprocessors=[TableBorders]).from_notebook_node(notebook)

    assert 1 == page.count(".rendered_html td { border: 1px solid")
    assert 'rendered_html">\n<table>' in page
    assert [TABLE] == [cell.source for cell in notebook.cells]


def test_releases_go_through_nbgraders_own_steps() -> None:
    assert [step.__name__ for step in GenerateAssignment().preprocessors] == list(GENERATE_STEPS)
