"""Drawn programs: the replay ends, alike each time, and any damage to a record is a sentence."""

from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edl_labs.virtual.cluster import ClusterMachine, VirtualCluster, replay_cluster
from edl_labs.virtual.errors import ReplayError

MACHINE = ClusterMachine.of("4xT4", nodes=2).replace(ranks=5)
CALLS = (
    "all_reduce",
    "gather",
    "scatter",
    "send",
    "recv",
    "isend",
    "irecv",
    "wait",
    "kernel",
    "sync",
    "group",
    "barrier",
)
steps = st.tuples(st.sampled_from(CALLS), st.integers(0, 4), st.integers(1, 9), st.booleans())


def issue(dist, state: dict[str, Any], step: tuple[str, int, int, bool]) -> None:
    call, other, size, flag = step
    x, group = state["x"], state["groups"][other % len(state["groups"])]
    peer = other if other != dist.rank else (other + 1) % 5
    if call in ("send", "recv"):
        getattr(dist, call)(x[:size], peer)
    elif call in ("isend", "irecv"):
        state["works"].append(getattr(dist, call)(x[:size], peer))
    elif call == "wait" and state["works"]:
        state["works"][other % len(state["works"])].wait()
    elif call == "kernel":
        dist.launch("k", duration_s=size * 1e-6, reads=x, writes=x[:size])
    elif call == "sync":
        dist.synchronize()
    elif call == "group":
        state["groups"].append(dist.new_group(sorted({0, 1, other})))
    elif dist.get_rank(group) >= 0 and call != "wait":
        count, how = group.size(), {"group": group, "async_op": flag}
        calls = {
            "all_reduce": lambda: dist.all_reduce(x[:size], **how),
            "gather": lambda: dist.all_gather(dist.empty(count * size), x[:size], **how),
            "scatter": lambda: dist.reduce_scatter(x[:size], dist.tensor(count * size), **how),
            "barrier": lambda: dist.barrier(**how),
        }
        state["works"] += [work for work in [calls[call]()] if work is not None]


def recorded(common: list[Any], own: list[list[Any]]) -> list[Any]:
    def program(dist) -> None:
        state = {"x": dist.tensor(9, name="x"), "groups": [dist.WORLD], "works": []}
        for step in [*common, *own[dist.rank]]:
            issue(dist, state, step)

    return VirtualCluster(MACHINE).record(program)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(steps, max_size=6), st.lists(st.lists(steps, max_size=2), min_size=5, max_size=5))
def test_any_program_ends_or_says_who_waits_and_twice_the_same(common: list[Any], own: list[list[Any]]) -> None:
    programs = recorded(common, own)
    first = replay_cluster(programs, MACHINE)
    again = replay_cluster(json.loads(json.dumps(programs)), MACHINE.to_dict())

    assert first.to_json() == again.to_json()
    assert first.timeline == again.timeline
    if first.hang is not None:
        assert [0, 1, 2, 3, 4] == [wait.rank for wait in first.hang.waits]
        assert any(wait.index >= 0 for wait in first.hang.waits)
    for rank in range(5):
        parts = first.contents(rank, "x")
        assert (0, 9) == (parts[0].start, parts[-1].stop)
    assert all(race.rank in range(5) for race in first.races)


JUNK = st.one_of(
    st.none(), st.integers(-3, 10**20), st.floats(), st.text(max_size=3), st.just([]), st.just([[0, 0, 99]])
)


@pytest.mark.slow
@settings(deadline=None)
@given(st.lists(steps, min_size=1, max_size=5), st.data())
def test_a_damaged_record_is_replayed_or_refused_in_words(common: list[Any], data: st.DataObject) -> None:
    programs = copy.deepcopy(recorded(common, [[]] * 5))
    entry = data.draw(st.sampled_from(programs[data.draw(st.integers(0, 4))]))
    entry[data.draw(st.sampled_from(sorted(entry)))] = data.draw(JUNK)
    try:
        replay = replay_cluster(programs, MACHINE)
        for rank in range(5):
            replay.contents(rank, 0)
        assert replay.races is not None
    except ReplayError as error:
        assert error.what
        assert error.why
        assert error.next


@settings(max_examples=20, deadline=None)
@given(st.lists(steps, max_size=4))
def test_the_same_program_on_every_rank_never_meets_a_mismatch(common: list[Any]) -> None:
    safe = [step for step in common if step[0] not in ("send", "recv", "isend", "irecv", "group")]

    assert replay_cluster(recorded(safe, [[]] * 5), MACHINE).finished
