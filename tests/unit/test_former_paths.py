"""What released notebooks, other courses and deployed configurations import today keeps working."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from edl_labs._former_paths import MODULES, NAMES, today

DATA = Path(__file__).with_name("former")


def imported(text: str) -> set[tuple[str, str]]:
    """(module, name) of each import of edl_labs in a text; the name is empty where a whole module is imported."""
    found: set[tuple[str, str]] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found |= {(alias.name, "") for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found |= {(node.module, alias.name) for alias in node.names}
    return {(module, name) for module, name in found if module.split(".")[0] == "edl_labs"}


def released_imports() -> list[tuple[str, str]]:
    """Every import in the notebooks and exercise modules of the first release, and every path of its configuration."""
    listed = json.loads((DATA / "imports.json").read_text(encoding="utf-8"))
    return [(module, name) for module, name in listed]


@pytest.mark.parametrize(("module", "name"), released_imports(), ids=".".join)
def test_an_import_of_the_first_release_still_works(module: str, name: str) -> None:
    got = import_module(module)

    assert not name or hasattr(got, name) or find_spec(f"{module}.{name}")


def test_the_configuration_of_the_first_release_names_what_is_there() -> None:
    text = (DATA / "nbgrader_config.txt").read_text(encoding="utf-8")
    paths = {
        node.value
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("edl_labs.")
    }

    assert paths
    for path in paths:
        module, _, name = path.rpartition(".")
        assert hasattr(import_module(module), name), path


@pytest.mark.slow
def test_a_former_path_gives_the_same_object_and_not_a_second_one() -> None:
    code = (
        "from edl_labs.grading.term.late import CourseLatePolicy as former\n"
        "from edl_labs.course.marks.nbgrader_plugins import CourseLatePolicy as now\n"
        "assert former is now and now.__module__ == 'edl_labs.course.marks.nbgrader_plugins', now.__module__"
    )

    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("former", MODULES)
def test_no_former_path_is_a_module_of_today_and_each_leads_to_one(former: str) -> None:
    root = Path(import_module("edl_labs").__file__ or "").parent.parent
    place = root.joinpath(*former.split("."))

    assert not place.with_suffix(".py").exists()
    assert not (place / "__init__.py").exists()
    assert find_spec(today(former))


@pytest.mark.parametrize("former", NAMES)
def test_each_former_name_still_leads_to_its_object(former: str) -> None:
    code = f"from importlib import import_module\nmodule = import_module({former!r})\n"
    for name, now in NAMES[former].items():
        home, _, called = now.rpartition(".")
        code += f"from {former} import {name}\nassert {name} is import_module({home!r}).{called}\n"
    code += "assert not hasattr(module, 'never_there')"

    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_former_module_does_not_hide_a_public_function_of_its_name() -> None:
    code = (
        "import importlib, edl_labs.trace as trace\n"
        "function = trace.attribute\n"
        "try: importlib.import_module('edl_labs.trace.attribute')\n"
        "except ModuleNotFoundError: pass\n"
        "assert trace.attribute is function and callable(function)"
    )

    subprocess.run([sys.executable, "-c", code], check=True)
