"""One fact, one home: the files that name versions and extras agree."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]


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
    assert set(EXTRAS) - {"cluster"} == set(wanted.group(1).split(","))


def test_make_installs_every_extra() -> None:
    extras = re.search(r"^EXTRAS := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)

    assert extras is not None
    assert set(EXTRAS) - {"cluster"} == set(extras.group(1).split(","))


@pytest.mark.parametrize("text", [*PROJECT["dependencies"], *(r for extra in EXTRAS.values() for r in extra)])
def test_every_dependency_is_pinned_to_a_version_it_allows(text: str) -> None:
    requirement = Requirement(text)

    assert pins()[name(requirement.name)] in requirement.specifier


def test_torch_has_no_bound_so_that_installing_never_replaces_it() -> None:
    core = {name(Requirement(r).name): Requirement(r) for r in PROJECT["dependencies"]}

    assert "" == str(core["torch"].specifier)
    assert "torchvision" not in core


def test_the_pinned_pair_of_torch_and_torchvision_is_new_enough() -> None:
    assert pins()["torch"] >= Version("2.14")
    assert pins()["torchvision"] >= Version("0.29")


def test_the_version_has_one_value() -> None:
    import edl_labs

    assert PROJECT["version"] == edl_labs.__version__
