"""nbgrader assignments without exercises of edl_labs: nbgrader's rules apply, and the cells run in the sandbox.

nbgrader reads marks from the outputs of test cells, hidden tests included, which run in the student's kernel. So every
mark of such an assignment rests on the student's process, and is listed as *trusting*. Students get no output of that
run: their code could print the hidden tests.
"""

from __future__ import annotations

import atexit
import json
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from edl_labs.checks.lab_exercises import module_path
from edl_labs.course.course_folder import Course, use_own_exercises
from edl_labs.course.grade.graded_notebook import cut_outputs
from edl_labs.course.grade.without_scripts import (
    ReadingAllowance,
    outputs_without_scripts,
    pictures_without_scripts,
    prose_without_scripts,
)
from edl_labs.course.own_files import own_files
from edl_labs.course.sandbox.kernel.client import KernelDied, Violation
from edl_labs.course.sandbox.kernel.pool import KernelPool
from edl_labs.course.sandbox.limits import Limits

_POOLS: dict[Limits, KernelPool] = {}
_HIDDEN = "# This test is not shown."


def is_nbgraders(course: Course, name: str) -> bool:
    """Whether an assignment has notebooks in nbgrader's source folder, and no exercises of edl_labs."""
    use_own_exercises(course.root)
    return not module_path(name).is_file() and bool(notebook_names(course, name))


def notebook_names(course: Course, name: str) -> tuple[str, ...]:
    """The notebooks of an assignment's source that hold cells of nbgrader's, in order."""
    folder = course.path("source", student=".", assignment=name)
    return tuple(path.stem for path in sorted(folder.glob("*.ipynb")) if any(_graded_cells(path)))


def files_beside(course: Course, name: str) -> dict[str, bytes]:
    """What the instructor put next to the notebooks, as a student's kernel gets it."""
    folder = course.path("source", student=".", assignment=name)
    paths = [path for path in own_files(folder) if path.suffix != ".ipynb"]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in paths}


def run_in_sandbox(notebook: Any, *, files: Mapping[str, bytes], limits: Limits) -> None:
    """Run the notebook's cells in a fresh sandbox; their outputs, or why there are none, are in `notebook` then."""
    gone = ""
    deadline_s = time.monotonic() + limits.notebook_s
    with _pool(limits).kernel(files=files) as kernel:
        for cell in notebook.cells:
            if cell.cell_type != "code":
                continue
            left_s = deadline_s - time.monotonic()
            if not gone and left_s <= 0:
                gone = "the notebook ran out of time"
            try:
                outputs = [] if gone else kernel.run(cell.source, timeout_s=min(limits.cell_s, left_s)).outputs
            except (KernelDied, Violation) as end:
                gone = gone or str(end)
                outputs = end.result.outputs if end.result else []
            cell.outputs = _nodes([*outputs, *([_never_ran(gone)] if gone else [])])


def as_released(course: Course, name: str, notebook_name: str, notebook: Any) -> Any:
    """A graded notebook as its student may see it: test cells as they were released, and no output of the run."""
    path = course.path("release", student=".", assignment=name) / f"{notebook_name}.ipynb"
    shown = {cell["metadata"]["nbgrader"]["grade_id"]: "".join(cell["source"]) for cell in _graded_cells(path)}
    for cell in notebook.cells:
        about = cell.metadata.get("nbgrader", {})
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
        if about.get("grade_id") and not about.get("solution"):
            cell.source = shown.get(about["grade_id"], _HIDDEN)
    return notebook


def remove_scripts(notebook: Any, *, limits: Limits) -> None:
    """Leave nothing in the notebook that would run in a grader's browser or fill it: prose and outputs as for labs.

    Of metadata nbgrader's own stay: pages make titles, classes and widgets of others.
    """
    left_bytes, allowance = limits.shown_bytes, ReadingAllowance()
    notebook.metadata = _only("kernelspec", notebook.metadata)
    for cell in notebook.cells:
        cell.metadata = _only("nbgrader", cell.metadata)
        if cell.cell_type == "code":
            outputs = outputs_without_scripts(cell.outputs, allowance)
            shown, left_bytes = cut_outputs(outputs, left_bytes, limits.shown_lines)
            cell.outputs = _nodes(shown)
            continue
        pictures = pictures_without_scripts(cell.pop("attachments", None))
        cell.source = prose_without_scripts(cell.source, pictures, allowance)
        if pictures:
            cell.attachments = pictures


def _only(key: str, metadata: Any) -> Any:
    return type(metadata)({key: metadata[key]} if key in metadata else {})


def _pool(limits: Limits) -> KernelPool:
    """One parent of kernels for all students of this process."""
    if limits not in _POOLS:
        _POOLS[limits] = KernelPool(limits=limits)
        atexit.register(_POOLS[limits].close)
    return _POOLS[limits]


def _nodes(outputs: list[dict[str, Any]]) -> list[Any]:
    from nbformat import from_dict

    return [from_dict(output) for output in outputs]


def _never_ran(why: str) -> dict[str, Any]:
    return {"output_type": "error", "ename": "KernelDied", "evalue": why, "traceback": [f"KernelDied: {why}"]}


def _graded_cells(path: Path) -> Iterator[dict[str, Any]]:
    """The cells of a notebook that nbgrader knows; none where the file is no notebook."""
    try:
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    except (OSError, ValueError, KeyError, TypeError):
        return
    yield from (cell for cell in cells if cell.get("metadata", {}).get("nbgrader", {}).get("grade_id"))
