"""The magics in a real IPython shell."""

from __future__ import annotations

import pytest

from edl_labs.bench import Comparison, Measurement
from edl_labs.bench.magics import load_ipython_extension, unload_ipython_extension
from edl_labs.errors import UsageError


@pytest.fixture
def shell():
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell.instance()
    load_ipython_extension(shell)
    shell.user_ns.update(f=lambda x: x + 1, data=[3, 1, 2])
    yield shell
    unload_ipython_extension(shell)
    InteractiveShell.clear_instance()


def test_load_ext_of_the_package_brings_the_magics(shell):
    unload_ipython_extension(shell)
    shell.run_line_magic("load_ext", "edl_labs")

    assert isinstance(shell.run_line_magic("measure", "--budget 0.01 sorted(data)"), Measurement)


def test_a_line_is_measured_in_the_notebooks_namespace(shell):
    m = shell.run_line_magic("measure", "--budget 0.02 sorted(data)")

    assert isinstance(m, Measurement)
    assert ("sorted(data)", 0.02) == (m.name, m.budget_s)


def test_a_cell_is_measured(shell):
    m = shell.run_cell_magic("measure", "--budget 0.02", "total = 0\nfor i in range(10):\n    total += f(i)\ntotal")

    assert m.median_s > 0


def test_the_parts_of_a_cell_are_compared_under_their_names(shell):
    c = shell.run_cell_magic(
        "compare", "--budget 0.02 --band 0.01", "# builtin\nsorted(data)\n---\n# by hand\nx = list(data)\nx.sort()\nx"
    )

    assert isinstance(c, Comparison)
    assert (["builtin", "by hand"], 0.01) == ([side.name for side in c.sides], c.band)


def test_options_do_not_eat_code_that_looks_like_them(shell):
    assert "-data[0]" == shell.run_line_magic("measure", "--budget 0.01 -data[0]").name


@pytest.mark.parametrize(
    ("line", "cell", "what"),
    [
        ("", "f(1)", "needs two parts"),
        ("", "f(1)\n---\n", "needs two parts"),
        ("--nope", "a\n---\nb", "nope"),
        ("f(1)", "1\n---\n2", "does not accept"),
    ],
)
def test_a_wrong_cell_is_answered_with_the_usage(line, cell, what):
    from edl_labs.bench.magics import compare_cell

    with pytest.raises(UsageError, match=what) as caught:
        compare_cell(line, cell, {"f": abs})

    assert caught.value.next


def test_a_wrong_line_is_answered_with_the_usage():
    from edl_labs.bench.magics import measure_line

    with pytest.raises(UsageError, match="nothing to measure"):
        measure_line("", {})
    with pytest.raises(UsageError, match="line 1"):
        measure_line("1 +", {})
    with pytest.raises(UsageError, match="budget"):
        measure_line("--budget soon 1", {})


def test_unloading_takes_the_magics_away(shell):
    unload_ipython_extension(shell)

    assert "compare" not in shell.magics_manager.magics["cell"]
    load_ipython_extension(shell)
