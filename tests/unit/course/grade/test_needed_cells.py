"""Which cells marks need: names decide, and what cannot be decided runs."""

from __future__ import annotations

import pytest

from edl_labs.course.assignment import KnownCell
from edl_labs.course.grade.needed_cells import names_of, thrifty, why_needed
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
APART = given("c-plots", "figure = draw(2, 3)\nprint(figure)")  # what `area` returns may be a part of something needed
DATA = given("c-data", "sizes = [3.0, 1.0]\ntable = {}")
MAKES = given("c-makes", "def outline(sides):\n    return 2 * sum(sides)")


def left_out(*cells: PlannedCell) -> list[str]:
    found = thrifty(MarkingPlan(cells, ()))
    return [c.known.id for c, now in zip(cells, found.cells, strict=True) if c.known and c.runs and not now.runs]


def test_what_only_plots_or_measures_does_not_run():
    assert ["c-plots", "c-data"] == left_out(given("setup", "import math"), MAKES, solved(), SHOWS, DATA)


def test_what_defines_a_name_that_an_answer_uses_runs():
    assert ["c-plots"] == left_out(DATA, solved("def area(width, height):\n    return sizes[width]"), APART)


def test_names_are_followed_through_other_cells():
    first, second = given("c-1", "one = made()"), given("c-2", "two = made(one)")
    reads = given("c-3", "def reads(k):\n    return two[k]")

    assert ["c-plots"] == left_out(first, second, reads, solved("def area(w, h):\n    return reads(w)"), APART)


def test_a_name_that_is_an_answers_own_is_not_the_notebooks():
    body = "def area(width, height):\n    sizes = [width, height]\n    return sizes[0] * sizes[1]"

    assert ["c-data"] == left_out(DATA, solved(body))


@pytest.mark.parametrize(
    "change", ["table['a'] = 1", "table.update(a=1)", "fill(table)", "table |= {1: 2}", "for one in table: one.x()"]
)
def test_what_may_alter_something_needed_runs(change: str):
    cells = (DATA, given("c-alters", change), solved("def area(w, h):\n    return table['a']"), APART)

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
    "counter in a closure": (
        "def make():\n    n = 0\n    def area(w, h):\n        nonlocal n\n        n += 1\n        return n\n"
        "    return area\n"
        "area = make()"
    ),
    "partial over a list": "import functools as f\ndef g(seen, w, h):\n    seen.append(w)\narea = f.partial(g, [])",
    "lambda over a list": "area = (lambda seen: lambda w, h: seen.append(w) or len(seen))([])",
    "instance that counts": (
        "class Area:\n    def __init__(self):\n        self.n = 0\n    def __call__(self, w, h):\n        self.n += 1\n"
        "area = Area()"
    ),
    "counter by another name": "def make():\n    return [].append\nmade = make()\narea = made",
    "counter in a tuple": "def make():\n    return [].append\narea, x = make(), 1",
    "counter in a dict": "def make():\n    return [].append\ntable = {'a': make()}\narea = table['a']",
    "counter by a walrus": "def make():\n    return [].append\nprint(area := make())",
    "counter by a loop": "def make():\n    return [].append\nfor area in [make()]:\n    pass",
    "counter by a comprehension": "def make():\n    return [].append\narea, = [make() for _ in range(1)]",
    "counter in a class": "def make():\n    return [].append\nclass Area:\n    go = make()",
    "counter by with": "def make():\n    return [].append\nwith make() as area:\n    pass",
    "bound method": "seen = [1, 2, 3]\narea = seen.pop",
    "bound method of nothing": "area = [1, 2, 3].pop",
    "generator": "seen = (n for n in [1, 2])\narea = seen",
    "file": "text = open('x').read()",
    "attribute by text": "def area(w, h):\n    return getattr(area, '__glo' + 'bals__')['sizes']",
    "attribute by a getter": "import operator\ndef area(w, h):\n    return operator.attrgetter('x')(area)",
    "attribute by a format": "def area(w, h):\n    return '{0.__globals__[sizes]}'.format(area)",
    "figures so far": "import matplotlib.pyplot as plt\ndef area(w, h):\n    return len(plt.get_fignums())",
    "lambda's default": "area = lambda w, h, seen=[]: seen.append(w) or len(seen)",
    "exercises": "from edl_labs.exercises import lab01_gpu_basics",
    "the shell by a display's module": "from IPython.display import get_ipython",
    "the shell's module": "import IPython.display",
    "into what a function gives": "def area(w, h):\n    table(w)[h] = 1",
    "into what another's table holds": "seen = {}\ndef area(w, h):\n    seen.setdefault(w, {})[h] = 1",
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
    "own table of tables": "def area(w, h):\n    seen = {}\n    seen.setdefault(w, {})[h] = seen.get(w, {})['x'] = 1",
    "displays": "from IPython.display import HTML, display\ndisplay(HTML('x'))",
    "attribute by name": "import torch\ndef area(w, h):\n    return getattr(torch, 'half') if hasattr(w, 'x') else w",
}


