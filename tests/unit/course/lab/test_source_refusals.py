"""Every refusal of a lab's text: the exact message, with file and line."""

from __future__ import annotations

import re

import pytest

from edl_labs.course.course_folder import Course
from edl_labs.course.lab.read import read_lab
from edl_labs.errors import SourceError
from tests.unit.course.lab import kit

PY = f"solutions/{kit.LAB}/{kit.LAB}.py"
SOLVE, CHECK = '# %% solve="doubled_time"', '# %% check="doubled_time"'
BODY = '    """Twice the duration."""\n    ### BEGIN SOLUTION'
REGION = kit.SOURCE[kit.SOURCE.index("    ### BEGIN") : kit.SOURCE.index("### END")] + "### END SOLUTION"
TRY = "from edl_labs import check, hint"

REFUSALS = {
    "text before the first cell": ("# %% [markdown]", "import os\n\n# %% [markdown]", 1, None),
    "a jupytext header": (
        "# %% [markdown]\n# # D",
        "# ---\n# x: 1\n# ---\n# %% [markdown]\n# # D",
        1,
        "there is text before the first cell",
    ),
    "an empty cell": ("# %%\nprint(size)", "# %%\n\n# %%\nprint(size)", 31, "the cell is empty"),
    "prose without its sign": ("# About", "About", 4, "a line of prose does not start with '# '"),
    "prose without a space": ("# About", "#About", 4, "a line of prose does not start with '# '"),
    "a blank line in prose": ("#\n# About", "\n# About", 3, "a line of prose does not start with '# '"),
    "no Python": ("print(size)", "print(size", 32, "the cell is not valid Python: '(' was never closed"),
    "a magic": ("print(size)", "%matplotlib inline", 32, "the cell is not valid Python: invalid syntax"),
    "no title": ("# # Doubling", "# Doubling", 1, "the first cell is not the lab's title"),
    "no setup cell": ("# %% setup", "# %%", 6, "the lab has no setup cell"),
    "no parameters cell": ("# %% parameters", "# %%", 12, "the lab has no parameters cell"),
    "a second parameters cell": (
        "# %%\nprint(size)",
        "# %% parameters\nsize = 5",
        31,
        "there is a second parameters cell",
    ),
    "a second setup cell": ("# %%\nprint(size)", "# %% setup\nimport math", 31, "there is a second setup cell"),
    "setup in another place": ("# %% setup", "# %%\nimport math\n\n# %% setup", 9, "the setup cell is not cell 2"),
    "an unguarded setup": (
        "except ImportError",
        "except ValueError",
        6,
        "the setup cell imports edl_labs outside `try`",
    ),
    "parameters that compute": (
        "size = 4",
        "size = 4\nprint(size)",
        14,
        "the parameters cell contains something other than assignments",
    ),
    "parameters twice": ('label = "full"', "size = 5", 14, "the parameter size is assigned twice"),
    "a check without a solve": (f"{CHECK}", '# %% check="halved"', 28, "the check cell of halved has no solve cell"),
    "a check above its solve": (
        "# %% given",
        f'{CHECK}\ncheck("doubled_time")\n\n# %% given',
        16,
        "the check cell of doubled_time comes before its solve cell",
    ),
    "a solve without a check": (
        f'{CHECK}\ncheck("doubled_time")\n',
        "",
        20,
        "the solve cell of doubled_time has no check cell",
    ),
    "two solves of a name": (
        "# %%\nprint(size)",
        f"{SOLVE}\ndef doubled_time():\n    ### BEGIN SOLUTION\n    pass\n    ### END SOLUTION",
        31,
        "there is a second solve cell for doubled_time",
    ),
    "two checks of a name": (
        "# %%\nprint(size)",
        f'{CHECK}\ncheck("doubled_time")',
        31,
        "there is a second check cell for doubled_time",
    ),
    "two explains of a name": (
        "# %%\nprint(size)",
        '# %% [markdown] explain="why_twice"\n# Why?',
        34,
        "there is a second explain cell for why_twice",
    ),
    "a name for both kinds": (
        '[markdown] explain="why_twice"',
        '[markdown] explain="doubled_time"',
        34,
        "doubled_time is both a solve and an explain exercise",
    ),
    "a name that nbgrader has for a check": (
        '[markdown] explain="why_twice"',
        '[markdown] explain="check_doubled_time"',
        34,
        "check_doubled_time cannot be an exercise's name here",
    ),
    "more in a check cell": (
        'check("doubled_time")\n',
        'check("doubled_time")\nprint(1)\n',
        29,
        'the check cell of doubled_time contains something other than check("doubled_time")',
    ),
    "another check in a check cell": (
        'check("doubled_time")\n',
        'check("why_twice")\n',
        29,
        'the check cell of doubled_time contains something other than check("doubled_time")',
    ),
    "a bare check cell": (
        'check("doubled_time")\n',
        "check('doubled_time')\n",
        29,
        'the check cell of doubled_time contains something other than check("doubled_time")',
    ),
    "no region": (BODY, '    """Twice."""', 25, "### END SOLUTION has no ### BEGIN SOLUTION before it"),
    "no region at all": (
        REGION,
        "    return 2 * duration_s",
        20,
        "a solve cell has no solution region",
    ),
    "an open region": ("    ### END SOLUTION\n", "", 23, "### BEGIN SOLUTION has no ### END SOLUTION after it"),
    "a region in a region": (
        "    return twice",
        "    ### BEGIN SOLUTION\n    return twice",
        25,
        "### BEGIN SOLUTION is inside another solution region",
    ),
    "a misspelt region": ("### BEGIN SOLUTION", "### BEGIN SOLTUION", 23, "malformed or misplaced solution marker"),
    "a region in small letters": ("### END SOLUTION", "### end solution", 26, "malformed or misplaced solution marker"),
    "a region with one sign": ("### BEGIN SOLUTION", "# BEGIN SOLUTION", 23, "malformed or misplaced solution marker"),
    "a region elsewhere": (
        "print(size)",
        "### BEGIN SOLUTION\nprint(size)",
        32,
        "malformed or misplaced solution marker",
    ),
    "a region in prose": ("# About 30", "# BEGIN SOLUTION 30", 4, "malformed or misplaced solution marker"),
    "hidden tests": (
        "print(size)",
        "### BEGIN HIDDEN TESTS\nprint(size)",
        32,
        "'BEGIN HIDDEN TESTS' has a special meaning in nbgrader that labs do not use",
    ),
    "autotests": (
        "print(size)",
        "### AUTOTEST size",
        32,
        "'AUTOTEST' has a special meaning in nbgrader that labs do not use",
    ),
    "an answer": (
        "    ### END SOLUTION\n",
        "    ### END SOLUTION\n### BEGIN SOLUTION\nanswer = 42\n### END SOLUTION\n",
        28,
        "a solve cell may only define functions, classes and constants",
    ),
    "an answer outside the region": (
        "    ### END SOLUTION\n",
        "    ### END SOLUTION\n\n\nanswer = 42\n",
        29,
        "a solve cell may only define functions, classes and constants",
    ),
    "a call in a solve cell": (
        "    ### END SOLUTION\n",
        "    ### END SOLUTION\n\n\nprint(doubled_time(1))\n",
        29,
        "a solve cell may only define functions, classes and constants",
    ),
    "no definition": (
        f'def doubled_time(duration_s):\n    """Twice the duration."""\n{REGION}',
        "import math\n### BEGIN SOLUTION\n### END SOLUTION",
        20,
        "a solve cell defines no function or class",
    ),
    "a stub without the name": (
        f"def doubled_time(duration_s):\n{BODY}",
        f"### BEGIN SOLUTION\ndef doubled_time(duration_s):\n{BODY[:29]}",
        20,
        "the stub does not define doubled_time",
    ),
    "a private part of the library": (
        TRY,
        "from edl_labs.exercises import lab01",
        8,
        "the lab imports edl_labs.exercises.lab01",
    ),
    "the build chain": (
        "print(size)",
        "import edl_labs.course.lab.build",
        32,
        "the lab imports edl_labs.course.lab.build",
    ),
    "grading": (
        "print(size)",
        "from edl_labs.course import grade",
        32,
        "the lab imports edl_labs.course.grade",
    ),
    "the engine's insides": (
        "print(size)",
        "from edl_labs.checks.evidence import collect",
        32,
        "the lab imports edl_labs.checks.evidence.collect",
    ),
    "an underscored name": ("print(size)", "from edl_labs.checks import _x", 32, "the lab imports edl_labs.checks._x"),
    "an underscored module": ("print(size)", "import torch._C", 32, "the lab imports torch._C"),
    "a name that is not there": ("print(size)", "from edl_labs import chekc", 32, "the lab imports edl_labs.chekc"),
    "a name a module has not": (
        "print(size)",
        "from edl_labs.units import no_such",
        32,
        "the lab imports edl_labs.units.no_such",
    ),
    "everything": ("print(size)", "from edl_labs import *", 32, "the lab imports edl_labs.*"),
    "a neighbour": ("print(size)", "from . import x", 32, "the lab imports ..x"),
    "another package": ("print(size)", "import pandas", 32, "the lab imports pandas"),
    "an import in a function": (
        "    return value_s / 2",
        "    import pandas\n    return value_s / 2",
        18,
        "the lab imports pandas",
    ),
    "an import by name": (
        "print(size)",
        'import importlib\nimportlib.import_module("edl_labs.course.grade.judge")',
        33,
        "the lab imports edl_labs.course.grade.judge",
    ),
    "a private attribute": (
        "print(size)",
        "import edl_labs\nedl_labs.exercises",
        33,
        "the lab imports edl_labs.exercises",
    ),
    "another title": ("# # Doubling", "# # Trebling", 2, "the heading is '# Trebling'"),
    "other minutes": ("30 minutes", "45 minutes", 1, "the first cell says 45 minutes"),
    "no minutes": ("# About 30 minutes.", "# Soon done.", 1, "the first cell does not say how long the lab takes"),
    "other points": ("30 minutes", "30 minutes, 7 points", 1, "the cell says 7 points"),
    "other points in a heading": ("# **Explain.**", "# ## 2. Why (7 points)", 34, "the heading says 7 points"),
    "other points for prose": ("**Explain.**", "**Explain, 2 points.**", 34, "the cell says 2 points"),
    "a tab": ("print(size)", "if size:\n\tprint(size)", 33, "a tab"),
    "a carriage return": ("print(size)", "print(size)\r", 32, "a carriage return"),
}


