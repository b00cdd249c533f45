"""What counts as code, as moved and as newly long."""

from __future__ import annotations

from tools.count_tokens import GROUPS, Tree, code_words, group_change, moved, newly_long
from tools.exercise_hooks import hooks_of

FUNCTION = "def half(value):\n    return value / 2\n"  # 10 tokens


def test_comments_docstrings_and_layout_are_no_code() -> None:
    bare = """x = "text"\n\n\ndef f():\n    return x\n"""
    told = (
        '''"""A module."""\nx = "text"  # why\n\n\ndef f():\n    """A function."""\n    # because\n\n    return x\n'''
    )

    assert [word.string for word in code_words(bare)] == [word.string for word in code_words(told)]
    assert 10 == len(list(code_words(bare)))


def test_what_moved_out_counts_as_it_did_and_what_was_deleted_does_not() -> None:
    rest = "y = 1\n"
    before = Tree({"edl_labs/course/a.py": FUNCTION + rest, "edl_labs/trace/b.py": rest * 9})
    after = Tree({"edl_labs/course/a.py": rest, "tools/a.py": FUNCTION, "edl_labs/trace/b.py": rest})
    moves = moved(before, after)

    assert {("edl_labs/course/a.py", "tools/a.py"): 10} == moves
    assert {"before": 13, "after": 3, "moved out": 10, "moved in": 0, "change": 0.0} == group_change(
        before, after, moves, GROUPS["course + checks"]
    )
    assert 16 / 40 - 1 == group_change(before, after, moves, GROUPS["edl_labs + tools"])["change"]


def test_a_long_file_is_new_unless_it_was_long_before_or_came_from_one() -> None:
    long, short = "x = 1\n" * 301, "x = 1\n" * 300
    before = Tree({"edl_labs/old.py": long, "edl_labs/grew.py": short, "edl_labs/named.py": long})
    after = Tree({"edl_labs/old.py": long, "edl_labs/grew.py": long, "edl_labs/other.py": long, "tests/t.py": long})

    assert ["edl_labs/grew.py"] == newly_long(before, after, {"edl_labs/other.py": "edl_labs/named.py"})


def test_optional_parts_of_exercises_are_found_with_their_users() -> None:
    engine = (
        "def exercise(name, *, lab='', uses=()):\n    pass\n"
        "def show(one):\n    return getattr(one.spec, 'show', None)\n"
        "class Exercise:\n    digits: int = 9\n    def probe(self): ...\n"
    )
    lab = (
        "class Base:\n    def show(self): ...\n"
        "@exercise('a', uses=('b',))\nclass A(Base):\n    def probe(self): ...\n"
        "@exercise('b')\nclass B(Base):\n    def own(self): ...\n"
    )

    assert {"digits": 0, "show": 2, "uses": 1} == hooks_of(
        {"edl_labs/checks/engine.py": engine, "edl_labs/exercises/lab01/a.py": lab}
    )