@pytest.mark.parametrize("name", PLAIN)
def test_plain_code_is_taken_for_what_it_is(name: str):
    assert is_plain([PLAIN[name]])


def test_a_released_cell_that_cannot_be_decided_runs_everything():
    assert [] == left_out(given("c-odd", "exec(text)"), SHOWS, solved())
    assert names_of("print(vars(thing))").decidable
    assert not names_of("print(vars())").decidable


# What a released cell may do to something that an answer sees, without naming it there: what defines it, what the
# spared cell would be, and what the answer returns.
HIDDEN = {
    "call": ("LOG = [1]\ndef record(x):\n    LOG.append(x)", "record(3)", "len(LOG)"),
    "call of a call": ("LOG = []\ndef a(x):\n    LOG.append(x)\ndef b(x):\n    a(x)", "b(3)", "len(LOG)"),
    "attribute of a class": ("class R:\n    n = 0\ndef bump():\n    R.n += 1", "bump()", "R.n"),
    "class method": (
        "class R:\n    n = 0\n    @classmethod\n    def bump(cls):\n        cls.n += 1",
        "R.bump()",
        "R.n",
    ),
    "class by type": ("class R:\n    n = 0\n    def go(self):\n        type(self).n += 1", "R().go()", "R.n"),
    "method of a class": (
        "class R:\n    seen = []\n    def go(self):\n        self.seen.append(1)",
        "R().go()",
        "R.seen",
    ),
    "decorator": (
        "ALL = []\ndef register(f):\n    ALL.append(f)",
        "@register\ndef g():\n    pass\nprint(1)",
        "len(ALL)",
    ),
    "decorator alone": ("ALL = []\ndef register(f):\n    ALL.append(f)", "@register\ndef g():\n    pass", "len(ALL)"),
    "alias": ("DATA = [1]", "view = DATA\nview.append(3)", "len(DATA)"),
    "alias by a tuple": ("DATA = [1]", "view, x = DATA, 1\nview.append(3)", "len(DATA)"),
    "alias in a dict": ("DATA = [1]", "d = {'a': DATA}\nd['a'].append(3)", "len(DATA)"),
    "alias by a walrus": ("DATA = [1]", "(view := DATA).append(3)", "len(DATA)"),
    "alias by an attribute": ("class N:\n    pass\nDATA = [1]\nn = N()\nn.x = DATA", "n.x.append(3)", "len(DATA)"),
    "alias made before": ("DATA = [1]\nview = DATA", "view.append(3)", "len(DATA)"),
    "alias by with": (
        "from contextlib import nullcontext\nDATA = [1]",
        "with nullcontext(DATA) as v:\n    v += [1]",
        "len(DATA)",
    ),
    "two of one": ("one = two = []", "two.append(3)", "len(one)"),
    "loop": ("DATA = [1]", "for r in [DATA]:\n    r.append(1)", "len(DATA)"),
    "comprehension": ("DATA = [1]", "x = [r.append(1) for r in (DATA,)]", "len(DATA)"),
    "lambda": ("DATA = [1]\nadd = lambda x: DATA.append(x)", "add(3)", "len(DATA)"),
    "default": ("def keep(x, seen=[]):\n    seen.append(x)\n    return len(seen)", "keep(3)", "keep(4)"),
    "attribute of a function": ("def f():\n    f.n = 1", "f()", "getattr(f, 'n', 0)"),
    "attribute by another name": ("def f():\n    pass", "g = f\ng.n = 1", "getattr(f, 'n', 0)"),
    "attribute in a loop": ("def f():\n    pass", "for g in [f]:\n    g.n = 1", "getattr(f, 'n', 0)"),
    "attribute of a parameter": (
        "def f():\n    pass\ndef mark(x):\n    x.n = 1",
        "mark(f)\nprint(1)",
        "getattr(f, 'n', 0)",
    ),
    "vars of a function": ("def f():\n    pass", "vars(f)['n'] = 1", "getattr(f, 'n', 0)"),
    "dict of a class": ("class R:\n    pass", "d = R.__dict__\nprint(d)", "getattr(R, 'n', 0)"),
    "own name after with": (
        "from contextlib import suppress\nDATA = [1]\nview = DATA",
        "with suppress(Exception):\n    view = [2]\nview.append(3)",
        "len(DATA)",
    ),
    "own name in a branch": ("DATA = [1]\nview = DATA", "if DATA:\n    view = [2]\nview.append(3)", "len(DATA)"),
    "own name in a loop": (
        "DATA = [1]\nview = DATA",
        "for _ in []:\n    view = [2]\nview.append(3)",
        "len(DATA)",
    ),
    "used before it is its own": ("DATA = [1]\nview = DATA", "view.append(3)\nview = [2]", "len(DATA)"),
    "augmented": ("DATA = [1]\nview = DATA", "view += [3]\nview = [2]", "len(DATA)"),
    "function sees another cell's": (
        "DATA = [1]\nview = DATA\ndef add():\n    view.append(1)",
        "add()\nview = [2]",
        "len(DATA)",
    ),
    "element of a table": ("DATA = {'a': [1]}", "DATA['a'].append(3)", "len(DATA['a'])"),
    "table handed on": ("DATA = {'a': 1}\ndef fill(x):\n    x['a'] = 2", "fill(DATA)", "DATA['a']"),
    "table handed on twice": (
        "DATA = {'a': 1}\ndef fill(x):\n    x.update(a=2)\ndef call(x):\n    fill(x)",
        "call(DATA)",
        "DATA['a']",
    ),
    "table in a loop": ("DATA = {'a': 1}", "for each in (DATA, {'b': 1}):\n    each['a'] = 2", "DATA['a']"),
    "table by another name": ("DATA = {'a': 1}", "d = DATA\nd['a'] = 2", "DATA['a']"),
    "path out of a folder": (
        "from pathlib import Path\nfrom tempfile import TemporaryDirectory\nfolder = TemporaryDirectory()",
        "(Path(folder.name) / '../x').write_text('1')",
        "width",
    ),
    "folder written elsewhere": (
        "from pathlib import Path\nfrom tempfile import TemporaryDirectory\nfolder = TemporaryDirectory()",
        "Path('x').write_text(folder.name)",
        "width",
    ),
    "no folder any more": (
        "from pathlib import Path\nfrom tempfile import TemporaryDirectory\nfolder = TemporaryDirectory()\n"
        "folder = Path('y')",
        "Path(folder).write_text('1')",
        "width",
    ),
    "figure saved": ("import matplotlib.pyplot as plt", "figure = plt.figure()\nfigure.savefig('x.png')", "width"),
    "setting not put back": (
        "import torch\ndef fast():\n    before = torch.x.y\n    torch.x.y = 1\n    torch.ones(1)\n"
        "    try:\n        pass\n    finally:\n        torch.x.y = before",
        "print(fast())",
        "width",
    ),
    "seed beside a fork": (
        "import torch",
        "with torch.random.fork_rng():\n    torch.manual_seed(1)\ntorch.manual_seed(0)",
        "width",
    ),
    "closure": ("def make():\n    n = []\n    return n.append, n.copy\npush, seen = make()", "push(1)", "len(seen())"),
    "held": ("class Box:\n    pass\nDATA = [1]\nbox = Box()\nbox.held = DATA", "print(box.held.pop())", "len(DATA)"),
    "class body": ("DATA = [1]", "class A:\n    x = DATA.append(1)\nprint(A)", "len(DATA)"),
    "context manager": (
        "DATA = [1]\nclass C:\n    def __enter__(self):\n        DATA.append(1)\n"
        "    def __exit__(self, *a):\n        pass",
        "with C():\n    pass",
        "len(DATA)",
    ),
    "iterator": ("stream = iter([1, 2])", "first = next(stream)", "next(stream)"),
    "unpacked": ("stream = iter([1, 2])", "first, = [*stream][:1]", "list(stream)"),
    "other name of a function": ("LOG = []\ndef record(x):\n    LOG.append(x)\nkeep = record", "keep(1)", "len(LOG)"),
    "global": ("n = 0\ndef bump():\n    global n\n    n += 1", "bump()", "n"),
    "operator": (
        "LOG = []\nclass V:\n    def __add__(self, x):\n        LOG.append(x)\nv = V()",
        "x = v + 1",
        "len(LOG)",
    ),
    "module": ("from edl_labs import units", "units.seconds = str", "units.seconds(width)"),
    "module by another name": ("from edl_labs import units", "u = units\nu.seconds = str", "units.seconds(width)"),
    "module in a loop": (
        "from edl_labs import units",
        "for m in [units]:\n    m.seconds = str",
        "units.seconds(width)",
    ),
    "module in a dict": ("from edl_labs import units", "d = vars(units)\nd['seconds'] = str", "units.seconds(width)"),
    "module handed on": (
        "from edl_labs import units\ndef patch(m):\n    m.seconds = str",
        "patch(units)",
        "units.seconds(width)",
    ),
    "module in a function": (
        "from edl_labs import units\ndef patch():\n    u = units\n    u.seconds = str",
        "patch()",
        "units.seconds(width)",
    ),
    "settings": ("import torch", "torch.set_num_threads(1)", "torch.get_num_threads()"),
    "settings unseen": ("import torch", "torch.set_default_dtype(torch.float64)", "width"),
    "flag": ("import torch", "torch.backends.cudnn.benchmark = True", "width"),
    "seed": ("import torch", "torch.manual_seed(0)", "width"),
    "numpy's seed": ("import numpy as np", "np.random.seed(0)", "width"),
    "numpy's seed by another name": ("import numpy as np", "r = np.random\nr.seed(0)", "width"),
    "Python's seed": ("import random", "random.seed(0)", "width"),
    "seed by itself": ("from random import seed", "seed(0)", "width"),
    "generator": ("import torch", "g = torch.default_generator\ng.manual_seed(0)", "width"),
    "numpy's settings": ("import numpy as np", "np.seterr(all='raise')", "width"),
    "environment": ("import os", "os.environ['X'] = '1'", "width"),
    "environment by another name": ("import os", "e = os.environ\ne.update(X='1')", "width"),
    "path": ("import sys", "sys.path.insert(0, 'x')", "width"),
    "filters": ("import warnings", "warnings.simplefilter('error')", "width"),
    "rcParams": ("import matplotlib.pyplot as plt", "plt.rcParams['font.size'] = 3", "width"),
    "rcParams by another name": ("import matplotlib.pyplot as plt", "rc = plt.rcParams\nrc['font.size'] = 3", "width"),
    "rcParams updated": ("import matplotlib.pyplot as plt", "plt.rcParams.update({'font.size': 3})", "width"),
    "precision": ("import decimal", "decimal.getcontext().prec = 3", "width"),
    "setting handed to a function": ("import torch", "print(torch.backends.cudnn)", "width"),
    "seed with its arguments": (
        "import torch\nfrom functools import partial",
        "partial(torch.manual_seed, 1)()",
        "width",
    ),
    "file": ("from pathlib import Path", "Path('x').write_text('1')", "width"),
    "file opened": ("", "with open('x', 'w') as f:\n    f.write('1')", "width"),
    "file opened to append": ("", "with open('x', mode='a') as f:\n    f.write('1')", "width"),
    "file opened to update": ("", "with open('x', 'r+b') as f:\n    f.write(b'1')", "width"),
    "file opened by another name": ("", "o = open\nwith o('x', 'w') as f:\n    f.write('1')", "width"),
    "file opened in a mode to come": ("", "how = 'w'\nwith open('x', how) as f:\n    f.write('1')", "width"),
    "file opened by options": ("", "with open('x', **{'mode': 'w'}) as f:\n    f.write('1')", "width"),
    "file opened by an opener": ("", "with open('x', opener=make) as f:\n    print(f.read())", "width"),
}


