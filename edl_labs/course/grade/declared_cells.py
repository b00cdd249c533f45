"""The cells that run: the student's, those that the source declares, and those that define a name that these read.

A lab declares its set-up, its parameters and what is given for its answers. A released cell without such a role only
shows something: while it is unchanged, no mark needs it.
"""

from __future__ import annotations

from dataclasses import replace

from edl_labs.course.grade.bounded_call import bounded_call
from edl_labs.course.grade.cell_names import needed
from edl_labs.course.grade.plan import MarkingPlan


def declared_plan(plan: MarkingPlan) -> MarkingPlan:
    """The plan in which demonstrations do not run; the plan itself where all cells have to.

    All do where the release declares no roles, and where the student's code cannot be read.
    """
    running = [index for index, cell in enumerate(plan.cells) if cell.runs]
    shows = [plan.cells[index].is_demonstration for index in running]
    if not any(shows) or not any(cell.known and cell.known.lab_role for cell in plan.cells):
        return plan
    found = bounded_call(needed, [plan.cells[index].source for index in running], shows)
    if found is None or len(found) == len(running):
        return plan
    kept = {running[place] for place in found}
    return replace(plan, cells=tuple(replace(cell, runs=cell.runs and i in kept) for i, cell in enumerate(plan.cells)))
