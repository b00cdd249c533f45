"""python -m tools.mutants LAB [EXERCISE...]: which small mistakes in the solutions of a lab lose no points."""

from __future__ import annotations

from typing import Annotated

import typer

from edl_labs.cli import main
from edl_labs.cli.output import AsJson, ProgressLines, emit, stop, table
from edl_labs.course.course_folder import Course
from edl_labs.course.lab.prove import WRONG_SEEDS
from tools.mutants.mutation import LabMutation, mutate


def show_mutants(
    lab: Annotated[str, typer.Argument(help="The lab whose solutions to change.")],
    exercises: Annotated[list[str] | None, typer.Argument(help="The exercises to change (default: all).")] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many seeds to judge each mutant with.")] = WRONG_SEEDS,
    sample: Annotated[int | None, typer.Option(min=1, help="How many mutants to try for each exercise.")] = None,
    as_json: AsJson = False,
) -> None:
    """Make small mistakes in each solution, one at a time, and list those that lose no points."""
    with ProgressLines(quiet=as_json) as progress:
        found = mutate(Course.find(), lab, exercises or (), seeds=seeds, sample=sample, progress=progress)
    if as_json:
        emit(found.to_json())
    else:
        _show(found)
    stop(0 if found.ok else 1)


def _show(found: LabMutation) -> None:
    columns = ["exercise", "mutants", "lose points", "not under each seed", "equivalent", "survive", "share", "s", ""]
    rows = [
        [
            one.name,
            *map(str, (one.mutants, one.killed, len(one.sometimes), one.equivalent, len(one.survivors))),
            f"{one.share:.1%}",
            f"{one.seconds:.0f}",
            "enough" if one.ok else "to fix",
        ]
        for one in found.exercises
    ]
    table(f"{found.lab}, {found.seeds} seeds", columns, rows)
    for one in found.exercises:
        for mutant in one.survivors:
            print(f"{one.name}:{mutant.line}: loses no points: {mutant.change}")
        for mutant in one.sometimes:
            print(f"{one.name}:{mutant.line}: full marks with {mutant.seeds_passed} of the seeds: {mutant.change}")
        for text in (*one.problems, *one.remarks):
            print(f"{one.name}: {text}")


if __name__ == "__main__":
    main(lambda: typer.run(show_mutants))
