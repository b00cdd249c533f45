"""Known mistakes as text: what is read, and what is refused with its line."""

from __future__ import annotations

import pytest

from edl_labs.course.lab.mistakes import Mistake, read_mistakes
from edl_labs.errors import SourceError

SOLUTION = '''\
LIMIT = 3


def total(values):
    """All of them."""
    ### BEGIN SOLUTION
    found = 0
    for value in values:
        if value > LIMIT:
            found += 1
        found += value
    found += 1
    return found
    ### END SOLUTION


def mean(values):
    ### BEGIN SOLUTION
    return total(values) / len(values)
    ### END SOLUTION
'''
CHANGED = """\
# %% mistake="one_more"
# told: one too many
# like: another, third
# %% replace
found = 0
# %% by
found = 1
# %% replace
found += value
# %% by
# nobody is counted
found += 1
"""
WHOLE = """\
# %% mistake="another"
# told: no mean
def mean(values):
    return 0
"""


def read(text: str) -> list[Mistake]:
    return read_mistakes(text, exercise="total", solution=SOLUTION, file="mistakes/total.py")


def refused(text: str) -> str:
    with pytest.raises(SourceError) as caught:
        read(text)
    assert caught.value.next
    return str(caught.value).split("\n")[0]


def test_changes_give_the_definition_that_they_touch_without_the_marks_of_the_solution() -> None:
    (one,) = read(CHANGED)

    assert ("total.one_more", "one too many", ("another", "third"), 1) == (one.label, one.told, one.like, one.line)
    assert one.code == (
        'def total(values):\n    """All of them."""\n    found = 1\n    for value in values:\n'
        "        if value > LIMIT:\n            found += 1\n        # nobody is counted\n        found += 1\n"
        "    found += 1\n    return found"
    )


def test_code_without_changes_is_the_mistake_itself() -> None:
    known = read(f"{CHANGED}\n\n{WHOLE}")

    assert [("one_more", 1), ("another", 15)] == [(one.name, one.line) for one in known]
    assert "def mean(values):\n    return 0" == known[1].code


def test_code_and_changes_go_together() -> None:
    added = CHANGED.replace("# %% replace", "HIGHEST = 4\n# %% replace", 1)

    assert read(added)[0].code.startswith("HIGHEST = 4\n\n\ndef total(values):")


def test_definitions_above_the_first_change_and_constants_can_change_too() -> None:
    text = '# %% mistake="limit"\n# told: x\n# %% replace\nLIMIT = 3\n# %% by\nLIMIT = 4\n'

    assert "LIMIT = 4" == read(text)[0].code


def test_lines_are_compared_as_python_and_not_as_text() -> None:
    text = '# %% mistake="a"\n# told: x\n# %% replace\nreturn (total(values)\n  / len(values))\n# %% by\nreturn 0\n'

    assert "def mean(values):\n    return 0" == read(text)[0].code


def test_a_text_of_many_lines_keeps_its_lines() -> None:
    text = '# %% mistake="a"\n# told: x\n# %% replace\nfound = 0\n# %% by\nfound = """a\nb"""\n'

    assert '    found = """a\nb"""\n' in read(text)[0].code


def test_statements_can_be_left_out() -> None:
    text = '# %% mistake="a"\n# told: x\n# %% replace\nfound = 0\n# %% by\n'

    assert "found = 0" not in read(text)[0].code


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("# told: one too many\n", "", 2, "the mistake one_more has no message"),
        ("# told: one too many\n", "# told: \n", 2, "the mistake one_more has no message"),
        ("found = 0", "found = 7", 4, "the solution of total contains these lines nowhere"),
        ("found += value", "found += 1", 8, "the solution of total contains these lines 2 times"),
        ("found = 1", "found = (0)", 4, "nothing changes"),
        ("found = 0", "", 4, "no lines are replaced"),
        ("found = 1", "found = (", 7, "this is not valid Python: '(' was never closed"),
        ("# %% by\nfound = 1\n", "", 6, "the marker '# %% by' is missing here"),
        ("# %% replace\nfound = 0\n", "", 4, "the marker '# %% replace' is missing here"),
        ("# %% by\n# nobody is counted\nfound += 1\n", "", 8, "no '# %% by' follows"),
        ("# %% by\nfound", "# %% with\nfound", 6, "malformed marker"),
        ('"one_more"', '"One more"', 1, "malformed marker"),
        ('# %% mistake="one_more"', "total = sum", 1, "there is text before the first mistake"),
        ('# %% mistake="one_more"', "# %% by", 1, "this block does not belong to a mistake"),
        (
            "found += value\n# %% by",
            "found = 0\nfor value in values: pass\n# %% by",
            8,
            "the solution of total contains",
        ),
    ],
)
def test_what_is_no_mistake_is_refused_with_its_line(old: str, new: str, line: int, what: str) -> None:
    assert old in CHANGED

    assert refused(CHANGED.replace(old, new, 1)).startswith(f"mistakes/total.py:{line}: {what}")


def test_a_mistake_without_code_is_refused() -> None:
    assert "mistakes/total.py:1: the mistake a has no code" == refused('# %% mistake="a"\n# told: x\n# nothing\n')


def test_two_mistakes_with_one_name_are_refused() -> None:
    text = f"{WHOLE}\n\n{WHOLE}"

    assert "mistakes/total.py:7: two mistakes have the name another" == refused(text)


def test_changes_that_meet_are_refused() -> None:
    loop = SOLUTION[SOLUTION.index("    for ") : SOLUTION.index("    found += 1\n    return")]
    inner = "# %% replace\nfound += value\n# %% by\nfound += 2\n"
    text = f'# %% mistake="a"\n# told: x\n# %% replace\nif 1:\n{loop}# %% by\nfound = 2\n{inner}'
    text = text.replace("if 1:\n", "").replace(loop, "".join(line[4:] for line in loop.splitlines(keepends=True)))

    assert "mistakes/total.py:10: two changes replace the same lines" == refused(text)


def test_a_block_that_is_left_empty_is_refused() -> None:
    text = '# %% mistake="a"\n# told: x\n# %% replace\nreturn total(values) / len(values)\n# %% by\n'

    assert "mistakes/total.py:3: the changed solution is not valid Python" == refused(text)


RECOGNIZED = CHANGED.replace("# like: another, third\n", "# like: another\n# why: it starts at 1\n# next: start at 0\n")


def test_a_mistake_with_why_and_next_has_its_whole_message() -> None:
    (one,) = read(RECOGNIZED)

    assert ("one too many", "it starts at 1", "start at 0", ("another",)) == (one.told, one.why, one.next, one.like)
    assert "# why" not in one.code


@pytest.mark.parametrize("line", ["# why: it starts at 1\n", "# next: start at 0\n"])
def test_why_or_next_alone_is_refused(line: str) -> None:
    missing = "# next: " if line.startswith("# why") else "# why: "

    assert f"the mistake one_more has no line {missing!r}" in refused(CHANGED.replace("# like: another, third\n", line))
