"""Reading the folder of a submission: its notebook, the student's modules, recordings, and all other files."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from edl_labs.course.grade.other_files import read_others
from edl_labs.course.grade.submission import MOST_RECORDING_BYTES, Submission, Unreadable, parse, read_bytes
from edl_labs.course.sandbox.limits import DEFAULTS, Limits

RECORDING = ".json.gz"  # how the files end that an exercise may ask for next to the notebook
_SHORTER = "hand in only the code that the notebook imports; a Python file must not contain data"
_MOST_RECORDINGS = 8  # two for each of a few exercises
_MOST_MODULES = 20  # a lab is one notebook; next to it are a few helpers
_SUFFIXES = (".zip", ".gz", ".tgz", ".tar", ".bz2", ".xz", ".7z", ".rar")


def find_notebook(folder: Path, name: str) -> tuple[Path, tuple[str, ...]]:
    """The notebook in a submission's folder, and what was odd about it. Links and other names are distinguished."""
    if folder.is_symlink() or not folder.is_dir():
        raise Unreadable(f"{folder.name} is not a folder", why="a submission must be a folder that contains a notebook")
    expected = folder / f"{name}.ipynb"
    entries = sorted(entry for entry in folder.iterdir() if not entry.name.startswith("."))
    notebooks = [entry for entry in entries if entry.suffix == ".ipynb"]
    if expected in notebooks:
        return expected, ()
    if len(notebooks) == 1:
        return notebooks[0], (f"the notebook was renamed to {notebooks[0].name}",)
    if notebooks:
        found = ", ".join(n.name for n in notebooks[:5])
        raise Unreadable(
            f"there is no {expected.name}",
            why=f"the folder contains {found} instead",
            next="rename the notebook that should be graded",
        )
    archive = next((e.name for e in entries if e.name.lower().endswith(_SUFFIXES)), None)
    if archive:
        raise Unreadable(f"there is an archive, {archive}, but no notebook", next="unpack it into this folder")
    raise Unreadable(
        f"there is no {expected.name}", why="the folder contains no notebook", next="ask the student for the notebook"
    )


def read_submission(folder: Path, name: str, *, limits: Limits = DEFAULTS) -> Submission:
    """The submission in `folder`; raises Unreadable, and nothing else, when it cannot be read."""
    path, notes = find_notebook(folder, name)
    submission = parse(read_bytes(path, most=limits.submission_bytes), limits=limits)
    modules = read_modules(folder, limits=limits)
    files, large = read_recordings(folder)
    others = read_others(folder, {path.name, *modules, *(p.name for p in recording_paths(folder))}, limits=limits)
    notes = (*notes, *submission.notes, *large)
    return replace(submission, notes=notes, modules=modules, files=files, others=others)


def read_recordings(folder: Path) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The recordings next to the notebook, by name, and a note for each that is too large or cannot be read."""
    found, notes = {}, []
    for path in recording_paths(folder):
        try:
            found[path.name] = read_bytes(path, most=MOST_RECORDING_BYTES)
        except Unreadable as problem:
            notes.append(f"{problem.what} and was left out, because {problem.why}")
    return found, tuple(notes)


def recording_paths(folder: Path) -> list[Path]:
    """The recordings in a folder, in order."""
    return sorted(folder.glob(f"*{RECORDING}"))[:_MOST_RECORDINGS]


def read_modules(folder: Path, *, limits: Limits = DEFAULTS) -> dict[str, bytes]:
    """The student's own Python files next to the notebook, by name. Unreadable where they are too long, or links."""
    found = {path.name: read_bytes(path, most=limits.source_bytes, then=_SHORTER) for path in module_paths(folder)}
    size = sum(map(len, found.values()))
    if size > limits.source_bytes:
        why = f"they have {size:,} bytes, but the limit for all of them together is {limits.source_bytes:,} bytes"
        raise Unreadable("the Python files next to the notebook are too large", why=why, next=_SHORTER)
    return found


def module_paths(folder: Path) -> list[Path]:
    """Plain Python files that a notebook in the folder can import, in order."""
    found = (path for path in sorted(folder.glob("*.py")) if path.stem.isidentifier())
    return [path for path in found if path.is_file() and not path.is_symlink()][:_MOST_MODULES]
