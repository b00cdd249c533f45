"""Every lab as a student meets it: started, run, answered wrongly, helped, restarted; light and dark, wide and narrow.

What there is to do in a lab is read from its source and found in the page: a new lab is covered as it is.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks.lab_exercises import lab_names
from edl_labs.checks.outcome_display import number_text
from tests.browser.axe import violations
from tests.browser.explorers import explorers
from tests.browser.jupyter import OpenNotebook, Started
from tests.browser.labs import Material, calls_one_of, live_names, material, waits
from tests.course.browser import NEEDS_BROWSER
from tests.sampling import few

EVERY_LAB = few(lab_names(), quick=1)
TALL = 3000  # pixels: a notebook in a dozen pictures
pytestmark = [*NEEDS_BROWSER, pytest.mark.timeout(2400)]  # a lab's cells, twice, on two busy cores


def opened(server: Started, scratch: Path, page: Any, lab: Material) -> OpenNotebook:
    """The lab as it was handed out, in a copy that this test may write in."""
    shutil.copy(server.folder / lab.lab.name / f"{lab.lab.name}.ipynb", scratch)
    return OpenNotebook(page, server, f"{scratch.name}/{lab.lab.name}.ipynb")


def too_wide(page: Any, selector: str) -> list[str]:
    """Texts of the elements whose content is wider than they are, so that one would have to scroll sideways."""
    found: list[str] = page.eval_on_selector_all(
        selector, "all => all.filter(e => e.scrollWidth > e.clientWidth + 2).map(e => e.textContent.slice(0, 200))"
    )
    return found


def seen_in_every_light(notebook: OpenNotebook, name: str) -> dict[str, list[str]]:
    """Pictures in light and dark, wide and narrow; what axe-core and the page's width have against each."""
    found: dict[str, list[str]] = {}
    for theme in ("Light", "Dark"):
        notebook.theme(f"JupyterLab {theme}")
        for width in (1280, 900):
            notebook.page.set_viewport_size({"width": width, "height": TALL})
            view = f"{name}-{theme.lower()}-{width}"
            notebook.shot_of_all(view, most=16)
            found[view] = too_wide(notebook.page, ".jp-RenderedHTMLCommon.jp-OutputArea-output")
        found[f"{name}-{theme.lower()}"] = violations(notebook.page)
    notebook.page.set_viewport_size({"width": 1280, "height": 900})
    notebook.theme("JupyterLab Light")
    return {view: problems for view, problems in found.items() if problems}


def moved(notebook: OpenNotebook, name: str) -> list[list[str]]:
    """Every control of every live picture moved; what they are called, a list for each picture."""
    names = []
    for number, explorer in enumerate(explorers(notebook.page), start=1):
        names.append(explorer.move_all())
        notebook.shot(f"{name}-widget-{number}", explorer.place)
    return names


@pytest.mark.parametrize("name", EVERY_LAB)
def test_it_is_run_predicted_moved_and_read(server: Started, scratch: Path, page: Any, name: str):
    lab = material(name)
    notebook = opened(server, scratch, page, lab)
    notebook.run_all()
    states = {one.name: notebook.output(notebook.code(f'check("{one.name}")')) for one in lab.coded}
    waiting = violations(page)
    predicted = notebook.predict_all()
    moves = moved(notebook, lab.short)
    problems = seen_in_every_light(notebook, lab.short)

    assert {} == {one: told for one, told in states.items() if f"{one}: not attempted" not in told}
    assert f"0 / {number_text(lab.lab.points)}" in notebook.output(notebook.code("Progress("))
    assert predicted > 0
    assert not page.get_by_text("Predict first.").count()
    assert lab.live_pictures(solved=False) == len(moves)
    assert all(moves), moves
    assert [] == waiting, "\n".join(waiting)
    assert {} == problems
    assert [] == notebook.pictures_without_text()
    assert [] == notebook.long_texts()
    assert [] == notebook.tracebacks()
    assert [] == notebook.errors


