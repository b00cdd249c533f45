"""The students' notebooks, made by nbgrader's own generate_assignment in a course that is thrown away."""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from edl_labs.course.lab.source_notebook import stamped
from edl_labs.errors import EdlError, UsageError


def release(notebooks: dict[str, str]) -> dict[str, dict[str, Any]]:
    """The released notebook of each lab (name → text of its source notebook), stamped with its digest.

    nbgrader sees nothing but these notebooks: it would copy every other file beside them into the release.
    """
    with tempfile.TemporaryDirectory(prefix="edl-release-") as folder:
        root = Path(folder)
        for name, text in notebooks.items():
            (root / "source" / name).mkdir(parents=True)
            (root / "source" / name / f"{name}.ipynb").write_text(text, encoding="utf-8")
        return {name: _one(root, name) for name in notebooks}


def _one(root: Path, name: str) -> dict[str, Any]:
    with _quiet() as heard, _directory_kept():
        try:
            _generate(root, name)
        except (Exception, SystemExit) as error:
            raise EdlError(
                f"nbgrader could not make the release of {name}",
                why=_reason(heard, error),
                next="mend the lab's source; `edl-labs build` again",
            ) from None
    made = root / "release" / name / f"{name}.ipynb"
    if not made.is_file():
        raise EdlError(f"nbgrader made no release of {name}", why="; ".join(heard[-2:]))
    notebook = json.loads(made.read_text(encoding="utf-8"))
    _check_complete(json.loads((root / "source" / name / f"{name}.ipynb").read_text(encoding="utf-8")), notebook, name)
    return stamped(notebook)


def _reason(heard: list[str], error: BaseException) -> str:
    """The last exception that nbgrader logged a traceback of; its own message only points at that."""
    lines = [line for text in heard for line in text.split("\n")]
    raised = [line for line in lines if re.match(r"[\w.]*(Error|Exception): ", line)]
    return raised[-1] if raised else str(error)


def _generate(root: Path, name: str) -> None:
    try:
        from nbgrader.converters import GenerateAssignment
        from nbgrader.coursedir import CourseDirectory
        from traitlets.config import Config
    except ImportError as error:
        raise UsageError(
            "nbgrader is not installed", why=str(error), next="pip install 'edl-labs[instructor]'"
        ) from None
    config = Config()
    config.CourseDirectory.root = str(root)
    config.CourseDirectory.assignment_id = name
    config.GenerateAssignment.no_database = True  # what `nbgrader generate_assignment --no-db` sets
    config.SaveCells.enabled = False
    GenerateAssignment(coursedir=CourseDirectory(config=config), config=config).start()


def _check_complete(source: dict[str, Any], released: dict[str, Any], name: str) -> None:
    wanted, got = ([cell["id"] for cell in notebook["cells"]] for notebook in (source, released))
    if wanted != got:
        raise EdlError(f"nbgrader changed the cells of {name}", why=f"{sorted({*wanted} ^ {*got}) or 'their order'}")


@contextmanager
def _quiet() -> Iterator[list[str]]:
    """Collects what nbgrader logs instead of printing it."""
    heard: list[str] = []
    logger = logging.getLogger("traitlets")
    handler = logging.Handler(logging.ERROR)
    handler.emit = lambda record: heard.append(record.getMessage())  # type: ignore[method-assign]
    before, propagate = logger.handlers[:], logger.propagate
    logger.handlers, logger.propagate = [handler], False
    try:
        yield heard
    finally:
        logger.handlers, logger.propagate = before, propagate


@contextmanager
def _directory_kept() -> Iterator[None]:
    before = Path.cwd()
    try:
        yield
    finally:
        os.chdir(before)
