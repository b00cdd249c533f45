"""One fact, one home: the files that name versions and extras agree."""

from __future__ import annotations

import importlib
import re
import subprocess
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ON_DEMAND = {"cluster", "docs"}  # large, and needed by single targets alone


def pins() -> dict[str, Version]:
    lines = [line for line in (ROOT / "constraints.txt").read_text().splitlines() if line and not line.startswith("#")]
    requirements = [Requirement(line) for line in lines]
    return {name(r.name): Version(next(iter(r.specifier)).version) for r in requirements}


def name(text: str) -> str:
    return re.sub(r"[-_.]+", "-", text).lower()


def conda() -> tuple[list[str], list[str]]:
    parts = yaml.safe_load((ROOT / "environment.yml").read_text())["dependencies"]
    return [p for p in parts if isinstance(p, str)], next(p["pip"] for p in parts if isinstance(p, dict))


def test_conda_asks_for_the_same_python_as_pyproject() -> None:
    packages, _ = conda()

    assert ["python" + PROJECT["requires-python"], "pip"] == packages


def test_conda_installs_the_package_with_every_extra_and_the_pins() -> None:
    _, pip = conda()

    assert "--constraint constraints.txt" == pip[0]
    wanted = re.fullmatch(r"--editable \.\[(.+)\]", pip[1])
    assert wanted is not None
    assert set(EXTRAS) - ON_DEMAND == set(wanted.group(1).split(","))


def test_make_installs_every_extra_and_those_of_clusters_and_the_site_for_the_long_tests() -> None:
    extras = re.search(r"^EXTRAS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert extras is not None
    assert set(EXTRAS) - ON_DEMAND == set(extras.group(1).split(","))
    assert "'.[$(EXTRAS),cluster,docs]'" in (ROOT / "Makefile").read_text().partition("test-all:")[2]


@pytest.mark.parametrize("text", [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)])
def test_every_dependency_is_pinned_to_a_version_it_allows(text: str) -> None:
    requirement = Requirement(text)

    assert pins()[name(requirement.name)] in requirement.specifier


def test_a_package_has_one_bound_however_many_extras_ask_for_it() -> None:
    bounds: dict[str, set[str]] = {}
    for requirement in map(Requirement, [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)]):
        bounds.setdefault(name(requirement.name), set()).add(str(requirement.specifier))

    assert {} == {package: found for package, found in bounds.items() if len(found) > 1}


def test_torch_has_no_bound_so_that_installing_never_replaces_it() -> None:
    core = {name(Requirement(r).name): Requirement(r) for r in PROJECT["dependencies"]}

    assert "" == str(core["torch"].specifier)
    assert "torchvision" not in core


def test_the_pinned_pair_of_torch_and_torchvision_is_new_enough() -> None:
    assert pins()["torch"] >= Version("2.14")
    assert pins()["torchvision"] >= Version("0.29")


def test_git_ignores_what_a_check_leaves_beside_a_notebook() -> None:
    assert {".edl_labs/", ".ipynb_checkpoints/", "__pycache__/"} <= set((ROOT / ".gitignore").read_text().splitlines())


def test_the_version_has_one_value() -> None:
    import edl_labs

    assert PROJECT["version"] == edl_labs.__version__


def test_the_wheel_says_that_the_package_is_typed() -> None:
    assert {"edl_labs/py.typed", "edl_labs/__init__.py"} <= packed_by("wheel")


@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_what_is_published_holds_exercises_without_the_judges_part(kind: str) -> None:
    packed = {path for path in packed_by(kind) if path.startswith("edl_labs/exercises/")}

    assert {"edl_labs/exercises/__init__.py", "edl_labs/exercises/lab01_gpu_basics/broken_timers.py"} <= packed
    assert [] == [path for path in packed if "judge" in path]


@pytest.fixture(scope="module")
def secrets() -> dict[str, list]:
    """What the leak scan looks for in this checkout."""
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.leaks import secrets as lines
    from edl_labs.course.lab.read import read_labs
    from edl_labs.course.lab.secret_functions import secret_functions

    labs = read_labs(Course(ROOT))
    return {"known": lines(labs), "functions": secret_functions(Course(ROOT), labs)}


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["wheel", pytest.param("sdist", marks=pytest.mark.slow)])
def test_what_is_published_holds_no_solution_and_no_function_of_the_judge(kind, secrets, tmp_path) -> None:
    from edl_labs.course.lab.leaks import scan

    made = Path(next(BUILDERS[kind]()(str(ROOT)).build(directory=str(tmp_path))))

    assert [] == [str(leak) for leak in scan([made], **secrets)]