@pytest.mark.parametrize("case", REFUSALS)
def test_a_lab_is_refused_with_file_and_line(course: Course, case: str) -> None:
    old, new, line, what = REFUSALS[case]
    kit.replace(kit.source(course), old, new)

    with pytest.raises(SourceError) as caught:
        read_lab(course, kit.LAB)

    assert f"{PY}:{line}: {what or 'there is ' + case}" == caught.value.what
    assert (PY, line) == (caught.value.file, caught.value.line)


def test_text_that_is_not_utf_8_is_refused_at_its_line(course: Course) -> None:
    path = kit.source(course)
    path.write_bytes(path.read_bytes().replace(b"print(size)", b"print('\xff')"))

    with pytest.raises(SourceError, match=f"{PY}:32: this is not UTF-8 text"):
        read_lab(course, kit.LAB)


def test_a_long_cell_is_warned_about_but_a_long_solution_is_not(course: Course) -> None:
    lines = "\n".join(f"x{i} = {i}" for i in range(16))
    kit.replace(kit.source(course), "print(size)", lines)
    kit.replace(kit.source(course), "    return twice", "    # why\n" * 20 + "    return twice")

    warnings = read_lab(course, kit.LAB).warnings

    assert (f"{PY}:51: the cell has 16 lines; it should have at most 15",) == warnings


