"""Chooses which submitted files of a student count: the newest copy of each notebook, and the files it imports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, count
from typing import Any

from edl_labs.course.marks.archives import BadArchive, Entry, files_inside
from edl_labs.course.marks.asked_files import wanted_files, wanted_name
from edl_labs.course.marks.lms.learning_system import ClassMember, Upload, attempt
from edl_labs.units import counted

_MOST_TOLD = 5  # as many as one reads
_ARCHIVES = (".zip", ".tar", ".tgz", ".tar.gz", ".tar.bz2", ".tar.xz")


@dataclass(frozen=True)
class Choice:
    """What counts of a student's uploads. `upload` is the one that the first notebook came with."""

    student: ClassMember
    upload: Upload | None
    notebooks: Mapping[str, Entry]
    """The chosen notebooks by their names in the assignment, in its order; empty if none was handed in."""
    remarks: tuple[str, ...]
    by: ClassMember | None = None
    """The member of the group who handed it in, if that was another student."""
    modules: Mapping[str, bytes] = field(default_factory=dict)
    """Python files that were handed in with it, by the names under which the notebook imports them."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    """The files that an exercise needs next to the notebook, by name; from a single upload if one contains all."""
    others: Mapping[str, bytes] = field(default_factory=dict)
    """Other files that were handed in, by unique names: they may contain an answer that the notebook lacks."""

    @property
    def of_team(self) -> bool:
        """Whether the learning system's group handed it in for each of its members."""
        return self.upload is not None and bool(self.upload.team)

    @property
    def upload_number(self) -> tuple[int, float]:
        """What is higher for a later upload, where its time is unknown."""
        return (self.upload.number, self.upload.entry.order) if self.upload else (0, 0.0)


def choose(
    student: ClassMember,
    uploads: Sequence[Upload],
    names: Sequence[str],
    *,
    wanted: Sequence[str] = (),
    work: Callable[[bytes], int] = lambda notebook: 0,
) -> Choice:
    """The newest of each notebook that the assignment calls `names`; where it has one, any notebook may be that.

    `wanted` are files that exercises ask for next to it. Of several notebooks one without work, as `work` counts
    its answers, counts only where no other has any; of files of one hand-in, the one with the most.
    """
    everything, remarks, unread = _everything(uploads)
    found = [(one, e) for one, e in everything if e.is_notebook]
    answered = {id(e): work(e.data) if len(found) > 1 else 0 for _, e in found}
    found.sort(key=lambda pair: _rank(pair, names, answered[id(pair[1])]))
    chosen = {name: pair for name in names for pair in found if len(names) == 1 or attempt(pair[1].name)[0] == name}
    if not chosen:
        asked = f", but the assignment needs {', '.join(f'{name}.ipynb' for name in names)}" if found else ""
        handed_in = ", ".join(sorted(u.file for u in uploads)[:5])
        remarks.append(f"handed in {handed_in}{asked}" if found else f"handed in {handed_in}, but no notebook")
        others = own_names([(e.name, e.data) for _, e in everything] + [(e.name, e.data) for e in unread])
        return Choice(student, uploads[0], {}, tuple(remarks), others=others)
    notebooks = {name: entry for name, (_, entry) in chosen.items()}
    again = [e for _, e in found if e.data not in {entry.data for entry in notebooks.values()}]
    if again:
        remarks.append(f"of {len(found)} notebooks, {', '.join(entry.name for entry in notebooks.values())} is used")
    modules = _own_modules(everything)
    files, told = wanted_files(everything, wanted)
    remarks += told
    taken = {e.name for _, e in everything if wanted_name(e.name, wanted)[0]}
    rest = [e for _, e in everything if not e.is_notebook and _module_name(e) not in modules and e.name not in taken]
    if modules:
        remarks.append(f"modules of the student: {', '.join(sorted(modules))}")
    if rest:
        some = ", ".join(sorted({e.name for e in rest})[:5])
        remarks.append(f"not used, because only notebooks and Python files are used: {some}")
    first = next(iter(chosen.values()))[0]
    if first.team:
        remarks.append(f"handed in by the group {first.team}")
    others = own_names([(e.name, e.data) for e in (*again, *rest, *unread)])
    return Choice(student, first, notebooks, tuple(remarks), modules=modules, files=files, others=others)


def own_names(files: Iterable[tuple[str, bytes]]) -> dict[str, bytes]:
    """Files by their names, of which a second one of a name gets a number; the same bytes count once.

    >>> own_names([("a.md", b"1"), ("a.md", b"2"), ("b.md", b"2")])
    {'a.md': b'1', 'a-2.md': b'2'}
    """
    found: dict[str, bytes] = {}
    for name, data in files:
        if data in found.values():
            continue
        stem, dot, ending = name.partition(".")
        numbered = (f"{stem}-{number}{dot}{ending}" for number in count(2))
        found[next(one for one in chain([name], numbered) if one not in found)] = data
    return found


def _everything(uploads: Sequence[Upload]) -> tuple[list[tuple[Upload, Entry]], list[str], list[Entry]]:
    """Every file of the uploads, those inside archives too; why an archive was not read, and those archives."""
    found: list[tuple[Upload, Entry]] = []
    remarks: list[str] = []
    unread: list[Entry] = []
    refused: list[Entry] = []
    for one in uploads:
        try:
            files = _files(one)
        except BadArchive as problem:
            remarks.append(f"{problem.what}: {problem.why}" if problem.why else problem.what)
            unread.append(Entry(one.file, one.entry.data, one.entry.order))
            continue
        found += [(one, inner) for inner in files if not inner.refused]
        refused += [inner for inner in files if inner.refused]
    remarks += [f"{entry.name} was left out: {entry.refused}" for entry in refused[:_MOST_TOLD]]
    if refused[_MOST_TOLD:]:
        remarks.append(f"{counted(len(refused) - _MOST_TOLD, 'more file')} left out")
    return found, remarks, unread


def _files(one: Upload) -> list[Entry]:
    """What a student handed in with an upload: the file, or all that its archive holds."""
    if one.entry.refused:
        return [replace(one.entry, path=one.file)]
    if one.file.lower().endswith(_ARCHIVES):
        return files_inside(one.entry)
    return [Entry(one.file, one.entry.data, one.entry.order)]


def _rank(pair: tuple[Upload, Entry], names: Sequence[str], answered: int) -> tuple[Any, ...]:
    """Higher is newer; of several notebooks, one that is called like the assignment's comes last.

    Numbers of uploads tell files of one hand-in apart, unless the system writes a time for each of several.
    """
    one, entry = pair
    stem, again = attempt(entry.name)
    _, outer = attempt(one.file)
    time = one.number if one.time else 0
    order = (one.number, one.entry.order, entry.order, entry.path)
    return (answered > 0, stem in names, max(again, outer), time, answered, *order)


def _own_modules(everything: list[tuple[Upload, Entry]]) -> dict[str, bytes]:
    """The Python files that a notebook can import, by name; of several with one name, the newest."""
    found = ((one, entry) for one, entry in everything if _module_name(entry))
    return {_module_name(entry): entry.data for _, entry in sorted(found, key=lambda pair: pair[0].number)}


def _module_name(entry: Entry) -> str:
    """The name under which a file is imported, without the number of a resubmission; empty for any other file."""
    stem, _ = attempt(entry.name.removesuffix(".py"))
    return f"{stem}.py" if entry.name.endswith(".py") and stem.isidentifier() else ""
