"""Mutants are fixed, and found again where their function went."""

from __future__ import annotations

from tools.mutants_of_engine import Mutant, Tree, mutants

CODE = '''
class Judge:
    def is_late(self, left_s):
        return left_s <= 0 and not self.asleep


def half(value):
    """Half of 2."""
    return value / 2
'''
PATH = "edl_labs/checks/judge.py"


def test_each_operator_and_number_is_changed_once_and_docstrings_are_not() -> None:
    tree = Tree({PATH: CODE})
    texts = {str(tree.changed(one, PATH)) for one in mutants({PATH: CODE})}

    assert 8 == len(texts)
    assert any("left_s < 0 and" in text for text in texts)
    assert any("left_s <= 0 or" in text for text in texts)
    assert any("value * 2" in text for text in texts)
    assert all("Half of 2." in text for text in texts)


def test_the_order_is_the_seed_s_and_not_the_tree_s() -> None:
    other = "edl_labs/checks/another.py"
    both = mutants({other: CODE.replace("half", "third"), PATH: CODE})

    assert mutants({PATH: CODE}) == [one for one in both if one.path == PATH]


def test_a_function_that_moved_is_found_and_one_that_is_gone_is_not() -> None:
    mutant = Mutant(PATH, "half", "Constant 2", 0)

    assert "edl_labs/course/worker.py" == Tree({"edl_labs/course/worker.py": CODE}).home(mutant)
    assert None is Tree({PATH: CODE.replace("half", "third")}).home(mutant)
    assert None is Tree({PATH: CODE.replace("value / 2", "value / 4")}).home(mutant)
