"""What self_times says of rows that were misread, and of another rule for devices, in all cases."""

from __future__ import annotations

import pytest

from edl_labs.checks import judge
from edl_labs.checks.evidence import collect
from edl_labs.checks.lab_facts import facts
from edl_labs.checks.spec import given_halves


@pytest.fixture(scope="module")
def misread(exercises, solution):
    """`misread(self_times=...)`: the outcome with the public cases."""
    cases, want = facts("lab05_profiling").golden("self_times")

    def misread(**replaced):
        got = collect(exercises["self_times"], {**solution, **replaced}, given_halves(cases))
        return judge(exercises["self_times"], cases, got, want, points=1)

    return misread


def walked(*, sort=lambda row: (row["start_s"], -row["end_s"]), thread=lambda row: row["thread"], touching=False):
    """self_times by a walk over the rows with a stack for each thread."""

    def self_times(rows):
        own, around = {}, {}
        for row in sorted(rows, key=sort) if sort else rows:
            stack = around.setdefault(thread(row), [])
            over = (lambda end_s, start_s: end_s < start_s) if touching else (lambda end_s, start_s: end_s <= start_s)
            while stack and over(stack[-1]["end_s"], row["start_s"]):
                stack.pop()
            spent_s = row["end_s"] - row["start_s"]
            own[row["name"]] = own.get(row["name"], 0.0) + spent_s
            if stack:
                own[stack[-1]["name"]] -= spent_s
            stack.append(row)
        return own

    return self_times


def last_of_a_name(rows):
    """The self time of each name's last row alone."""
    numbered = [{**row, "name": f"{number} {row['name']}"} for number, row in enumerate(rows)]
    return {name.split(" ", 1)[1]: spent_s for name, spent_s in walked()(numbered).items()}


@pytest.mark.parametrize(
    ("self_times", "told"),
    [
        (walked(sort=None), "your code goes through the rows in the order of the list"),
        (walked(sort=lambda row: row["start_s"]), "if two rows begin together, your code counts the shorter one as"),
        (walked(thread=lambda row: 0), "your code treats rows of a different thread as nested"),
        (walked(touching=True), "if one row ends exactly when another begins, your code puts the second"),
        (last_of_a_name, "your code does not add up rows with the same name"),
    ],
)
def test_the_difficulty_without_which_all_is_right_is_told(misread, self_times, told):
    assert misread(self_times=self_times).what.startswith(told)


def test_two_difficulties_at_once_are_told_as_none(misread):
    outcome = misread(self_times=walked(sort=None, thread=lambda row: 0))

    assert "right in all cases" not in outcome.why


def without_abs(entry, *, cpu_flop_per_s):
    fast = entry["flop"] > cpu_flop_per_s * entry["cuda_s"]
    return "gpu" if fast or entry["cuda_s"] - entry["cpu_s"] > 0.05 * entry["cpu_s"] else "cpu"


def by_cpu_time(entry, *, cpu_flop_per_s):
    fast = entry["flop"] > cpu_flop_per_s * entry["cpu_s"]
    return "gpu" if fast or abs(entry["cuda_s"] - entry["cpu_s"]) > 0.05 * entry["cpu_s"] else "cpu"


def unknown_on_the_cpu(entry, *, cpu_flop_per_s):
    fast = entry["flop"] > cpu_flop_per_s * entry["cuda_s"]
    apart = abs(entry["cuda_s"] - entry["cpu_s"]) > 0.05 * entry["cpu_s"]
    return "gpu" if entry["flop"] and (fast or apart) else "cpu"


@pytest.mark.parametrize(
    ("ran_on", "told"),
    [
        (without_abs, "your code accepts every cuda_s below cpu_s as a reading of the same clock"),
        (by_cpu_time, "your code compares the work with what the CPU can do at its peak within cpu_s"),
        (unknown_on_the_cpu, "your code assigns an operator with 0 FLOPs to the CPU"),
    ],
)
def test_a_rule_that_gives_all_devices_is_told(misread, ran_on, told):
    assert misread(ran_on=ran_on).what.startswith(told)


def test_a_rule_that_one_answer_does_not_follow_is_not_told(misread):
    asked = []

    def ran_on(entry, *, cpu_flop_per_s):
        asked.append(entry)
        flipped = {"cpu": "gpu", "gpu": "cpu"} if len(asked) == 3 else {"cpu": "cpu", "gpu": "gpu"}
        return flipped[without_abs(entry, cpu_flop_per_s=cpu_flop_per_s)]

    assert "follow this rule" not in misread(ran_on=ran_on).why