@pytest.mark.parametrize("name", HIDDEN)
def test_what_alters_something_by_another_way_runs(name: str):
    defines, alters, returns = HIDDEN[name]
    cells = (
        given("c-defines", defines),
        given("c-alters", alters),
        solved(f"def area(width, h):\n    return {returns}"),
    )

    assert "c-alters" not in left_out(*cells, SHOWS)


@pytest.mark.parametrize("call", ["open('x')", "open('x', 'rb', buffering=0)", "open('x', mode='rt')"])
def test_a_file_that_is_only_read_alters_nothing(call: str):
    reads = given("c-reads", f"with {call} as f:\n    print(f.read())")

    assert ["c-reads"] == left_out(reads, solved())


@pytest.mark.parametrize("imported", ["display", "HTML, Markdown as text"])
def test_a_cell_that_imports_what_shows_is_decidable(imported: str):
    assert names_of(f"from IPython.display import {imported}").decidable
    assert not names_of(f"from IPython.display import {imported}, get_ipython").decidable
    assert not names_of("import IPython.display").decidable


def test_draws_before_one_that_is_needed_run():
    cells = (given("setup", "import torch"), given("c-1", "a = torch.randn(3)"), given("c-2", "b = [torch.randn(3)]"))

    assert [] == left_out(*cells, solved("def area(w, h):\n    return b[0]"))


