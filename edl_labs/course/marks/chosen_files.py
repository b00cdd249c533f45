"""Of all that a student handed in, the files that count: the newest of each notebook, and what these import."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from edl_labs.course.marks.archives import BadArchive, Entry, files_inside
from edl_labs.course.marks.asked_files import wanted_files, wanted_name
from edl_labs.course.marks.lms.learning_system import ClassMember, Upload, attempt

_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Choice:
    """What counts of a student's uploads. `upload` is the one that the first notebook came with."""

    student: ClassMember
    upload: Upload | None
    notebooks: Mapping[str, Entry]
    """By the name under which the assignment has each, in its order; empty where none was handed in."""
    remarks: tuple[str, ...]
    by: ClassMember | None = None
    """Who of the group handed it in, where that was another one."""
    modules: Mapping[str, bytes] = field(default_factory=dict)
    """Python files that were handed in with it, by the name under which the notebook imports them."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """What an exercise asked for beside the notebook, by name; of one upload where one has all of it."""

    @property
    def of_team(self) -> bool:
        """Whether the learning system's group handed it in for each of its members."""
        return self.upload is not None and bool(self.upload.team)

    @property
    def upload_number(self) -> tuple[int, float]:
        """What is higher for a later upload, where nobody says when it came."""
        return (self.upload.number, self.upload.entry.order) if self.upload else (0, 0.0)


def choose(
    student: ClassMember, uploads: Sequence[Upload], names: Sequence[str], *, wanted: Sequence[str] = ()
) -> Choice:
    """The newest of each notebook that the assignment calls `names`; where it has one, any notebook may be that.

    `wanted` are files that exercises ask for beside it.
    """
    everything, remarks = _everything(uploads)
    found = sorted(((one, e) for one, e in everything if e.is_notebook), key=lambda pair: _rank(pair, names))
    chosen = {name: pair for name in names for pair in found if len(names) == 1 or attempt(pair[1].name)[0] == name}
    if not chosen:
        asked = f", and the assignment has {', '.join(f'{name}.ipynb' for name in names)}" if found else ""
        handed_in = ", ".join(sorted(u.file for u in uploads)[:5])
        remarks.append(f"handed in {handed_in}{asked}" if found else f"handed in {handed_in}, but no notebook")
        return Choice(student, uploads[0], {}, tuple(remarks))
    if len(names) == 1 and len({entry.data for _, entry in found}) > 1:
        remarks.append(f"{len(found)} notebooks, took {chosen[names[0]][1].name}")
    modules = _own_modules(everything)
    files, told = wanted_files(everything, wanted)
    remarks += told
    taken = {e.name for _, e in everything if wanted_name(e.name, wanted)[0]}
    others = {e.name for _, e in everything if not e.is_notebook and _module_name(e) not in modules}
    if modules:
        remarks.append(f"its own modules: {', '.join(sorted(modules))}")
    if others - taken:
        remarks.append(f"not used, since only notebooks and Python files are: {', '.join(sorted(others - taken)[:5])}")
    first = next(iter(chosen.values()))[0]
    if first.team:
        remarks.append(f"handed in by the group {first.team}")
    notebooks = {name: entry for name, (_, entry) in chosen.items()}
    return Choice(student, first, notebooks, tuple(remarks), modules=modules, files=files)


def _everything(uploads: Sequence[Upload]) -> tuple[list[tuple[Upload, Entry]], list[str]]:
    """Every file of the uploads, those inside archives too, and why an archive was not read."""
    found: list[tuple[Upload, Entry]] = []
    remarks: list[str] = []
    for one in uploads:
        try:
            found += [(one, inner) for inner in _files(one)]
        except BadArchive as problem:
            remarks.append(f"{problem.what}: {problem.why}" if problem.why else problem.what)
    return found, remarks


def _files(one: Upload) -> list[Entry]:
    """What a student handed in with an upload: the file, or all that its archive holds."""
    if one.file.lower().endswith(_ARCHIVES):
        return files_inside(one.entry)
    return [Entry(one.file, one.entry.data, one.entry.order)]


def _rank(pair: tuple[Upload, Entry], names: Sequence[str]) -> tuple[Any, ...]:
    """Higher is newer; of several notebooks, one that is called like the assignment's comes last."""
    one, entry = pair
    stem, again = attempt(entry.name)
    _, outer = attempt(one.file)
    return (stem in names, max(again, outer), one.number, one.entry.order, entry.order, entry.path)


def _own_modules(everything: list[tuple[Upload, Entry]]) -> dict[str, bytes]:
    """The Python files that a notebook can import, by name; of several with one name, the newest."""
    found = ((one, entry) for one, entry in everything if _module_name(entry))
    return {_module_name(entry): entry.data for _, entry in sorted(found, key=lambda pair: pair[0].number)}


def _module_name(entry: Entry) -> str:
    """The name under which a file is imported, without the number of a resubmission; empty for any other file."""
    stem, _ = attempt(entry.name.removesuffix(".py"))
    return f"{stem}.py" if entry.name.endswith(".py") and stem.isidentifier() else ""
