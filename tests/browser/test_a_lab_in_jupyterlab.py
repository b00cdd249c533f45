"""A lab as a student meets it: started, run, answered wrongly, helped, restarted; light and dark, wide and narrow."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from edl_labs.checks.lab_exercises import lab_names
from tests.browser.axe import violations
from tests.browser.jupyter import ROOT, OpenNotebook, Started
from tests.course.browser import NEEDS_BROWSER
from tests.sampling import few

pytestmark = NEEDS_BROWSER
LAB = "lab01_gpu_basics"
WRONG = "def finish_times(program, *, launch_s):\n    return 0.0, 0.0"


def copy_of_lab(server: Started, scratch: Path, lab: str = LAB) -> str:
    """A copy of a started lab that this test may write in; its path as the server knows it."""
    shutil.copy(server.folder / lab / f"{lab}.ipynb", scratch)
    return f"{scratch.name}/{lab}.ipynb"


def too_wide(page: Any, selector: str) -> list[str]:
    """Texts of the elements whose content is wider than they are, so that one would have to scroll sideways."""
    found: list[str] = page.eval_on_selector_all(
        selector, "all => all.filter(e => e.scrollWidth > e.clientWidth + 2).map(e => e.textContent.slice(0, 200))"
    )
    return found


def solution(name: str, lab: str = LAB) -> str:
    """The cell that solves an exercise, as the author wrote it."""
    text = (ROOT / "solutions" / lab / f"{lab}.py").read_text()
    return text.partition(f'# %% solve="{name}"\n')[2].partition("\n# %%")[0].strip()


def test_a_wrong_answer_a_hint_the_right_one_and_a_restart(server: Started, scratch: Path, page: Any):
    lab = OpenNotebook(page, server, copy_of_lab(server, scratch))
    lab.run_all()
    check, progress = lab.code('check("finish_times")'), lab.code("Progress(")
    stub = check.inner_text()
    lab.write(lab.code("def finish_times"), WRONG)
    lab.run(lab.code("def finish_times"))
    card = lab.run(check).inner_text()
    lab.shot("lab01-wrong-answer", check)
    lab.write(lab.code("slices, sides"), 'hint("finish_times")')
    hint = lab.run(lab.code('hint("finish_times")')).inner_text()
    lab.write(lab.code("def finish_times"), solution("finish_times"))
    lab.run(lab.code("def finish_times"))
    right = lab.run(check).inner_text()
    lab.shot("lab01-right-answer", check)
    lab.restart()
    lab.run(lab.code("# On Colab"))
    kept = lab.run(progress).inner_text()
    lab.shot("lab01-after-a-restart", progress)
    again = lab.run(check).inner_text()
    lab.run_all()

    assert "finish_times: not attempted" in stub
    assert "finish_times: wrong" in card
    assert "Next" in card
    assert "Hint 1 of 3" in hint
    assert "finish_times: passed" in right
    assert "there is no finish_times in this notebook yet" in again
    assert "2 / 20" in kept
    assert "before the restart" in kept
    assert "finish_times: passed" in check.inner_text()
    assert [] == lab.errors


@pytest.mark.timeout(2400)  # a lab's cells, on two busy cores, and forty pictures
@pytest.mark.parametrize("name", few(lab_names(), quick=1))
def test_it_reads_in_light_and_dark_wide_and_narrow(server: Started, scratch: Path, page: Any, name: str):
    lab = OpenNotebook(page, server, copy_of_lab(server, scratch, name))
    lab.run_all()
    found: dict[str, list[str]] = {}
    wide: dict[str, list[str]] = {}
    for theme in ("Light", "Dark"):
        lab.theme(f"JupyterLab {theme}")
        for width in (1280, 900):
            page.set_viewport_size({"width": width, "height": 900})
            view = f"{name.partition('_')[0]}-{theme.lower()}-{width}"
            lab.shot_of_all(view)
            wide[view] = too_wide(page, ".jp-RenderedHTMLCommon.jp-OutputArea-output")
        found[theme] = violations(page)

    assert {"Light": [], "Dark": []} == found, "\n".join(found["Light"] + found["Dark"])
    assert {} == {view: texts for view, texts in wide.items() if texts}
    assert [] == lab.pictures_without_text()
    assert [] == lab.long_texts()
    assert [] == lab.errors


def test_notebook_7_shows_the_same(server: Started, scratch: Path, page: Any):
    lab = OpenNotebook(page, server, copy_of_lab(server, scratch), seven=True)
    lab.run_all()
    lab.shot_of_all("lab01-notebook7")

    assert "finish_times: not attempted" in lab.code('check("finish_times")').inner_text()
    assert "0 / 20" in lab.code('Progress("lab01_gpu_basics")').inner_text()
    assert [] == violations(page)
    assert [] == lab.pictures_without_text()
    assert [] == lab.errors
