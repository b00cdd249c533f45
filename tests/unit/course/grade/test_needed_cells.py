"""Which cells marks need: names decide, and what cannot be decided runs."""

from __future__ import annotations

import pytest
from edl_labs.course.grade.assignment import KnownCell

from edl_labs.course.grade.needed_cells import names_of, thrifty
from edl_labs.course.grade.plain_code import is_plain
from edl_labs.course.grade.plan import MarkingPlan, PlannedCell

SOLVED = "def area(width, height):\n    return width * height"


def given(name: str, source: str, *, changed: str = "") -> PlannedCell:
    known = KnownCell("code", name, source, source, {})
    return PlannedCell("code", changed or source, known, runs=True)


def solved(source: str = SOLVED) -> PlannedCell:
    known = KnownCell("code", "solve-area", "def area(): ...", "", {}, "solve", "area")
    return PlannedCell("code", source, known, runs=True)


def own(source: str) -> PlannedCell:
    return PlannedCell("code", source, runs=True)


SHOWS = given("c-plots", "figure = draw(area(2, 3))\nprint(figure)")
DATA = given("c-data", "sizes = [3.0, 1.0]\ntable = {}")
MAKES = given("c-makes", "def outline(sides):\n    return 2 * sum(sides)")


def left_out(*cells: PlannedCell) -> list[str]:
    found = thrifty(MarkingPlan(cells, ()))
    return [c.known.id for c, now in zip(cells, found.cells, strict=True) if c.known and c.runs and not now.runs]


def test_what_only_plots_or_measures_does_not_run():
    assert ["c-plots", "c-data"] == left_out(given("setup", "import math"), MAKES, solved(), SHOWS, DATA)


def test_what_defines_a_name_that_an_answer_uses_runs():
    assert ["c-plots"] == left_out(DATA, solved("def area(width, height):\n    return sizes[width]"), SHOWS)


def test_names_are_followed_through_other_cells():
    first, second = given("c-1", "one = made()"), given("c-2", "two = made(one)")
    reads = given("c-3", "def reads(k):\n    return two[k]")

    assert ["c-plots"] == left_out(first, second, reads, solved("def area(w, h):\n    return reads(w)"), SHOWS)


def test_a_name_that_is_an_answers_own_is_not_the_notebooks():
    body = "def area(width, height):\n    sizes = [width, height]\n    return sizes[0] * sizes[1]"

    assert ["c-data"] == left_out(DATA, solved(body))


@pytest.mark.parametrize(
    "change", ["table['a'] = 1", "table.update(a=1)", "fill(table)", "table |= {1: 2}", "for one in table: one.x()"]
)
def test_what_may_alter_something_needed_runs(change: str):
    cells = (DATA, given("c-alters", change), solved("def area(w, h):\n    return table['a']"), SHOWS)

    assert ["c-plots"] == left_out(*cells)


def test_what_assigns_in_a_module_that_is_needed_runs():
    setup = given("setup", "import torch")

    assert [] == left_out(
        setup, given("c-sets", "torch.settings.x = 1"), solved("def area(w, h):\n    return torch.x()")
    )


def test_what_the_student_wrote_or_changed_runs_with_all_that_it_uses():
    assert ["c-plots"] == left_out(DATA, solved(), own("print(sizes)"), SHOWS)
    assert ["c-plots"] == left_out(DATA, solved(), given("c-more", "print(1)", changed="print(sizes)"), SHOWS)


UNDECIDED = {
    "magic": "%matplotlib inline",
    "shell": "!ls",
    "star import": "from math import *",
    "exec": "exec('def area(w, h): return w * h')",
    "eval": "area = eval('lambda w, h: w * h')",
    "globals": "def area(w, h):\n    return globals()['sizes'][w]",
    "history": "def area(w, h):\n    return Out[3]",
    "last result": "x = _",
    "result by number": "x = _12",
    "shell object": "get_ipython().user_ns",
    "frames": "import sys\nsys._getframe()",
    "modules": "import sys",
    "other modules": "import secrets",
    "global": "def area(w, h):\n    global calls\n    calls = 1",
    "mutable default": "def area(w, h, seen=[]):\n    seen.append(w)",
    "cache": "import functools\n@functools.lru_cache\ndef area(w, h):\n    return w * h",
    "own cache": "seen = {}\ndef area(w, h):\n    seen[w] = h",
    "iterator": "seen = iter([1, 2])\ndef area(w, h):\n    return next(seen)",
    "list outside": "seen = []\ndef area(w, h):\n    seen.append(w)\n    return len(seen)",
    "held elsewhere": "seen = []\nheld = seen\ndef area(w, h):\n    held.append(w)",
    "attribute of a function": "def area(w, h):\n    area.calls = 1",
    "attribute of a class": "class Area:\n    seen = []",
    "patch": "import torch\ntorch.add = None",
    "deletes": "del sizes",
    "dunder": "def area(w, h):\n    return area.__globals__['x']",
    "does not parse": "def area(w, h:",
    "drawn at the top": "import random\nscale = random.random()\ndef area(w, h):\n    return scale * w",
    "exercises": "from edl_labs.exercises import lab01_gpu_basics",
}


@pytest.mark.parametrize("name", UNDECIDED)
def test_what_cannot_be_decided_runs_everything(name: str):
    cells = (DATA, SHOWS, solved(), own(UNDECIDED[name]))

    assert [] == left_out(*cells)


PLAIN = {
    "constants": "TABLE = {'a': 1, 'b': 2}\nA, B = 1, 2.0\ndef area(w, h):\n    return TABLE[w] * A * TABLE.get(h, B)",
    "helpers": "import math\ndef half(x):\n    return math.floor(x / 2)\ndef area(w, h):\n    return half(w) * h",
    "class": "class Box:\n    def __init__(self, w):\n        self.w = w\n    def area(self):\n        return self.w",
    "dataclass": "from dataclasses import dataclass\n@dataclass\nclass Box:\n    w: float = 1.0",
    "closure": "def area(w, h):\n    n = 0\n    def count():\n        nonlocal n\n        n += 1\n    count()",
    "throwaway": "def area(w, h):\n    return sum(1 for _ in range(w) for _ in range(h))",
    "no_grad": "import torch\n@torch.no_grad()\ndef area(w, h):\n    return torch.tensor(w) * h",
    "prints": "print(area(2, 3))",
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_code_is_taken_for_what_it_is(name: str):
    assert is_plain([PLAIN[name]])


def test_a_released_cell_that_cannot_be_decided_runs_everything():
    assert [] == left_out(given("c-odd", "exec(text)"), SHOWS, solved())
    assert names_of("print(vars(thing))").decidable
    assert not names_of("print(vars())").decidable
