"""Finds similar solutions, for a person to judge, by winnowed fingerprints of tokens without names and staff code.

Schleimer, Wilkerson and Aiken, "Winnowing: local algorithms for document fingerprinting" (2003): every match of at
least `NOISE + WINDOW - 1` tokens is found, and none shorter than `NOISE` counts.
"""

from __future__ import annotations

import io
import keyword
import tokenize
import zlib
from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import combinations
from statistics import median

from edl_labs.course.grade.bounded_call import bounded_call

NOISE = 8  # tokens: shorter runs, such as the head of a loop, are in everybody's code
WINDOW = 5  # keeps about a third of the fingerprints, and finds every shared run of 12 tokens
_SKIPPED = (tokenize.COMMENT, tokenize.NL, tokenize.ENCODING, tokenize.ENDMARKER)
_ALIKE = 0.8  # of the smaller solution: below it, pairs of a class are mostly the same idea
_LEAST_SHARED = 12  # fingerprints, a few lines: shorter solutions can hardly differ
_LEAST_MEMBERS = 3  # two are a pair
TELLS_COMMON = 8  # students: of fewer, two who copied are a quarter of the class
_COMMON_SHARE = 0.25  # what every fourth student writes is the natural way, not a copy


_Prints = Mapping[str, Mapping[str, frozenset[int]]]


@dataclass(frozen=True)
class Pair:
    """Two students whose solutions share much. `share` is of the smaller one's fingerprints, 0 to 1."""

    first: str
    second: str
    share: float
    shared: int
    exercises: tuple[str, ...]


@dataclass(frozen=True)
class Cluster:
    """Three students or more who hang together by pairs that share much, however many of the class they are.

    `share` is the median of those pairs' shares.
    """

    students: tuple[str, ...]
    share: float
    exercises: tuple[str, ...]


def fingerprints(source: str) -> frozenset[int]:
    """The winnowed fingerprints of Python code; names, numbers, texts, comments and layout do not count.

    >>> one, other = "def f(a, b): return [x * 2 for x in a]", "def g(c, d): return [y * 3 for y in d]  # !"
    >>> fingerprints(one) == fingerprints(other)
    True
    """
    tokens = _tokens(source)
    hashes = [zlib.crc32("\x1f".join(tokens[i : i + NOISE]).encode()) for i in range(len(tokens) - NOISE + 1)]
    return frozenset(_winnowed(hashes))


def solution_prints(solutions: Mapping[str, str]) -> dict[str, frozenset[int]]:
    """The fingerprints of one student's code, by exercise; none where reading it takes too long."""
    found = bounded_call(_all_prints, [*solutions.values()]) or [[] for _ in solutions]
    return {name: frozenset(prints) for name, prints in zip(solutions, found, strict=True)}


def similar_pairs(solutions: _Prints, *, staff: Iterable[str] = ()) -> list[Pair]:
    """Pairs of students who share at least four fifths of the smaller one's fingerprints, the most alike first.

    `solutions` are fingerprints by student and exercise; `staff` is code that all were given. Fingerprints of more than
    a quarter of a class of `TELLS_COMMON` or more are the natural way to write it, and do not count; for a smaller
    class `staff` should have the solution, too.
    """
    prints = _own_prints(solutions, staff)
    return _pairs(prints, without=_common(prints))


def similar_clusters(solutions: _Prints, *, staff: Iterable[str] = ()) -> list[Cluster]:
    """Clusters of students whose solutions are alike, the largest first: copying by many looks common, and is not.

    What many share counts here, as long as it is not in `staff`: the release, the hints and the solutions.
    """
    pairs = _pairs(_own_prints(solutions, staff), without=frozenset())
    root = {name: name for pair in pairs for name in (pair.first, pair.second)}

    def top(name: str) -> str:
        while root[name] != name:
            root[name] = name = root[root[name]]
        return name

    for pair in pairs:
        root[top(pair.first)] = top(pair.second)
    members: dict[str, list[Pair]] = {}
    for pair in pairs:
        members.setdefault(top(pair.first), []).append(pair)
    found = [_cluster(linked) for linked in members.values()]
    return sorted((c for c in found if len(c.students) >= _LEAST_MEMBERS), key=lambda c: (-len(c.students), c.students))


def _cluster(pairs: list[Pair]) -> Cluster:
    names = sorted({name for pair in pairs for name in (pair.first, pair.second)})
    where = dict.fromkeys(name for pair in pairs for name in pair.exercises)
    return Cluster(tuple(names), median(pair.share for pair in pairs), tuple(where))


def _all_prints(sources: list[str]) -> list[list[int]]:
    return [[*fingerprints(source)] for source in sources]


def _own_prints(solutions: _Prints, staff: Iterable[str]) -> _Prints:
    given = frozenset[int]().union(*(fingerprints(text) for text in staff))
    return {student: {name: prints - given for name, prints in cells.items()} for student, cells in solutions.items()}


def _pairs(prints: _Prints, *, without: frozenset[int]) -> list[Pair]:
    whole = {s: frozenset[int]().union(*cells.values()) - without for s, cells in prints.items()}
    found = []
    for first, second in combinations(sorted(whole), 2):
        shared = whole[first] & whole[second]
        smaller = min(len(whole[first]), len(whole[second]))
        if smaller and len(shared) >= _LEAST_SHARED and len(shared) / smaller >= _ALIKE:
            where = [
                name
                for name, mine in prints[first].items()
                if len(mine & prints[second].get(name, frozenset()) & shared) >= 2
            ]
            found.append(Pair(first, second, len(shared) / smaller, len(shared), tuple(where)))
    return sorted(found, key=lambda pair: (-pair.share, -pair.shared, pair.first, pair.second))


def _common(prints: Mapping[str, Mapping[str, frozenset[int]]]) -> frozenset[int]:
    if len(prints) < TELLS_COMMON:
        return frozenset()
    seen = Counter(value for cells in prints.values() for value in frozenset().union(*cells.values(), frozenset()))
    return frozenset(value for value, count in seen.items() if count > max(4, _COMMON_SHARE * len(prints)))


def _tokens(source: str) -> list[str]:
    found: list[str] = []
    try:
        for token in tokenize.generate_tokens(io.StringIO(source).readline):
            if token.type in _SKIPPED:
                continue
            found.append(_kind(token))
    except (tokenize.TokenError, SyntaxError, ValueError):
        pass  # what could be read of broken code still counts
    return found


def _kind(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return token.string if keyword.iskeyword(token.string) else "name"
    if token.type in (tokenize.NUMBER, tokenize.STRING):
        return "value"
    if token.type in (tokenize.INDENT, tokenize.DEDENT, tokenize.NEWLINE):
        return ""
    return token.string


def _winnowed(hashes: list[int]) -> Iterable[int]:
    """The smallest hash of each window, the rightmost of equal ones."""
    if len(hashes) <= WINDOW:
        return [min(hashes)] if hashes else []
    best: deque[int] = deque()
    chosen: dict[int, int] = {}
    for index, value in enumerate(hashes):
        while best and hashes[best[-1]] >= value:
            best.pop()
        best.append(index)
        if best[0] <= index - WINDOW:
            best.popleft()
        if index >= WINDOW - 1:
            chosen[best[0]] = hashes[best[0]]
    return chosen.values()
