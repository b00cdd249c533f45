"""Whatever lies in a file, reading it gives a notebook or one clear sentence."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import nbformat
import pytest

from edl_labs.course.run import notebook_file
from edl_labs.course.run.notebook_file import check_name, code_cells, explain_name, parameter_names, read_notebook
from edl_labs.errors import UsageError
from tests.unit.course.run.running_kit import check, code, explain, notebook, raw, write

GOOD: dict[str, Any] = json.loads(nbformat.writes(notebook(code("1"), check("sums"))))


def changed(**changes: Any) -> dict[str, Any]:
    return {**GOOD, **changes}


@pytest.mark.parametrize(
    ("content", "what"),
    [
        ("", "nb.ipynb is empty"),
        ("  \n", "nb.ipynb is empty"),
        ('{"cells": [', "nb.ipynb is not a notebook, or is incomplete"),
        ("print(1)", "nb.ipynb is not a notebook, or is incomplete"),
        ("[" * 100_000, "nb.ipynb is not a notebook"),
        ("[]", "nb.ipynb is not a notebook"),
        ("null", "nb.ipynb is not a notebook"),
        ('{"a": 1}', "nb.ipynb is not a notebook"),
        (changed(cells="none"), "nb.ipynb is not a valid notebook"),
        (changed(cells=[1, 2]), "nb.ipynb is not a valid notebook"),
        (changed(cells=[{"cell_type": "code"}]), "nb.ipynb is not a valid notebook"),
        (changed(nbformat=5), "nb.ipynb is not a valid notebook"),
        (changed(nbformat=99), "nb.ipynb is not a valid notebook"),
        (changed(nbformat="four"), "nb.ipynb is not a valid notebook"),
        (changed(nbformat=None), "nb.ipynb is not a valid notebook"),
        (changed(metadata=[]), "nb.ipynb is not a valid notebook"),
    ],
)
def test_a_broken_file_is_one_sentence(tmp_path: Path, content: Any, what: str) -> None:
    with pytest.raises(UsageError) as error:
        read_notebook(raw(tmp_path / "nb.ipynb", content))

    assert what == error.value.what
    assert 2 == error.value.exit_code
    assert "Traceback" not in str(error.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "nb.ipynb"
    path.write_bytes(b'{"cells": "\xff\xfe"}')

    with pytest.raises(UsageError, match="is not a notebook") as error:
        read_notebook(path)
    assert "byte 11 is not UTF-8" == error.value.why


def test_a_folder_and_a_missing_file_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        read_notebook(tmp_path)
    with pytest.raises(UsageError, match=r"there is no file nb\.ipynb"):
        read_notebook(tmp_path / "nb.ipynb")


def test_a_huge_file_is_refused_before_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notebook_file, "MOST_BYTES", 1000)

    with pytest.raises(UsageError, match="is too large"):
        read_notebook(raw(tmp_path / "nb.ipynb", " " * 1001))


@pytest.mark.parametrize(
    "metadata", [{}, {"kernelspec": {"name": "my-env"}}, {"kernelspec": {}}, {"language_info": {}}]
)
def test_a_kernelspec_that_is_not_here_does_not_matter(tmp_path: Path, metadata: dict[str, Any]) -> None:
    read = read_notebook(raw(tmp_path / "nb.ipynb", changed(metadata=metadata)))

    assert [c["source"] for c in GOOD["cells"][2:]] == [[c.source] for c in read.cells[2:]]


def test_another_language_is_refused_by_name(tmp_path: Path) -> None:
    metadata = {"kernelspec": {"name": "ir", "display_name": "R", "language": "R"}}

    with pytest.raises(UsageError, match=r"nb\.ipynb is a R notebook"):
        read_notebook(raw(tmp_path / "nb.ipynb", changed(metadata=metadata)))


def test_format_3_is_upgraded_with_its_marks(tmp_path: Path) -> None:
    marked = {"nbgrader": {"grade": True, "solution": False, "grade_id": "check_sums", "points": 2}}
    cell = {
        "cell_type": "code",
        "input": 'check("sums")',
        "language": "python",
        "metadata": marked,
        "outputs": [],
        "collapsed": False,
    }
    old = {
        "nbformat": 3,
        "nbformat_minor": 0,
        "metadata": {"name": "x"},
        "worksheets": [{"cells": [cell], "metadata": {}}],
    }

    read = read_notebook(raw(tmp_path / "nb.ipynb", old))
    assert ["sums"] == [check_name(c) for c in read.cells]


def test_faulty_outputs_and_doubled_ids_do_not_stop_a_notebook(tmp_path: Path) -> None:
    cells = [{**cell, "id": "same"} for cell in GOOD["cells"]]
    cells[1] = {**cells[1], "outputs": [{"output_type": "nonsense"}], "execution_count": "x"}

    read = read_notebook(raw(tmp_path / "nb.ipynb", changed(cells=cells)))
    assert len(cells) == len({cell.id for cell in read.cells})
    assert [] == read.cells[1].outputs


def test_ids_are_made_where_an_older_format_has_none(tmp_path: Path) -> None:
    cells = [{k: v for k, v in cell.items() if k != "id"} for cell in GOOD["cells"]]

    read = read_notebook(raw(tmp_path / "nb.ipynb", changed(cells=cells, nbformat_minor=4)))
    assert all(cell.id for cell in read.cells)


def test_a_check_is_known_by_its_mark_or_by_its_call(tmp_path: Path) -> None:
    cells = [
        check("sums"),
        code('check("sums") '),
        code("check('other');"),
        code('x = check("sums")'),
        code("check(a)"),
    ]

    read = read_notebook(write(tmp_path, "nb", *cells, *explain("why_so")))
    assert ["sums", "sums", "other", "", "", "", ""] == [check_name(c) for c in read.cells[2:]]
    assert "why_so" == explain_name(read.cells[-1])


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("size = 1\nname: str = 'x'  # a comment", ("size", "name")),
        ("a, (b, *c) = 1, (2, 3)", ("a", "b", "c")),
        ("x = y = [\n  1,\n]\nlater: int", ("x", "y")),
        ("print(1)", ()),
    ],
)
def test_parameter_names_are_what_the_tagged_cell_assigns(tmp_path: Path, source: str, names: tuple[str, ...]) -> None:
    read = read_notebook(write(tmp_path, "nb", code(source, tags=("parameters",)), code("other = 1")))

    assert names == parameter_names(read)


def test_empty_cells_count_for_nothing(tmp_path: Path) -> None:
    read = read_notebook(write(tmp_path, "nb", code("  \n"), code("1")))

    assert [1, 3] == [index for index, _ in code_cells(read)]
