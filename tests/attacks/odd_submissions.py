"""Odd and ordinary submissions by the hundred, to a lab with cells that show things: drawn by number, always alike."""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from random import Random

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell

from edl_labs.course.assignment import LAB_ROLES, Assignment, KnownCell
from tests.course.course_fixture import SOLUTIONS, Course, solve_cell

# What a lab has between its exercises: id, the cell that it follows, text.
SHOWING = (
    ("c-import", "setup", "import math\n\nscale = 2.0"),
    ("c-data", "parameters", "samples = [3.0, 1.0, 2.0]\nsamples.sort()"),
    ("c-helper", "c-data", "def clamp(value, low=0.0, high=1e9):\n    return max(low, min(high, value))"),
    ("c-settings", "c-helper", "settings = {'unit': 1.0}\nsettings['factor'] = samples[0]"),
    ("c-show", "check-area", "shown = [area(s, s) for s in samples]\nprint(shown)"),
    ("c-count", "c-show", "counted = len(shown)\nbest = max(shown)"),
    ("c-alter", "check-box_area", "settings['factor'] = settings['factor'] * 1.0\nprint(box_area(2.0))"),
    ("c-log", "c-settings", "LOG = [1.0]\n\ndef record(value):\n    LOG.append(value)"),
    ("c-record", "c-log", "record(3.0)"),
    ("c-class", "c-record", "class Tally:\n    n = 0\n\ndef bump():\n    Tally.n += 1"),
    ("c-bump", "c-class", "bump()\nprint(Tally.n)"),
    ("c-view", "c-bump", "rows = [1.0]\nview, other = rows, 2.0"),
    ("c-through", "c-view", "view.append(other)\nfor each in [rows]:\n    each.append(other)"),
    ("c-marks", "c-through", "marked = []\n\ndef mark(function):\n    marked.append(function)\n    return function"),
    ("c-marked", "c-marks", "@mark\ndef one():\n    return 1.0\nprint(one())"),
    ("c-modules", "c-marked", "import os\nfrom types import SimpleNamespace\n\nplaces = SimpleNamespace(n=0)"),
    ("c-patch", "c-modules", "table = vars(places)\ntable['n'] = 1\nos.environ['SHOWN'] = '1'"),
    ("c-late", "check-halves", "halved = halves([4.0, 8.0])\ntotal = sum(halved)"),
)
# Cells that change what an answer may read without binding its name: the lab declares them.
GIVEN = ("c-record", "c-bump", "c-through", "c-marked", "c-patch")
AREAS = (
    *("return width * height",) * 4,
    *("return width + height", "raise ValueError(width)", "raise NotImplementedError", "return None"),
    "return clamp(width) * height",
    "return width * height * settings['factor']",
    "return width * height * settings['unit'] * samples[0]",
    "return math.prod((width, height)) * scale / 2.0",
    "return width * height * counted / 3",
    "return best and width * height",
    "return eval('width * height')",
    "exec('x = width * height', globals())\n    return globals()['x']",
    "return outside(width, height)",
    "return width * height * (1 if len(samples) == 3 else 2)",
    "try:\n        return total and width * height\n    except NameError:\n        return 0.0",
    "return width * height * (1 if len(LOG) == 2 else 2)",
    "return width * height * (1 if Tally.n == 1 else 2)",
    "return width * height * (1 if len(rows) == 3 else 2)",
    "return width * height * (1 if len(marked) == 1 else 2)",
    "return width * height * (1 if places.n == 1 else 2)",
    "record(width)\n    return width * height * (1 if len(LOG) < 5 else 2)",
)
BOXES = (
    *("return 6 * area(side, side)",) * 3,
    *("return 6 * side * side", "return area(side, side)", "return 6 * clamp(area(side, side))", "return shown[0]"),
)
HALVES = (
    *("return [value / 2 for value in values]",) * 3,
    *("return [values[0] / 2] + values[1:]", "return [value / scale for value in values]", "return halved"),
    "seen.append(values)\n    return [value / 2 for value in values]",
    "return [value / 2 for value in values] if len(halved) == 2 else []",
)
LONGEST = ("return max(values)", "return sorted(values)[-1]", "return values[0]", "return samples and max(values)")
OWN = (
    "def outside(width, height):\n    return width * height",
    "outside = lambda width, height: width * height",
    "class Outside:\n    def __call__(self, w, h):\n        return w * h\noutside = Outside()",
    "seen = []",
    "print(area(2.0, 3.0))",
    "print(best, counted)",
    "samples = [1.0, 1.0, 1.0]",
    "settings = {'unit': 1.0, 'factor': 1.0}",
    "def clamp(value):\n    return value",
    "from math import *",
    "%matplotlib inline",
    "!true",
    "import sys\nsys.setrecursionlimit(2000)",
    "samples[0] = 1.0",
    "settings.update(unit=1.0, factor=1.0)",
    "del samples",
    "x = 1 / 0",
    "def area(width, height)",
    "total = 5.0",
    "exec('scale = 2.0')",
    "import functools\narea = functools.cache(area)",
    "scale = scale",
    "math = None",
    "for samples in ([1.0], [1.0, 2.0, 3.0]):\n    pass",
    "_, wanted = samples[:2]",
)
FORMS = ("", "", "", "delete", "move to the end", "move to the start", "change", "twice", "new ids", "swap")


