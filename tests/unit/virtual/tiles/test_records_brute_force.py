"""What is recorded equals a count element by element, in plain Python."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from edl_labs.virtual.tiles import evaluate, parse_kernels
from tests.sampling import few

SIZE = 128
SOURCE = """
@jit
def f(x, y, a, b, c, e, p, q, r, t, N: tl.constexpr, STORE: tl.constexpr, AGAIN: tl.constexpr):
    at = tl.arange(0, N)
    pid = tl.program_id(0)
    v = tl.load(x + (at * a + pid * b) % c, mask=at < e, other=0)
    w = (at * p + pid * q) % r
    if STORE == 0:
        tl.store(y + w, v, mask=at < t)
    elif STORE == 1:
        tl.atomic_add(y + w, v, mask=at < t)
    if AGAIN:
        v = tl.load(y + w, mask=at < t, other=0)
        tl.store(x + 100 + pid, tl.sum(v, 0))
"""


def draw(seed: int) -> tuple[int, dict[str, int]]:
    rng = np.random.default_rng(seed)
    one = {name: int(rng.integers(0, 9)) for name in "abpq"}
    one |= {"c": int(rng.integers(8, 100)), "r": int(rng.integers(8, SIZE)), "N": int(2 ** rng.integers(1, 5))}
    one |= {"e": int(rng.integers(0, 18)), "t": int(rng.integers(0, 18)), "STORE": int(rng.integers(0, 3))}
    return int(rng.integers(1, 5)), {**one, "AGAIN": int(rng.integers(0, 2))}


def counted(programs: int, k: dict[str, int], item_bytes: int) -> dict[str, object]:
    """The records, one lane of one program after the other; accesses in the order of the program's text."""
    touched: dict[tuple[str, int], set[tuple[int, str]]] = defaultdict(set)
    read, written, once, sectors = defaultdict(int), defaultdict(int), defaultdict(set), defaultdict(int)
    races, crossed, twice, stored_by = set(), set(), set(), {}
    stored, early = set(), defaultdict(set)

    def access(tensor: str, kind: str, pid: int, lanes: list[tuple[int, int]], shape: str) -> None:
        sectors[tensor, kind == "read"] += len({element * item_bytes // 32 for _, element in lanes})
        if kind == "atomic":
            sectors[tensor, True] += len({element * item_bytes // 32 for _, element in lanes})
        for lane, element in lanes:
            touched[tensor, element].add((pid, kind))
            if kind != "write" and (tensor, element) not in stored:
                early[tensor].add(element)
            for word, count in (("read", read), ("write", written)):
                if kind in (word, "atomic"):
                    count[tensor] += 1
                    once[tensor, word].add(element)
            if kind == "read" and stored_by.get((pid, tensor, element), (lane, shape)) != (lane, shape):
                crossed.add((tensor, element))
        if kind != "read":
            stored.update((tensor, element) for _, element in lanes)
        if kind == "write":
            at = [element for _, element in lanes]
            twice.update((tensor, element) for element in at if at.count(element) > 1)
            stored_by.update({(pid, tensor, element): (lane, shape) for lane, element in lanes})

    for pid in range(programs):
        access("x", "read", pid, [(i, (i * k["a"] + pid * k["b"]) % k["c"]) for i in range(min(k["N"], k["e"]))], "N")
        lanes = [(i, (i * k["p"] + pid * k["q"]) % k["r"]) for i in range(min(k["N"], k["t"]))]
        if k["STORE"] < 2:
            access("y", ("write", "atomic")[k["STORE"]], pid, lanes, "N")
        if k["AGAIN"]:
            access("y", "read", pid, lanes, "N")
            access("x", "write", pid, [(0, 100 + pid)], "1")
    for place, by in touched.items():
        several, kinds = len({pid for pid, _ in by}) > 1, {kind for _, kind in by}
        if several and ("write" in kinds or ("atomic" in kinds and "read" in kinds)):
            races.add((place[0], "programs"))
        if not several and (place in twice or place in crossed):
            races.add((place[0], "store" if place in twice else "lanes"))
    return {
        "read": dict(read), "written": dict(written), "once": {key: len(one) for key, one in once.items()},
        "sectors": {key: count for key, count in sectors.items() if count}, "races": races,
        "sectors_once": {key: len({element * item_bytes // 32 for element in one}) for key, one in once.items()},
        "early": {key: len(one) for key, one in early.items()},
    }  # fmt: skip


@pytest.mark.parametrize("seed", few(range(150), quick=40))
def test_bytes_sectors_races_and_reads_before_a_write(seed: int) -> None:
    programs, constants = draw(seed)
    kind = (np.int32, np.int64, np.float32)[seed % 3]
    x, y = np.arange(SIZE).astype(kind), np.zeros(SIZE, kind)
    record = evaluate(parse_kernels(SOURCE), "f", (programs,), {"x": x, "y": y, **constants})
    by_name = {one.name: one for one in record.tensors}
    once = {(n, "read"): one.read_once_elements for n, one in by_name.items()}
    once |= {(n, "write"): one.written_once_elements for n, one in by_name.items()}
    sectors_once = {(n, "read"): one.read_once_sectors for n, one in by_name.items()}
    sectors_once |= {(n, "write"): one.written_once_sectors for n, one in by_name.items()}
    sectors = {(n, True): one.read_sectors for n, one in by_name.items()}
    sectors |= {(n, False): one.written_sectors for n, one in by_name.items()}
    actual = {
        "read": {n: c for n, c in record.read.items() if c}, "written": {n: c for n, c in record.written.items() if c},
        "once": {key: c for key, c in once.items() if c}, "sectors": {key: c for key, c in sectors.items() if c},
        "races": {(race.tensor, race.kind) for race in record.races},
        "sectors_once": {key: c for key, c in sectors_once.items() if c},
        "early": {n: c for n, one in by_name.items() if (c := one.read_before_write_elements)},
    }  # fmt: skip

    assert counted(programs, constants, x.itemsize) == actual


def live(text: str) -> int:
    body = "\n".join("    " + line for line in text.splitlines())
    source = f"@jit\ndef f(x, y, n):\n{body}\n"
    x, y = np.zeros(64, np.float32), np.zeros(64, np.float32)
    return evaluate(parse_kernels(source), "f", (1,), {"x": x, "y": y, "n": 2}).live_bytes


def test_live_bytes_count_values_that_are_still_needed() -> None:
    load = "at = tl.arange(0, 16)\na = tl.load(x + at)\n"
    assert 64 + 64 == live(load + "tl.store(y + at, a)")  # offsets and values
    assert 3 * 64 == live(load + "b = a * 2\ntl.store(y + at, b + a)")
    assert 2 * 64 == live(load + "b = a * 2\ntl.store(y + at, b)")  # `a` is no longer needed
    assert 2 * 64 == live(load + "b = a * 2\na = b\ntl.store(y + at, a)")  # names do not matter
    assert 3 * 64 == live(load + "for i in range(n):\n    a = a + tl.load(x + at)\ntl.store(y + at, a)")
