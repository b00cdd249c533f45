"""lab07's judges: what their draws hold, and answers by hand that are right in another way."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_rings_of_every_kind_are_drawn(exercises, seed):
    cases = exercises["ring"].draw_cases(seed)
    sizes = [(case["ranks"], case["numel"]) for case in cases]

    assert {0, 1} <= {ranks % 2 for ranks, _ in sizes}
    assert any(numel > ranks and numel % ranks for ranks, numel in sizes)
    assert any(numel < ranks for ranks, numel in sizes)
    assert 1 in dict(sizes)
    # torch.chunk would give fewer pieces than ranks, though there are enough elements
    assert any(-(-numel // -(-numel // ranks)) < ranks < numel for ranks, numel in sizes)


def test_another_way_that_is_as_fast_is_right(judged):
    """Every chunk goes straight to its owner, and straight back to everyone: in a ring's time and bytes."""

    def straight(dist, buffer):
        rank, count = dist.get_rank(), dist.get_world_size()
        bounds = [at * len(buffer) // count for at in range(count + 1)]
        for adds in (True, False):
            for step in range(1, count):
                to, source = (rank + step) % count, (rank - step) % count
                out, into = (to, rank) if adds else (rank, source)
                work = None
                if bounds[out + 1] > bounds[out]:
                    work = dist.isend(buffer[bounds[out] : bounds[out + 1]], to)
                if bounds[into + 1] > bounds[into]:
                    arrived = dist.empty(bounds[into + 1] - bounds[into], dtype=buffer.dtype)
                    dist.recv(arrived, source)
                    (dist.add if adds else dist.copy)(buffer[bounds[into] : bounds[into + 1]], arrived)
                if work is not None:
                    work.wait()

    assert 1.0 == judged("ring", all_reduce=straight).points
