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
from edl_labs.course.lab.own_wheel import Distribution, distribution, has_own_labs
from edl_labs.errors import UsageError

_URL = re.compile(r"https?://\S+\.whl(?:#\S+)?")


@dataclass(frozen=True)
class InstallLine:
    """`release` is what pip gets on a rented host, `line` what students type; `wheels` are files that they get, too."""

    release: str
    line: str
    wheels: tuple[Path, ...] = ()
    otherwise: str = ""
    """An alternative: a wheel that students may have, if course.toml names none."""

    @property
    def text(self) -> str:
        """The line as Markdown."""
        return f"`{self.line}`{self.otherwise}"


def install_line(root: Path) -> InstallLine:
    """How students of the course in `root` install it; UsageError for a wheel that is missing or the instructors'.

    `install` is a requirement (`edl-labs==1.0.0`), the address of a wheel, or a wheel in the course's folder.
    """
    about = read_course_file(root).course
    own = distribution(root) if has_own_labs(root) else None
    if own is None:
        return _of_course(root, about.install or about.edl_labs, own)
    found = _of_course(root, about.install, own)
    _refuse_instructors("edl_labs", about.edl_labs)
    if not about.edl_labs or _URL.fullmatch(about.edl_labs):
        return found  # the course's wheel says where edl_labs is
    library = _wheel(root, "edl_labs", about.edl_labs)
    line = found.line.replace("pip install ", f'pip install "{library.name}[lab]" ', 1)
    return InstallLine(found.release, line, (library, *found.wheels), found.otherwise)


def _of_course(root: Path, said: str, own: Distribution | None) -> InstallLine:
    _refuse_instructors("install", said)
    project, extra = (own.project, "") if own else ("edl-labs", "[lab]")
    released = own.install if own and not said else f"edl-labs=={__version__}"
    if not said:
        otherwise = ", or `pip install FILE.whl`" if own else ', or `pip install "FILE.whl[lab]"` with a wheel'
        return InstallLine(released, f'pip install "{released if own else project + extra}"', otherwise=otherwise)
    if _URL.fullmatch(said):
        return InstallLine(said, f'pip install "{project}{extra} @ {said}"')
    if said.endswith(".whl"):
        wheel = _wheel(root, "install", said)
        return InstallLine(_rented(root, wheel) or released, f'pip install "{wheel.name}{extra}"', (wheel,))
    return InstallLine(said, f'pip install "{said}"')


def _refuse_instructors(key: str, said: str) -> None:
    if "+judge" in said or "%2Bjudge" in said.replace("%2b", "%2B"):
        raise _instructors(key, said)


def _instructors(key: str, name: str) -> UsageError:
    why = "it contains solutions and the code that draws secret cases"
    return wrong(f"{key} is {name!r}, an instructors' wheel", why, "name the wheel that `edl-labs wheel` builds")


def _wheel(root: Path, key: str, name: str) -> Path:
    """A wheel that is published with the labs."""
    wheel = root / name
    if not zipfile.is_zipfile(wheel):
        raise wrong(
            f"{key} is {name!r}", "there is no such wheel in the course's folder", "build it with edl-labs wheel"
        )
    with zipfile.ZipFile(wheel) as packed:
        if any("+judge.dist-info/" in member for member in packed.namelist()):
            raise _instructors(key, name)
    return wheel


def _rented(root: Path, wheel: Path) -> str:
    """Where a rented host gets a published wheel: from the course's repository, if it has one."""
    public = repository(root)
    return f"https://github.com/{public}/raw/main/{quote(wheel.name)}" if public else ""