@pytest.mark.parametrize(
    "alters",
    [
        "mode = torch.no_grad()\nmode.__enter__()",
        "def off():\n    with torch.no_grad():\n        yield\nnext(off())",
        "with torch.no_grad() as mode:\n    kept = mode",
        "with torch.no_grad():\n    torch.randn(3)",
        "from functools import partial\nfrom torch import nn\nmake = partial(nn.Linear, 3, 4)\nprint(make())",
        "from functools import partial as p\nmake = p(torch.nn.Linear, 3, 4)\nprint(make())",
        "import functools\nfunctools.partial(torch.nn.Linear, 3, 4)()",
        "import functools\nfunctools.partial(torch.nn.Dropout, 0.5)()(torch.ones(3))",
        "import functools\nfunctools.partial(torch.empty(3).uniform_)()",
        "import functools\nfunctools.partial(torch.no_grad)().__enter__()",
        "import copy\ncopy.copy(torch.nn.Linear)(3, 4)",
        "list(map(torch.nn.Linear, [3], [4]))",
        "def build(make):\n    return make(3, 4)\nbuild(torch.nn.Linear)",
        "class W:\n    def __await__(self):\n        yield\nasync def off():\n    with torch.no_grad():\n"
        "        await W()\nc = off()\nc.send(None)",
    ],
)
def test_a_mode_that_stays_runs_before_what_asks_for_it(alters: str):
    cells = (given("setup", "import torch"), given("c-1", alters), given("c-2", "b = [torch.randn(3)]"))

    assert [] == left_out(*cells, solved("def area(w, h):\n    return b[0]"))