@pytest.mark.parametrize("name", EVERY_LAB)
def test_a_wrong_answer_a_hint_the_right_one_and_a_restart(server: Started, scratch: Path, page: Any, name: str):
    lab = material(name)
    exercise, mistake = lab.first, lab.mistake()
    check = f'check("{exercise.name}")'
    notebook = opened(server, scratch, page, lab)
    notebook.run_above(notebook.code(check))
    notebook.predict_all()
    solve = notebook.having(f"solve-{exercise.name.replace('_', '-')}")
    notebook.write(solve, lab.mistaken())
    notebook.run(solve)
    card = " ".join(notebook.run(notebook.code(check)).inner_text().split())
    notebook.shot(f"{lab.short}-wrong-answer", notebook.code(check))
    asked = notebook.below(notebook.code(check))
    notebook.write(asked, f'hint("{exercise.name}")')
    hint = notebook.run(asked).inner_text()
    notebook.write(solve, lab.lab.solution_cell(exercise.name))
    notebook.run(solve)
    right = notebook.run(notebook.code(check)).inner_text()
    notebook.shot(f"{lab.short}-right-answer", notebook.code(check))
    notebook.restart()
    notebook.run(notebook.having("setup"))
    kept = notebook.run(notebook.code("Progress(")).inner_text()
    notebook.shot(f"{lab.short}-after-a-restart", notebook.code("Progress("))
    lost = notebook.run(notebook.code(check)).inner_text()
    notebook.run_above(notebook.code(check))
    boxes = notebook.predict_all()
    again = notebook.run(notebook.code(check)).inner_text()

    assert f"{exercise.name}: wrong" in card or f"{exercise.name}: partly" in card
    assert mistake.told.replace("`", "") in card
    assert "Next" in card
    assert f"Hint 1 of {len(exercise.hints)}" in hint
    assert f"{exercise.name}: passed" in right
    assert f"{number_text(exercise.points)} / {number_text(lab.lab.points)}" in kept
    assert "before the restart" in kept
    assert "in this notebook yet" in lost
    assert f"{exercise.name}: passed" in again
    assert boxes == 0, "what was predicted before the restart is asked for again"
    assert [] == notebook.errors


@pytest.mark.parametrize("name", EVERY_LAB)
def test_solved_in_notebook_7(server: Started, scratch: Path, page: Any, name: str):
    lab = material(name)
    path = scratch / f"{name}.ipynb"
    lab.write_solved(server.folder / name / path.name, path)
    notebook = OpenNotebook(page, server, f"{scratch.name}/{path.name}", seven=True)
    notebook.run_all()
    notebook.predict_all()
    states = {one.name: notebook.output(notebook.code(f'check("{one.name}")')) for one in lab.coded}
    moves = moved(notebook, f"{lab.short}-solved")
    notebook.page.set_viewport_size({"width": 1280, "height": TALL})
    notebook.shot_of_all(f"{lab.short}-solved-notebook7", most=16)
    found = violations(page)

    assert {} == {one: told for one, told in states.items() if f"{one}: passed" not in told}
    assert lab.live_pictures(solved=True) == len(moves)
    assert all(moves), moves
    assert [] == found, "\n".join(found)
    assert not page.get_by_text("This cell needs a working").count()
    assert [] == notebook.pictures_without_text()
    assert [] == notebook.long_texts()
    assert [] == notebook.tracebacks()
    assert [] == notebook.errors


def test_what_is_live_and_what_waits_is_read_from_the_source():
    shown = ast.parse("from edl_labs.ui.x import TimelineExplorer\nTimelineExplorer('A100')")
    later = ast.parse("with requires_solution('x'):\n    display(UnderflowSlider(gradients))")

    assert {"TimelineExplorer", "UnderflowSlider", "BudgetExplorer", "BucketExplorer"} <= live_names()
    assert (True, False) == (calls_one_of(shown, live_names()), waits(shown))
    assert (True, True) == (calls_one_of(later, live_names()), waits(later))
    assert not calls_one_of(ast.parse("print(TimelineExplorer)"), live_names())
