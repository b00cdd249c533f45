"""What counts as alike: structure, not names; and what does not: given code, and what everyone writes."""

from __future__ import annotations

import random

import pytest

from edl_labs.course.marks.similarity import (
    NOISE,
    WINDOW,
    fingerprints,
    similar_clusters,
    similar_pairs,
    solution_prints,
)

ONE = """
def finish(program, launch):
    host = device = 0.0
    for op, seconds in program:
        if op == "launch":
            host += launch
            device = max(device, host) + seconds
        elif op == "sync":
            host = max(host, device)
        else:
            host += seconds
    return host, max(host, device)
"""
OTHER = """
def finish(program, launch):
    queue, now = [], 0.0
    while program:
        kind, *rest = program.pop(0)
        now = {"launch": lambda: now + launch, "sync": lambda: max([now, *queue])}.get(kind, lambda: now)()
        queue.append(sum(rest) + (queue[-1] if queue else now))
    return now, queue[-1]
"""
RENAMED = ONE.replace("host", "h").replace("device", "gpu_t").replace("launch", "cost") + "\n\n# all my own work\n"


def pairs(solutions: dict[str, str], **options: object) -> list[tuple[str, str]]:
    found = similar_pairs(prints(solutions), **options)  # type: ignore[arg-type]
    return [(pair.first, pair.second) for pair in found]


def prints(solutions: dict[str, str]) -> dict[str, dict[str, frozenset[int]]]:
    """The fingerprints of a class, where each student answers one exercise."""
    return {who: {"finish": fingerprints(text)} for who, text in solutions.items()}


def test_renaming_and_comments_hide_nothing() -> None:
    assert [("ann", "bob")] == pairs({"ann": ONE, "bob": RENAMED, "eve": OTHER})


def test_code_that_everyone_was_given_does_not_count() -> None:
    assert [] == pairs({"ann": ONE, "bob": RENAMED}, staff=[ONE])


def test_what_a_large_part_of_the_class_writes_does_not_count() -> None:
    assert [] == pairs({f"s{n}": ONE for n in range(20)})


def test_fingerprints_are_read_in_a_process_of_its_own() -> None:
    assert {"a": fingerprints(ONE), "b": frozenset()} == solution_prints({"a": ONE, "b": ""})


def test_short_answers_are_never_alike() -> None:
    assert [] == pairs({"ann": "def f(a):\n    return 2 * a", "bob": "def f(b):\n    return 2 * b"})


@pytest.mark.parametrize("text", ["", "def (", "'''", "\0", "x" * 10_000, "if 1:\n  a\n b"])
def test_broken_code_has_fingerprints_or_none(text: str) -> None:
    assert isinstance(fingerprints(text), frozenset)


def test_every_shared_run_of_the_guaranteed_length_is_found() -> None:
    draw = random.Random(3)
    length = NOISE + WINDOW - 1
    operators = ["+", "-", "*", "/", "%", "@", "<", ">", "&", "|", "^", "=", ",", ":", "(", ")", "[", "]"]
    for _ in range(200):
        shared = [draw.choice(operators) for _ in range(length)]
        texts = []
        for _ in range(2):
            around = [[draw.choice(operators) for _ in range(draw.randint(0, 30))] for _ in range(2)]
            texts.append("(" * 40 + " ".join([*around[0], *shared, *around[1]]))

        assert fingerprints(texts[0]) & fingerprints(texts[1])


def varied(number: int) -> str:
    """An answer of its own: 60 operators in an order of its own."""
    draw = random.Random(number)
    tokens = [draw.choice(["+", "-", "*", "/", "%", "<", "x", "["]) for _ in range(60)]
    return f"def finish(x, y):\n    return ({' '.join(tokens)})"


@pytest.mark.parametrize(("ring", "others"), [(5, 9), (26, 74), (3, 4)])
def test_a_ring_is_found_however_large_a_part_of_the_class_it_is(ring: int, others: int) -> None:
    code = {f"r{n:02}": [ONE, RENAMED][n % 2] for n in range(ring)} | {f"s{n:02}": varied(n) for n in range(others)}
    found = similar_clusters(prints(code))

    assert [tuple(f"r{n:02}" for n in range(ring))] == [cluster.students for cluster in found]
    assert ("finish",) == found[0].exercises


def test_what_the_solution_or_a_hint_says_is_no_ring() -> None:
    assert [] == similar_clusters(prints({f"s{n}": ONE for n in range(9)}), staff=[RENAMED])
