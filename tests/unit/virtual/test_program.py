"""What all recorded programs have in common: one check of their form, one limit, one comparison, for every machine."""

from __future__ import annotations

from typing import Any

import pytest

from edl_labs.virtual.cluster.program import PROGRAM as CLUSTER
from edl_labs.virtual.errors import ReplayDisagreement, ReplayError
from edl_labs.virtual.gpu.program import PROGRAM as GPU
from edl_labs.virtual.loader.program import PROGRAM as LOADER
from edl_labs.virtual.memory.allocator.program import PROGRAM as ALLOCATOR
from edl_labs.virtual.memory.tape.program import PROGRAM as TAPE
from edl_labs.virtual.program import INDEX, READING, OperationKind, Program, flag, number, one_of, text, whole
from edl_labs.virtual.server.program import PROGRAM as SERVER
from edl_labs.virtual.warp.program import PROGRAM as WARP

PROGRAMS = (GPU, CLUSTER, LOADER, TAPE, ALLOCATOR, SERVER, WARP)
KINDS = [
    pytest.param(program, name, id=f"{program.recorder} {name}") for program in PROGRAMS for name in program.operations
]
COUNTER = Program(
    "Counter",
    "counter.program",
    {
        "add": OperationKind(
            {"by": INDEX},
            lambda counts, entry: counts.append(entry["by"]),
            misfit=lambda counts, entry: "of too much" if entry["by"] > 9 else "",
            charge=lambda counts, entry: 1 + entry["by"],
        ),
        "sum": OperationKind(READING, lambda counts, entry: sum(counts)),
        "first": OperationKind({}, lambda counts, entry: counts[0]),
    },
)


def refused(program: Program, entry: Any) -> str:
    with pytest.raises(ReplayError) as caught:
        program.checked(3, entry)

    assert program.recorder in caught.value.why
    return caught.value.what


@pytest.mark.parametrize(("program", "name"), KINDS)
def test_a_field_too_many_or_too_few_is_named(program, name):
    assert f"is a {name} with an unknown field, 'more'" in refused(program, {"op": name, "more": 1})
    assert f"is a {name} with an unknown field, 7" in refused(program, {"op": name, 7: 1})
    for missing in list(program.operations[name].required)[:1]:
        assert f"is a {name} that lacks the field {missing}" in refused(program, {"op": name})


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.recorder)
@pytest.mark.parametrize("entry", [7, None, [], {}, {"op": None}, {"op": "no such"}, {"op": ["list"]}])
def test_what_is_no_operation_is_refused(program, entry):
    assert "operation 3 of the program" in refused(program, entry)


@pytest.mark.parametrize(
    ("check", "good", "bad"),
    [
        (number(5), (0, 5, 2.5), (-1, 5.1, float("nan"), True, "1", 10**400)),
        (whole(5, 1), (1, 5), (0, 6, 2.0, True, None)),
        (text, ("a", "a" * 200), ("", "a" * 201, 1, b"a")),
        (flag, (True, False), (1, None)),
        (one_of("a", "b"), ("a",), ("c", ["a"], None)),
    ],
)
def test_checks_take_plain_values_of_their_kind_alone(check, good, bad):
    assert all(map(check, good))
    assert not any(map(check, bad))


def test_a_program_is_checked_charged_played_and_compared_in_its_turn():
    program = [{"op": "add", "by": 2}, {"op": "add", "by": 3}, {"op": "sum", "value": 5}]

    assert [None, None, 5] == [value for _, _, value in COUNTER.replayed([], program)]


@pytest.mark.parametrize(
    ("program", "error", "said"),
    [
        ([{"op": "sum", "value": 1}], ReplayDisagreement, "recorded with the value 1"),
        ([{"op": "sum", "value": 0.0}], ReplayDisagreement, "recorded with the value 0.0"),
        ([{"op": "add", "by": 10}], ReplayError, "is a add of too much"),
        ([{"op": "add", "by": 9}] * 2, ReplayError, "more than 15 operations"),
        ([{"op": "first"}], ReplayError, "is a first of something that the program did not create"),
        ((), ReplayError, "must be a list of operations, got a tuple"),
    ],
)
def test_a_program_that_none_recorded_is_refused(program, error, said):
    with pytest.raises(error, match=said):
        list(COUNTER.replayed([], program, at_most=15))