def with_showing(assignment: Assignment) -> Assignment:
    """The assignment with cells between its exercises, most of which only show something."""
    cells = [replace(cell, lab_role=cell.id) if cell.id in LAB_ROLES else cell for cell in assignment.cells]
    for name, after, text in SHOWING:
        place = next(i for i, cell in enumerate(cells) if cell.id.replace("_", "-") == after.replace("_", "-"))
        cells.insert(place + 1, KnownCell("code", name, text, text, {}, lab_role="given" if name in GIVEN else ""))
    return replace(assignment, cells=tuple(cells))


def shown(notebook: NotebookNode) -> NotebookNode:
    """A notebook of the fixture lab with the showing cells in it, as they were released."""
    made = copy.deepcopy(notebook)
    for name, after, text in SHOWING:
        made.cells.insert(_place(made, after) + 1, new_code_cell(text, id=name))
    return made


def drawn(course: Course, number: int) -> bytes:
    """Submission `number`."""
    random = Random(number)
    bodies = {"area": AREAS, "box_area": BOXES, "halves": HALVES, "longest": LONGEST}
    texts = {name: solve_cell(name, body=random.choice(bodies[name])) for name in SOLUTIONS}
    notebook = shown(course.answered(texts))
    for index in range(random.choice((0, 0, 1, 1, 2))):
        place = random.randrange(len(notebook.cells) + 1)
        notebook.cells.insert(place, new_code_cell(random.choice(OWN), id=f"own-{index}"))
    _deform(notebook, random.choice(FORMS), random)
    return json.dumps(notebook).encode()


def _deform(notebook: NotebookNode, how: str, random: Random) -> None:
    code = [i for i, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    place = random.choice(code)
    if how == "delete":
        del notebook.cells[place]
    elif how.startswith("move"):
        cell = notebook.cells.pop(place)
        notebook.cells.insert(0 if how.endswith("start") else len(notebook.cells), cell)
    elif how == "change":
        notebook.cells[place]["source"] += "\nprint('changed', scale)"
    elif how == "twice":
        notebook.cells.insert(random.randrange(len(notebook.cells)), {**notebook.cells[place], "id": "twin"})
    elif how == "new ids":
        for index, cell in enumerate(notebook.cells):
            cell["id"] = f"fresh-{index}"
    elif how == "swap":
        other = random.choice(code)
        cells = notebook.cells
        cells[place], cells[other] = cells[other], cells[place]


def _place(notebook: NotebookNode, name: str) -> int:
    wanted = name.replace("_", "-")
    return next(i for i, cell in enumerate(notebook.cells) if cell.id.replace("_", "-") == wanted)