def test_public_names_may_be_imported(course: Course) -> None:
    imports = [
        *("import edl_labs", "from edl_labs import units", "from edl_labs.units import __doc__ as x"),
        *(
            "from edl_labs.checks import close",
            "import torch, math",
            "from matplotlib import pyplot",
            "import numpy as np",
        ),
        *("import edl_labs.plots", "from edl_labs.errors import Wrong", "from torch import nn", "edl_labs.units"),
    ]
    allowed = [line for line in imports if "__doc__" not in line]
    kit.replace(kit.source(course), "print(size)", "\n".join(allowed))

    assert "\n".join(allowed) == read_lab(course, kit.LAB).cells[6].source


def test_what_a_lab_may_import_is_what_a_students_kernel_has() -> None:
    import tomllib
    from pathlib import Path

    from edl_labs.course.lab.rules import STUDENT_PACKAGES

    project = tomllib.loads((Path(__file__).resolve().parents[4] / "pyproject.toml").read_text())["project"]
    needed = {re.split(r"[<>=!~; \[]", text)[0] for text in project["dependencies"]}
    needed |= {"torchvision", "IPython"}  # the extra `vision`; and IPython comes with ipykernel

    assert set() == set(STUDENT_PACKAGES) - needed


def test_an_empty_source_is_refused_in_a_sentence() -> None:
    from edl_labs.course.lab.source import parse
    from edl_labs.errors import SourceError

    with pytest.raises(SourceError, match=r"lab99_x\.py:1: the lab has no cells"):
        parse("", file="lab99_x.py")