def test_a_mode_of_a_block_alone_does_not_run():
    shows = given("c-1", "with torch.no_grad():\n    print(torch.ones(3))")
    cells = (given("setup", "import torch"), shows, given("c-2", "b = [torch.randn(3)]"))

    assert ["c-1"] == left_out(*cells, solved("def area(w, h):\n    return b[0]"))


def test_a_function_that_alters_its_own_things_alone_costs_nothing():
    makes = given("c-makes", "def outline(sides):\n    own = list(sides)\n    own.append(1)\n    return sum(own)")

    assert ["c-calls"] == left_out(makes, given("c-calls", "print(outline([1.0, 2.0]))"), solved())


# What is the cell's own, or put back, costs nothing: what defines it, and what need not run.
HARMLESS = {
    "own name within": ("DATA = [1]", "with quiet():\n    view = []\n    view.append(1)"),
    "own generator": ("import random\nDATA = [1]", "draw = random.Random(0)\ndraw.shuffle([1, 2])"),
    "read table": ("DATA = {'a': 1}\ndef look(x):\n    return x['a']", "print(look(DATA), DATA['a'], len(DATA))"),
    "read tables": ("DATA = {'a': 1}\nMORE = {'a': 2}", "for each in (DATA, MORE):\n    print(each['a'])"),
    "put back": (
        "import torch\ndef fast():\n    before = torch.x.y\n    torch.x.y = 1\n    try:\n        pass\n"
        "    finally:\n        torch.x.y = before",
        "print(fast())",
    ),
    "forked": (
        "import torch\nDATA = [1]",
        "with torch.random.fork_rng():\n    torch.manual_seed(0)\n    torch.randn(3)",
    ),
    "own folder": (
        "from pathlib import Path\nfrom tempfile import TemporaryDirectory\nDATA = [1]",
        "with TemporaryDirectory() as folder:\n    (Path(folder) / 'x').write_text('1')",
    ),
    "no gradients in a block": ("import torch\nDATA = [1]", "with torch.no_grad():\n    print(torch.ones(1))"),
    "a name that nobody reads": ("_, DATA = 1, [1]", "kept = [2]\n_, more = kept, 1\nkept.append(3)"),
    "copies": ("import copy\nDATA = [1]", "print(copy.deepcopy(DATA['a']))"),
    "a part with its arguments": (
        "from functools import partial\nDATA = [1]",
        "f = partial(max, 1)\nprint(f(2))",
    ),
    "a setting's text": ("import torch\nDATA = [1]", "print(f'{torch.backends.cudnn.benchmark}')"),
    "shown": ("from IPython.display import display\nDATA = [1]", "display(2)"),
    "global by name": ("DATA = [1]", "if 'kept' not in globals():\n    kept = [2]\nkept.append(1)"),
}


