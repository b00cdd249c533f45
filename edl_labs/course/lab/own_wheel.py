"""The small wheel of a course of one's own: its labs, its exercises without the judge's parts, its public goldens.

It needs edl_labs and stands beside it: nothing in it has a name that the package has. An entry point says that it is
there, so `check`, `hint` and `edl-labs start` find its labs without an environment variable.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs import __version__
from edl_labs.checks.lab_exercises import COURSES
from edl_labs.course.course_file import read_course_file, wrong
from edl_labs.course.course_folder import Course
from edl_labs.course.own_files import own_files
from edl_labs.errors import UsageError

_VERSION = re.compile(r"\d+(\.\d+)*((a|b|rc)\d+)?(\.post\d+)?")
_PACKAGE = Path(__file__).resolve().parents[2]
_INIT = '"""The labs of {title}: what students run, and what `check` needs."""\n'


@dataclass(frozen=True)
class Distribution:
    """What a course's wheel is called, from `[course]` of course.toml: its `name`, `version` and `install`."""

    title: str
    version: str
    install: str
    """What pip installs on a rented host: a name and version, or where the wheel can be had."""

    @property
    def package(self) -> str:
        """The package that is imported.

        >>> Distribution("Deep learning, 2nd part", "0.1.0", "").package
        'edl_course_deep_learning_2nd_part'
        """
        return "edl_course_" + (re.sub(r"[^a-z0-9]+", "_", self.title.lower()).strip("_") or "own")

    @property
    def project(self) -> str:
        """The name that pip knows."""
        return self.package.replace("_", "-")


def is_own_course(root: Path) -> bool:
    """Whether the course in `root` is another than the package's own."""
    return (root / "edl_labs" / "exercises").is_dir() and not (root / "edl_labs" / "__init__.py").is_file()


def distribution(root: Path) -> Distribution:
    """What the wheel of the course in `root` is called; UsageError for a version that pip would refuse."""
    about = read_course_file(root).course
    version = about.version or "0.1.0"
    if not _VERSION.fullmatch(version):
        raise wrong(f"version is {version!r}", "pip would refuse it", 'write version = "1.0.0"')
    found = Distribution(about.name or root.name, version, about.install)
    return found if found.install else Distribution(found.title, version, f"{found.project}=={version}")


def build_own_wheel(course: Course, folder: Path) -> Path:
    """The wheel of an own course in `folder`; nothing is scanned here. UsageError for a lab that edl_labs has too."""
    taken = sorted(set(course.lab_names()) & {path.name for path in (_PACKAGE / "exercises").glob("lab*")})
    if taken:
        why, then = "edl_labs has a lab of that name, and students may have both", "rename it: lab31_… is free"
        raise UsageError(f"{', '.join(taken)} cannot be in a course's wheel", why=why, next=then)
    from hatchling.builders.wheel import WheelBuilder

    found = distribution(course.root)
    with tempfile.TemporaryDirectory(prefix="edl-own-") as temporary:
        first = Path(temporary) / "__init__.py"
        first.write_text(_INIT.format(title=found.title.replace('"', "'")), encoding="utf-8")
        files = {str(first): f"{found.package}/__init__.py"} | dict(_packed(course, found.package))
        wheel = {"bypass-selection": True, "force-include": files}
        config: dict[str, Any] = {
            "project": {
                "name": found.project,
                "version": found.version,
                "description": f"The labs of {found.title}",
                "requires-python": ">=3.11",
                "dependencies": [f"edl-labs[lab]>={__version__}"],
                "entry-points": {COURSES: {found.package: found.package}},
            },
            "tool": {"hatch": {"build": {"targets": {"wheel": wheel}}}},
        }
        made = next(WheelBuilder(str(course.root), config=config).build(directory=str(folder), versions=["standard"]))
        return Path(made)


def _packed(course: Course, package: str) -> Iterable[tuple[str, str]]:
    """Each file of the wheel and its place there: what students may have of exercises/, and labs/."""
    for folder, place in ((course.exercises, "exercises"), (course.labs, "labs")):
        for path in own_files(folder):
            within = path.relative_to(folder)
            if "judge" not in within.parts and "__pycache__" not in within.parts:
                yield str(path), f"{package}/{place}/{within.as_posix()}"
