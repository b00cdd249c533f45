"""The arguments of `edl-labs test`, and the tables that it shows: of proofs, and of forged evidence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from edl_labs.cli.output import ProgressLines, emit, table
from edl_labs.errors import UsageError
from edl_labs.units import counted

if TYPE_CHECKING:
    from edl_labs.course.course_folder import Course
    from edl_labs.course.lab.forge import LabForgery
    from edl_labs.course.lab.proofs import ExerciseProof, Found, LabProof


def labs_and_exercises(course: Course, names: list[str]) -> tuple[list[str], list[str]]:
    """The labs and the exercises among `names`; every lab where none is named."""
    from edl_labs.course.course_folder import LAB_NAME

    labs = [name for name in names if LAB_NAME.fullmatch(name)] or course.lab_names()
    exercises = [name for name in names if not LAB_NAME.fullmatch(name)]
    if exercises and len(labs) != 1:
        why = f"{exercises[0]} is an exercise, so exactly one lab must be named"
        raise UsageError("the lab of the exercises is not clear", why=why, next="name one lab before the exercises")
    return labs, exercises


def forge_labs(course: Course, names: list[str], exercises: list[str], *, as_json: bool) -> bool:
    """Show what lies earned in each lab; whether it was nothing anywhere."""
    from edl_labs.course.lab.forge import forge

    with ProgressLines(quiet=as_json) as progress:
        found = [forge(course, name, exercises=exercises, progress=progress) for name in names]
    ok = all(one.ok for one in found)
    if as_json:
        emit({"schema": 1, "ok": ok, "labs": [one.to_json() for one in found]})
        return ok
    for lab in found:
        rows = [
            [
                one.name,
                ", ".join(one.claims) or "none: every field is an answer",
                str(one.replacements),
                str(len(one.attributes)),
                str(one.changes),
                f"{len(one.gains)}{' (trusting)' if one.trusting else ''}",
                f"{one.cpu_s:.1f} s",
            ]
            for one in lab.exercises
        ]
        table(lab.lab, ["exercise", "claims", "replacements", "attributes", "changes", "gains", "CPU"], rows)
        for gain in [gain for one in lab.exercises for gain in one.gains]:
            print(gain, file=sys.stderr)
    print(forged_summary(found))
    return ok


def forged_summary(labs: list[LabForgery]) -> str:
    """What was tried in all labs, what it earned and cost, in a sentence."""
    every = [one for lab in labs for one in lab.exercises]
    claims, attributes = (sum(len(getattr(one, part)) for one in every) for part in ("claims", "attributes"))
    replaced, changed = (sum(getattr(one, part) for one in every) for part in ("replacements", "changes"))
    trusted = sum(len(one.gains) for one in every if one.trusting)
    gains = sum(len(one.gains) for one in every) - trusted
    return (
        f"{counted(len(every), 'exercise')}: {counted(claims, 'claim')}, {counted(replaced, 'replacement')}; "
        f"{counted(attributes, 'attribute')} of objects, {counted(changed, 'change')}; {counted(gains, 'gain')}, and "
        f"{trusted} in trusting exercises; {sum(lab.cpu_s for lab in labs):.0f} s of CPU"
    )


def show_proofs(proofs: list[LabProof]) -> None:
    """A table for each lab, and what is missing."""
    columns = ["exercise", "points", "stub", "solution", "mistakes", "hints", "hostile", "library", ""]
    for proof in proofs:
        table(
            f"{proof.lab}, {counted(proof.seeds, 'seed')}",
            columns,
            [_proof_row(exercise) for exercise in proof.exercises],
        )
        for problem in proof.problems:
            print(problem, file=sys.stderr)


def show_messages(proofs: list[LabProof]) -> None:
    """The message of each mistake, below its name; `!` marks those with another message than declared."""
    for exercise in [exercise for proof in proofs for exercise in proof.exercises]:
        for one in exercise.mistakes:
            print(f"{' ' if one.ok else '!'} {exercise.name}.{one.name}: {one.said}")
            for word, text in (("why", one.why), ("next", one.next)):
                if text:
                    print(f"    {word + ':':5} {text}")


def _proof_row(exercise: ExerciseProof) -> list[str]:
    from edl_labs.course.lab.proofs import NOT_TRIED

    def sign(part: str) -> str:
        seen: Found = getattr(exercise, part)
        return "" if seen == NOT_TRIED else "✓" if seen.ok else "✗"

    by_hand, quick = exercise.kind == "explain", exercise.hostile == NOT_TRIED
    told = sum(one.ok for one in exercise.mistakes)
    return [
        exercise.name,
        f"{exercise.points:g}" if exercise.points else "",
        "by hand" if by_hand else sign("stub"),
        "by hand" if by_hand else sign("solution"),
        "" if by_hand else f"{told}/{len(exercise.mistakes)} named",
        sign("hints"),
        "" if by_hand else sign("hostile"),
        "" if by_hand else sign("library"),
        ("passed (quick)" if quick else "complete") if exercise.ok else f"{len(exercise.problems)} to fix",
    ]