@pytest.mark.slow
def test_the_instructors_wheel_holds_the_judges_part_and_says_so_in_its_version(secrets, tmp_path) -> None:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.leaks import scan
    from edl_labs.course.lab.publish import build_wheel

    made = build_wheel(Course(ROOT), tmp_path / "dist", judge=True)

    inside = set(zipfile.ZipFile(made).namelist())
    assert f"edl_labs-{PROJECT['version']}+judge-py3-none-any.whl" == made.name
    assert {"edl_labs/exercises/lab01_gpu_basics/judge/faulty_timers.py", "edl_labs/labs/README.md"} <= inside
    found = {leak.secret.text for leak in scan([made], **secrets)}
    assert {"the judge's code", "a function _with_its_clock"} <= found


BUILDERS = {
    "wheel": lambda: importlib.import_module("hatchling.builders.wheel").WheelBuilder,
    "sdist": lambda: importlib.import_module("hatchling.builders.sdist").SdistBuilder,
}


def packed_by(kind: str) -> set[str]:
    """The paths that a wheel or an sdist made from this checkout would hold."""
    return {file.distribution_path for file in BUILDERS[kind]()(str(ROOT)).recurse_included_files()}


# Modules that come with a package we ask for, by that package's own contract.
COMES_WITH = {
    "IPython": "ipykernel",
    "comm": "ipykernel",
    "jupyter_client": "ipykernel",
    "jupyter_core": "ipykernel",
    "matplotlib_inline": "ipykernel",
    "tornado": "ipykernel",
    "traitlets": "ipykernel",
    "zmq": "ipykernel",
    "click": "typer",
    "cycler": "matplotlib",
    "PIL": "matplotlib",
    "sqlalchemy": "nbgrader",
    "pygments": "rich",
    "pynvml": "nvidia-ml-py",
    "triton": "torch",
    "dateutil": "nbgrader",
    "bs4": "nbconvert",
    "yaml": "papermill",
    "jinja2": "nbconvert",
    "jupyter_server": "jupyterlab",
    "notebook": "nbgrader",
}


def imported(part: str = "") -> set[str]:
    """The top-level names that any module of the package, or of a part of it, imports, anywhere in it."""
    import ast

    found = set()
    for path in (ROOT / "edl_labs" / part).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
    return found


def test_every_package_that_is_imported_is_asked_for() -> None:
    import sys

    asked = {name(Requirement(r).name) for r in [*PROJECT["dependencies"], *(r for e in EXTRAS.values() for r in e)]}
    foreign = imported() - set(sys.stdlib_module_names) - {"edl_labs"}

    missing = {module for module in foreign if name(COMES_WITH.get(module, module)) not in asked}

    assert set() == missing


def test_exercises_import_nothing_that_a_student_has_not_installed() -> None:
    import sys

    has = {name(Requirement(r).name) for r in [*PROJECT["dependencies"], *EXTRAS["lab"]]} | {"ipython"}
    foreign = imported("exercises") - set(sys.stdlib_module_names) - {"edl_labs"}

    assert {"numpy", "torch"} <= foreign
    assert set() == {module for module in foreign if name(COMES_WITH.get(module, module)) not in has}


def test_make_asks_for_what_compiled_ceilings_and_sandboxes_need_and_says_why_where_it_may_not_install(tmp_path):
    wanted = re.search(r"^SYSTEM_PACKAGES := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert wanted is not None
    packages = wanted.group(1).split()
    for name, script in (("dpkg-query", "exit 1"), ("id", "echo 1000"), ("ldconfig", "exit 1"), ("grep", "exit 1")):
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    command = ["/bin/bash", str(ROOT / "scripts" / "system_packages"), *packages]
    done = subprocess.run(command, env={"PATH": str(tmp_path)}, capture_output=True, text=True, timeout=60, check=False)

    assert {"bubblewrap", "libseccomp2", "g++", "python3-dev"} <= set(packages)
    assert 0 == done.returncode
    assert f"not installed: {' '.join(packages)}" == done.stdout.splitlines()[0]
    assert all(package in done.stdout.splitlines()[1] for package in packages)
    assert "next:" in done.stdout.splitlines()[2]
