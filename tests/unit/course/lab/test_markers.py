"""A marker is exactly one thing; everything that could be meant as one and is not is refused, with the line."""

from __future__ import annotations

import pytest

from edl_labs.course.lab.source import marker, parse
from edl_labs.errors import SourceError

BEFORE = "# %% [markdown]\n# # Title\n\n"
GOOD = {
    "# %%": ("code", None, None),
    "# %% [markdown]": ("markdown", None, None),
    "# %% setup": ("code", "setup", None),
    "# %% parameters": ("code", "parameters", None),
    "# %% given": ("code", "given", None),
    '# %% solve="a_1"': ("code", "solve", "a_1"),
    '# %% check="a"': ("code", "check", "a"),
    '# %% [markdown] explain="a"': ("markdown", "explain", "a"),
}
BAD = {
    '#%% solve="x"': "malformed cell marker",
    "#%%": "malformed cell marker",
    '# %%solve="x"': "malformed cell marker",
    "# %%%": "malformed cell marker",
    '# % % solve="x"': "malformed cell marker",
    '## %% solve="x"': "malformed cell marker",
    '    # %% solve="x"': "malformed cell marker",
    '# %%  solve="x"': "malformed cell marker",
    '# %%\tsolve="x"': "malformed cell marker",
    '# solve="x"': "malformed cell marker",
    "# [markdown]": "malformed cell marker",
    '# % solve="x"': "malformed cell marker",
    "# %% ": "white space after a cell marker",
    '# %% solve="x" ': "white space after a cell marker",
    '# %% slove="x"': "unknown marker word 'slove'",
    "# %% Setup": "unknown marker word 'Setup'",
    "# %% test": "unknown marker word 'test'",
    '# %% solve = "x"': "a cell can have only one role, but this one has 3",
    "# %% solve=x": "solve needs a name in double quotes",
    "# %% solve='x'": "solve needs a name in double quotes",
    "# %% solve": "solve needs a name in double quotes",
    '# %% solve=""': "'' is not an exercise's name",
    '# %% solve="Bad-Name"': "'Bad-Name' is not an exercise's name",
    '# %% solve="two words"': "'two words' is not an exercise's name",
    f'# %% solve="{"x" * 41}"': f"'{'x' * 41}' is not an exercise's name",
    '# %% setup="x"': "setup takes no name",
    '# %% solve="x" check="x"': "a cell can have only one role, but this one has 2",
    '# %% setup solve="x"': "a cell can have only one role, but this one has 2",
    '# %% [markdown] solve="x"': "a cell with the role solve must be a code cell",
    "# %% [markdown] setup": "a cell with the role setup must be a code cell",
    '# %% explain="x"': "a cell with the role explain must be a markdown cell",
    "# %% [raw]": "unknown kind of cell [raw]",
    "# %% [md]": "unknown kind of cell [md]",
    "# %% setup [markdown]": "a cell can have only one role, but this one has 2",
    '# %% solve="x': "solve needs a name in double quotes",
}


@pytest.mark.parametrize("line", GOOD)
def test_a_marker_gives_kind_role_and_name(line: str) -> None:
    body = "# text" if "[markdown]" in line else "x = 1"

    cell = parse(f"{BEFORE}{line}\n{body}\n", file="lab.py")[1]

    assert GOOD[line] == (cell.kind, cell.role, cell.name)
    assert line == marker(cell.kind, cell.role, cell.name)


@pytest.mark.parametrize("line", BAD)
def test_a_malformed_marker_is_refused_at_its_line(line: str) -> None:
    with pytest.raises(SourceError) as caught:
        parse(f"{BEFORE}{line}\nx = 1\n", file="lab.py")

    assert f"lab.py:4: {BAD[line]}" == caught.value.what
    assert caught.value.next


def test_a_misspelt_word_is_told_the_nearest_one() -> None:
    with pytest.raises(SourceError) as caught:
        parse('# %% slove="x"\nx = 1\n', file="lab.py")

    assert "did you mean solve?" == caught.value.next


@pytest.mark.parametrize("line", ["# 5 % of peak", "#: 100 %%", "x = 7 % 3  # %%", "# the role solve", "# %time"])
def test_an_ordinary_comment_is_no_marker(line: str) -> None:
    cells = parse(f"# %%\n{line}\ny = 1\n", file="lab.py")

    assert [f"{line}\ny = 1"] == [cell.source for cell in cells]
