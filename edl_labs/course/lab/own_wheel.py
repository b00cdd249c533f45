"""The small wheel of an instructor's own course: its labs, its exercises without the judge's parts, its public goldens.

It needs edl_labs and is installed next to it: nothing in it has a name that the package has. An entry point says that
it is there, so `check`, `hint` and `edl-labs start` find its labs without an environment variable.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from edl_labs import __version__
from edl_labs.checks.lab_exercises import COURSES, lab_names, module_path
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
    """What pip installs on a rented host: a name and version, or the address of the wheel."""

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


def has_own_labs(root: Path) -> bool:
    """Whether the course in `root` has a lab that edl_labs has not, so that its students need a wheel of its own."""
    return is_own_course(root) and bool(_own_labs(root) or not lab_names(root / "edl_labs" / "exercises"))


def _own_labs(root: Path) -> set[str]:
    return {*lab_names(root / "edl_labs" / "exercises")} - {*lab_names(_PACKAGE / "exercises")}


def refuse_changed_exercises(course: Course) -> None:
    """UsageError where students' `check`, which edl_labs brings, would differ from how this course grades a lab."""
    own, package = course.root / "edl_labs" / "exercises", _PACKAGE / "exercises"
    if not is_own_course(course.root):
        return
    changed = [lab for lab in course.lab_names() if lab not in _own_labs(course.root)]
    changed = [lab for lab in changed if _checked_with(own, lab) != _checked_with(package, lab)]
    if changed:
        why = "students' checks use edl_labs, so they would show different points or messages than your grading"
        then = "run edl-labs course . --upgrade to use this release's labs; rename a lab that you changed (lab31_…)"
        raise UsageError(f"the exercises of {', '.join(changed)} differ from those of edl_labs", why=why, next=then)


def _checked_with(exercises: Path, lab: str) -> list[tuple[str, bytes]]:
    """What `check` and `hint` need of a lab: its modules without the judge's, and its golden."""
    module = module_path(lab, exercises)
    code = own_files(module.parent) if module.name == "__init__.py" else [module]
    files = [path for path in (*code, exercises / "goldens" / f"{lab}.json") if path.is_file()]
    named = ((path.relative_to(exercises), path) for path in files)
    return [(within.as_posix(), path.read_bytes()) for within, path in named if "judge" not in within.parts]


def distribution(root: Path) -> Distribution:
    """What the wheel of the course in `root` is called; UsageError for a version that pip would refuse."""
    about = read_course_file(root).course
    version = about.version or "0.1.0"
    if not _VERSION.fullmatch(version):
        raise wrong(f"version is {version!r}", "pip does not accept it", 'write version = "1.0.0"')
    found = Distribution(about.name or root.name, version, about.install)
    return found if found.install else Distribution(found.title, version, f"{found.project}=={version}")


def build_own_wheel(course: Course, folder: Path) -> Path:
    """The wheel of an own course in `folder`, without labs that edl_labs has too; nothing is scanned here.

    UsageError where the course has no other labs, or where such a lab's exercises are not those of edl_labs.
    """
    refuse_changed_exercises(course)
    if not has_own_labs(course.root):
        why = "it has only labs of edl_labs, so students install edl_labs"
        raise UsageError("this course needs no wheel", why=why, next="run edl-labs wheel in a checkout of edl_labs")
    from hatchling.builders.wheel import WheelBuilder

    found = distribution(course.root)
    with tempfile.TemporaryDirectory(prefix="edl-own-") as temporary:
        first = Path(temporary) / "__init__.py"
        first.write_text(_INIT.format(title=found.title.replace('"', "'")), encoding="utf-8")
        files = {str(first): f"{found.package}/__init__.py"} | dict(_packed(course, found.package))
        wheel = {"bypass-selection": True, "force-include": files}
        hosted = read_course_file(course.root).course.edl_labs
        needed = f" @ {hosted}" if hosted.startswith("http") else f">={__version__}"
        config: dict[str, Any] = {
            "project": {
                "name": found.project,
                "version": found.version,
                "description": f"The labs of {found.title}",
                "requires-python": ">=3.11",
                "dependencies": [f"edl-labs[lab]{needed}"],
                "entry-points": {COURSES: {found.package: found.package}},
            },
            "tool": {"hatch": {"metadata": {"allow-direct-references": True}, "build": {"targets": {"wheel": wheel}}}},
        }
        made = next(WheelBuilder(str(course.root), config=config).build(directory=str(folder), versions=["standard"]))
        return Path(made)


def _packed(course: Course, package: str) -> Iterable[tuple[str, str]]:
    """Each file of the wheel and its place there: what students may have of exercises/, and labs/."""
    taken = {*lab_names(_PACKAGE / "exercises")}
    for folder, place in ((course.exercises, "exercises"), (course.labs, "labs")):
        for path in own_files(folder):
            within = path.relative_to(folder)
            lab = Path(within.parts[0] if within.parts[0] != "goldens" else within.name).stem
            if lab not in taken and "judge" not in within.parts and "__pycache__" not in within.parts:
                yield str(path), f"{package}/{place}/{within.as_posix()}"
