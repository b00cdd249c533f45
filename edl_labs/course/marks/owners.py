"""Finds the owner of an upload: by the learning system's number, by name, or by the group that submitted it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import groupby

from edl_labs.course.groups import Groups
from edl_labs.course.marks.lms.learning_system import ClassMember, Upload
from edl_labs.course.marks.roster import Roster, anonymous
from edl_labs.course.marks.tables import same_name

Teams = Mapping[str, tuple[ClassMember, ...]]


@dataclass(frozen=True)
class Owners:
    """The uploads of each student, the files without a student, and what was odd."""

    files: tuple[tuple[ClassMember, tuple[Upload, ...]], ...]
    unmatched: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()


def find_owners(uploads: Iterable[Upload], roster: Roster | None, teams: Teams) -> Owners:
    """Each upload with its students: one, or all members of a group. A name that contradicts a number counts more."""
    owned: list[tuple[ClassMember, Upload]] = []
    unmatched, remarks = [], {}
    for one in uploads:
        member = roster.find(one.user, name=one.name) if roster else anonymous(one.user)
        if one.test_student and not (roster and member):
            remarks["Canvas's test student was left out"] = True
            continue
        team = teams.get(same_name(one.name), ()) if one.may_be_team else ()
        if member is not None and not (one.may_be_team and _contradicts(one, member, team)):
            owned.append((member, one))
        elif team:
            owned += [(mate, _for_member(one, mate)) for mate in team]
        else:
            unmatched.append(one.entry.path)
            if one.may_be_team:
                remarks[_no_team(one, member)] = True
    owned.sort(key=lambda pair: pair[0].id)
    by_student = [list(pairs) for _, pairs in groupby(owned, key=lambda pair: pair[0].id)]
    files = tuple((pairs[0][0], tuple(one for _, one in pairs)) for pairs in by_student)
    return Owners(files, tuple(unmatched), tuple(remarks))


def find_teams(roster: Roster | None, worksheet: Iterable[ClassMember], groups: Groups) -> Teams:
    """The members of each group by its name: as the learning system's lists say, else as groups.csv does."""
    found: dict[str, dict[str, ClassMember]] = {}
    for named, team in groups.by_student.items():
        member = roster.find(named) if roster else anonymous(named)
        if member is not None:
            found.setdefault(same_name(team), {})[member.id] = member
    listed: dict[str, dict[str, ClassMember]] = {}
    for student in (*(roster.students if roster else ()), *worksheet):
        member = _in_class(student, roster)
        for team in student.teams if member else ():
            assert member is not None
            listed.setdefault(same_name(team), {})[member.id] = replace(member, lms_id=member.lms_id or student.lms_id)
    return {name: tuple(members.values()) for name, members in (found | listed).items()}


def _in_class(student: ClassMember, roster: Roster | None) -> ClassMember | None:
    """The student of a worksheet as the roster has them."""
    if roster is None:
        return student
    keys = (found for key in student.keys if (found := roster.find(key)))
    return next(keys, None) or roster.find("", name=student.name)


def _contradicts(one: Upload, member: ClassMember, team: tuple[ClassMember, ...]) -> bool:
    """Whether the name of an upload is another than that of the member whom its number means.

    The number of a Moodle group may be equal to the number of a participant.
    """
    if _letters(f"{one.name}{one.user}") in map(_letters, member.keys):  # "Participant 101": names are hidden
        return False
    theirs, said = set(same_name(member.name).split()), set(same_name(one.name).split())
    if theirs == said or not (member.first or member.last):
        return theirs != said and bool(team)
    smaller, larger = sorted((theirs, said), key=len)
    return bool(team) or len(smaller) < 2 or not smaller <= larger


def _letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _for_member(one: Upload, member: ClassMember) -> Upload:
    """A group's upload as one member's own: feedback goes back under the member's name and number."""
    prefix = f"{member.name}_{member.lms_id}_assignsubmission_file_" if member.lms_id else ""
    return replace(one, user=member.lms_id, prefix=prefix, team=one.name)


def _no_team(one: Upload, member: ClassMember | None) -> str:
    whose = f" (but the number {one.user} is that of {member.name})" if member else ""
    return (
        f"{one.entry.path}: no student is called {one.name}{whose}. For a group, pass Moodle's grading worksheet "
        f"with --times or --roster, or list its members under this name in groups.csv"
    )
