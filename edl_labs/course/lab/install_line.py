"""How students install a course: `[course] install` of course.toml, or the release on a package index."""

from __future__ import annotations

import re
import zipfile
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from edl_labs import __version__
from edl_labs.course.course_file import read_course_file, wrong
from edl_labs.course.lab.hosts import repository
from edl_labs.course.lab.own_wheel import distribution, has_own_labs
from edl_labs.errors import UsageError

_URL = re.compile(r"https?://\S+\.whl(?:#\S+)?")


@dataclass(frozen=True)
class InstallLine:
    """`release` is what pip gets on a rented host, `line` what students type; `wheel` is a file that they get, too."""

    release: str
    line: str
    wheel: Path | None = None
    otherwise: str = ""
    """What does as well: a wheel that students may have, where course.toml names none."""

    @property
    def text(self) -> str:
        """The line as Markdown."""
        return f"`{self.line}`{self.otherwise}"


def install_line(root: Path) -> InstallLine:
    """How students of the course in `root` install it; UsageError for a wheel that is missing or the instructors'.

    `install` is a requirement (`edl-labs==1.0.0`), the address of a wheel, or a wheel in the course's folder.
    """
    own = distribution(root) if has_own_labs(root) else None
    said = read_course_file(root).course.install
    if "+judge" in said or "%2Bjudge" in said.replace("%2b", "%2B"):
        raise _instructors(said)
    project, extra = (own.project, "") if own else ("edl-labs", "[lab]")
    released = own.install if own and not said else f"edl-labs=={__version__}"
    if not said:
        otherwise = ", or its wheel" if own else ", or the wheel followed by `[lab]`"
        return InstallLine(released, f'pip install "{released if own else project + extra}"', otherwise=otherwise)
    if _URL.fullmatch(said):
        return InstallLine(said, f'pip install "{project}{extra} @ {said}"')
    if said.endswith(".whl"):
        return _of_file(root, said, extra, released)
    return InstallLine(said, f'pip install "{said}"')


def _instructors(name: str) -> UsageError:
    why = "it holds solutions and what draws hidden cases"
    return wrong(f"install is {name!r}, an instructors' wheel", why, "name the wheel that `edl-labs wheel` makes")


def _of_file(root: Path, name: str, extra: str, released: str) -> InstallLine:
    """A wheel that is published with the labs; a rented host takes it from the course's repository, if it has one."""
    wheel = root / name
    if not zipfile.is_zipfile(wheel):
        raise wrong(f"install is {name!r}", "there is no such wheel in the course's folder", "make it: edl-labs wheel")
    with zipfile.ZipFile(wheel) as packed:
        if any("+judge.dist-info/" in member for member in packed.namelist()):
            raise _instructors(name)
    public = repository(root)
    release = f"https://github.com/{public}/raw/main/{quote(wheel.name)}" if public else released
    return InstallLine(release, f'pip install "{wheel.name}{extra}"', wheel)