@pytest.mark.parametrize("name", HARMLESS)
def test_what_alters_only_its_own_does_not_run(name: str):
    defines, shows = HARMLESS[name]
    answer = solved("def area(width, h):\n    return DATA['a']")

    assert ["c-shows"] == left_out(given("c-defines", defines), given("c-shows", shows), answer)


def test_each_cell_that_runs_has_its_reason():
    reads = "def area(w, h):\n    return sizes[w] + helper(h)"
    cells = (
        DATA,
        given("c-helper", "def helper(h):\n    return h"),
        solved(reads),
        given("c-alters", "fill(sizes)"),
        APART,
    )

    assert {
        0: "binds sizes",
        1: "definitions and constants",
        2: "the student's, or the lab always runs it",
        3: "may alter sizes",
    } == why_needed(MarkingPlan(cells, ()))


def test_where_everything_runs_the_reason_names_the_cell():
    cells = (DATA, solved(), given("c-odd", "exec(text)"))

    assert {"cell 3 may use or bind names that its text does not show"} == {
        *why_needed(MarkingPlan(cells, ())).values()
    }


def test_a_comment_changes_nothing():
    plots = given("c-plots", "figure = draw(2, 3)", changed="# mine\nfigure = draw(2,  3)")
    other = given("c-other", "print(2, 3)", changed="print(2, 4)")

    assert ["c-plots"] == left_out(solved(), plots, other)
