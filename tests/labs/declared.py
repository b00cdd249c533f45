"""The proof of declared cells alone: `python -m tests.labs.declared LAB…`. A line for each lab and each difference."""

from __future__ import annotations

import resource
import sys
from functools import partial
from pathlib import Path

from edl_labs.checks.probe_process import ProbeProcess
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.answer_runs import Answer, AnswerRuns
from edl_labs.course.lab.declared_proof import DeclaredProof
from edl_labs.course.lab.goldens import exercises_of
from edl_labs.course.lab.read import read_lab


def proved(course: Course, lab_name: str) -> tuple[DeclaredProof, list[str]]:
    """The proof of one lab, and a sentence for each exercise in which all cells make a difference."""
    lab = read_lab(course, lab_name)
    with course.activated():
        runs = AnswerRuns(lab, exercises_of(course, lab), 1)
        origin = ProbeProcess(lab.namespace_cells(), exercises_folder=course.exercises)
        answer = partial(Answer, start=origin.fork, seeds=1)
        solution = answer("solution", [], names=tuple(runs.registered))
        mistakes = {
            one.label: answer(one.label, [(one.label, one.code)], names=[one.exercise], target=one.exercise)
            for one in lab.mistakes
        }
        with origin:
            runs.gather([solution, *mistakes.values()])
        runs.want(solution)
        proof = DeclaredProof(course, runs, solution, mistakes)
        proof.run()
        found = {name: proof.difference(name) for name in runs.registered}
    return proof, [f"{name}: {text}" for name, text in found.items() if text]


if __name__ == "__main__":
    course = Course(Path(__file__).parents[2])
    for name in sys.argv[1:]:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        proof, differences = proved(course, name)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        answers = sum(len(proof.answers(exercise)) for exercise in proof.runs.registered)
        print(
            f"{name}: {answers} answers, {len(differences)} differences, {cpu_s:.0f} s of CPU", *differences, sep="\n"
        )
