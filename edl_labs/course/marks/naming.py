"""How learning systems name the files that they pack, so that each finds its student again."""

from __future__ import annotations

import re
from dataclasses import dataclass

from edl_labs.course.marks.archives import Entry

KINDS = ("canvas", "moodle", "dir")
# Canvas: name, perhaps LATE, the user's number, the number of the upload, and the name the student gave the file.
_CANVAS = re.compile(r"(?P<name>.*?)_(?:(?P<late>late)_)?(?P<user>\d+)_(?P<upload>\d+)_(?P<file>.+)", re.IGNORECASE)
# Moodle: full name (or "Participant"), the participant's number, the kind of submission, then a folder or the file.
_MOODLE = re.compile(
    r"(?P<name>.+?)_(?P<user>\d+)_assign(?:submission|feedback)_(?P<kind>file|onlinetext)(?:_(?P<file>.*))?"
)


@dataclass(frozen=True)
class Upload:
    """A file and whose it is: `user` is the learning system's number or, in a plain folder, the folder's name."""

    user: str
    name: str
    file: str
    entry: Entry
    prefix: str = ""
    """What the learning system puts before a file's name, to send something back under."""
    number: int = 0
    """The upload's number: later ones are higher. 0 where there is none."""
    late: bool = False


def upload(entry: Entry, kind: str) -> Upload | None:
    """Whose file an entry is by the naming of `kind`, or None when its name says nothing."""
    return {"canvas": _canvas, "moodle": _moodle, "dir": _dir}[kind](entry)


def attempt(file: str) -> tuple[str, int]:
    """A file's name without the number that systems add to a resubmission, and that number.

    >>> attempt("lab01_gpu_basics-2.ipynb"), attempt("lab01_gpu_basics.ipynb")
    (('lab01_gpu_basics', 2), ('lab01_gpu_basics', 0))
    """
    stem = file[: -len(".ipynb")] if file.lower().endswith(".ipynb") else file
    found = re.fullmatch(r"(.+?)(?:-(\d{1,3})| \((\d{1,3})\))", stem)
    return (found[1], int(found[2] or found[3])) if found else (stem, 0)


def _canvas(entry: Entry) -> Upload | None:
    found = _CANVAS.fullmatch(entry.name)
    if found is None:
        return None
    prefix = entry.name[: found.start("file")]
    return Upload(
        user=found["user"],
        name=found["name"],
        file=found["file"],
        entry=entry,
        prefix=prefix,
        number=int(found["upload"]),
        late=bool(found["late"]),
    )


def _moodle(entry: Entry) -> Upload | None:
    parts = entry.path.split("/")
    for depth, part in enumerate(parts):
        found = _MOODLE.fullmatch(part)
        if found is None:
            continue
        inside = "/".join(parts[depth + 1 :]) or found["file"] or ""
        if not inside:
            return None
        prefix = f"{found['name']}_{found['user']}_assignsubmission_file_"
        return Upload(user=found["user"], name=found["name"], file=inside.split("/")[-1], entry=entry, prefix=prefix)
    return None


def _dir(entry: Entry) -> Upload | None:
    folder, _, rest = entry.path.partition("/")
    if rest:
        return Upload(user=folder, name=folder, file=entry.name, entry=entry)
    stem = entry.name.rpartition(".")[0] or entry.name
    return Upload(user=stem, name=stem, file=entry.name, entry=entry)
