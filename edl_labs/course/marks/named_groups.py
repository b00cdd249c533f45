"""Groups that students name in a cell of their notebook: `Group: s1234, s1235`, in prose, where course.toml allows it.

Who is named gets the notebook and its marks, unless their own notebook says something else: nobody is put into a group
against what they handed in. What was found is kept beside course.toml in a table that a person can read and correct.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from edl_labs.course.course_folder import CourseFolder
from edl_labs.course.grade.files import write_atomically
from edl_labs.course.grade.submission import Unreadable, parse
from edl_labs.course.groups import NAMED_FILE, from_notebooks, named_rows, read_groups
from edl_labs.course.marks.roster import Roster, anonymous
from edl_labs.course.sandbox.limits import Limits

_LINE = re.compile(r"^[\W_]*group[\s*_]*:(?P<ids>.*)$", re.IGNORECASE | re.MULTILINE)
_APART = re.compile(r"[,;\s]+")
_ROUND = "*_`.<>()[]\"'"  # what Markdown and sentences put around an id
_MOST = 12  # no group is larger; a sentence after "Group:" may be longer


def named_in(data: bytes, *, limits: Limits) -> tuple[str, ...]:
    """The ids in the first line `Group: …` of a notebook's prose; empty where there is none."""
    try:
        cells = parse(data, limits=limits).cells
    except Unreadable:
        return ()
    for cell in cells:
        line = _LINE.search(cell.source) if cell.kind == "markdown" else None
        if line:
            ids = (word.strip(_ROUND) for word in _APART.split(line["ids"]))
            return tuple(dict.fromkeys(word for word in ids if word))[:_MOST]
    return ()


@dataclass(frozen=True)
class Agreement:
    """Groups that no notebook contradicts: their members, and a remark for each student whose claim is in vain."""

    groups: tuple[frozenset[str], ...] = ()
    remarks: Mapping[str, str] = field(default_factory=dict)


def agreed(claims: Mapping[str, Collection[str]], find: Callable[[str], str | None]) -> Agreement:
    """What the claims of all who handed in come to; `find` gives the id that a name means, None for nobody's.

    A group is what someone names, with themselves, if each of it who handed in names the same, or is named by nobody
    else and handed in nothing.
    """
    remarks: dict[str, str] = {}
    wanted: dict[str, frozenset[str]] = {}
    for student, ids in claims.items():
        strangers = [name for name in ids if find(name) is None]
        if strangers:
            remarks[student] = (
                f"names {', '.join(strangers)} as a group, who are in no class or in groups.csv: it counts alone"
            )
        elif ids:
            wanted[student] = frozenset({student, *(found for name in ids if (found := find(name)))})
    for student, members in wanted.items():
        others = {mate for mate in members if mate in claims and wanted.get(mate) != members}
        others |= {mate for other in wanted.values() if other != members for mate in other & members}
        if others - {student}:
            who = ", ".join(sorted(others - {student}))
            remarks[student] = (
                f"names {who} as a group, whose own or another's notebook does not say so: it counts alone"
            )
        elif others:
            remarks[student] = "is named by another group, too: it counts alone"
    whole = {members for members in wanted.values() if len(members) > 1 and not members & remarks.keys()}
    return Agreement(tuple(sorted(whole, key=sorted)), remarks)


def keep_groups(root: Path, assignment: str, found: Agreement, *, handed_in: Collection[str]) -> None:
    """Write the groups of an assignment to the table; those of whom nobody handed in again stay as they are."""
    rows = named_rows(root)
    earlier = [row for row in rows if row["assignment"] == assignment]
    touched = {row["group"] for row in earlier if row["id"] in handed_in}
    new = [(f"{assignment}: {'+'.join(sorted(m))}"[:120], who) for m in found.groups for who in sorted(m)]
    again = {who for _, who in new}
    kept = [r for r in earlier if r["group"] not in touched and r["id"] not in again]
    rows = [row for row in rows if row["assignment"] != assignment] + kept
    rows += [{"group": group, "id": who, "assignment": assignment} for group, who in new]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, ["group", "id", "assignment"])
    writer.writeheader()
    writer.writerows(rows)
    if rows or (root / NAMED_FILE).exists():
        write_atomically(root / NAMED_FILE, text.getvalue().encode())


def take_named_groups(
    course: CourseFolder, assignment: str, notebooks: Mapping[str, bytes], *, roster: Roster | None
) -> Mapping[str, tuple[str, ...]]:
    """Keep the groups that `notebooks`, by student, name, where course.toml allows it; remarks for claims in vain.

    Who is in a group of `groups.csv` names none.
    """
    if not from_notebooks(course.root):
        return {}
    listed = read_groups(course.root, assignment, named=False).by_student

    def find(name: str) -> str | None:
        member = roster.find(name) if roster else anonymous(name)
        return None if member is None or member.id in listed else member.id

    claims = {w: () if w in listed else named_in(data, limits=course.limits) for w, data in notebooks.items()}
    found = agreed(claims, find)
    keep_groups(course.root, assignment, found, handed_in=notebooks.keys())
    return {student: (remark,) for student, remark in found.remarks.items()}
