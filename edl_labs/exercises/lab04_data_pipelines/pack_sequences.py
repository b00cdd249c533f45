"""pack_sequences: first-fit-decreasing on a recorded tree, its comparisons counted in a replay, and the mask."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import UsageError, Wrong
from edl_labs.units import counted
from edl_labs.virtual import ReplayError
from edl_labs.virtual.bin_tree import BinTree, PackedBins, replay_bins

_PACKED = 0.5  # of the points: two functions, and the one that is right keeps its half
_LATER = "your code put a sequence into a later row than necessary"
_UNPROVEN = "your looks do not prove that no earlier row had room"
LOOKS = 3  # times n log2 n, promised in the lab's text


@exercise("pack_sequences")
class PackSequences(Exercise):
    """First-fit-decreasing in O(n log n) comparisons, and the mask that keeps neighbours apart.

    `student.pack_sequences(lengths, tree)` gives rows of indices; `student.packed_mask(…)` a mask.
    """

    answers = ("rows", "program", "refused", "mask")

    returns: ClassVar[Mapping[str, Any]] = {"pack_sequences": list[list[Any]]}

    @property
    def answer_form(self) -> Any:
        """What evidence looks like."""
        import torch

        return {"rows": [[0]], "program": "", "refused": "", "changed": False, "leaf": 0} | {
            "mask": torch.zeros(1, 1, dtype=torch.bool)
        }

    def probe(self, student: Any, given: Any) -> Any:
        mask = student.packed_mask(list(given["mask_lengths"]), given["mask_capacity"])
        tree, lengths = BinTree(given["capacity"], bins=len(given["lengths"])), list(given["lengths"])
        try:
            rows = student.pack_sequences(lengths, tree)
        except ValueError as error:
            return {**_NO_ROWS, "refused": str(error), "mask": mask}
        except UsageError as error:
            leaf = _leaf_for_row(tree, error.what)
            if not leaf:
                raise
            return {**_NO_ROWS, "leaf": leaf, "mask": mask}
        changed = lengths != given["lengths"]
        made = [list(row) for row in rows]
        return {**_NO_ROWS, "rows": made, "program": _text(tree), "changed": changed, "mask": mask}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        self._judge_first_fit(case, got)
        _judge_mask(case, got["mask"].numpy(), want["mask"].numpy())

    def diagnose_all_cases(self, cases: list[Any], got: list[Any], want: list[Any]) -> Wrong | None:
        """The one rule by which all sequences of all cases were put where they are, if that is no first fit."""
        told = {self._told(case, one) for case, one in zip(cases, got, strict=True)}
        if _LATER not in told or not told <= {_LATER, _UNPROVEN, ""}:
            return None
        puts = [
            (case, [tuple(action) for action in json.loads(one["program"]) if len(action) == 2])
            for case, one in zip(cases, got, strict=True)
        ]
        for what, why, then, rule in _RULES:
            if all(_follows(case, own, rule) for case, own in puts):
                return Wrong(what, why=why, next=then)
        return None

    def _told(self, case: Any, got: Any) -> str:
        try:
            self._judge_first_fit(case, got)
        except Wrong as wrong:
            return wrong.what
        return ""

    def combine(self, fractions: list[float]) -> float:
        """The packing is half of the points: they stay where the mask alone is wrong, in whatever cases."""
        return min(fractions, default=0.0)

    def _judge_first_fit(self, case: Any, got: Any) -> None:
        if got["leaf"]:
            raise Wrong(
                "your code gave tree.put() the number of a leaf, not of a row",
                why=f"{got['leaf']} is the number of the node where your walk down "
                "the tree ended; rows have numbers of "
                "their own, counted from 0",
                next="find the row that belongs to this leaf: row i is node tree.leaves + i",
            )
        if max(case["lengths"]) > case["capacity"]:
            _judge_refusal(case, got["refused"])
            return
        if got["refused"]:
            raise Wrong(
                "your function refused sequences that fit",
                why=got["refused"][:200],
                next="raise the error only for a sequence that is longer than a row",
            )
        run = _replayed(case, got["program"])
        try:
            _judge_rows(case, got["rows"], run)
        except Wrong:
            if not got["changed"]:
                raise
            raise Wrong(
                "your function changed the order of the given list",
                why="after that, an index no longer refers to the same sequence as in the caller's list",
                next="sort the indices by length: sorted(range(len(lengths)), key=…), and leave `lengths` unchanged",
            ) from None
        _judge_packing(case, run)

    def public_want(self, case: Any, want: Any) -> Any:
        """The mask: the packing itself follows from the rules, and its program would be one to copy."""
        return {"mask": want["mask"]}

    def format_answer(self, case: Any, got: Any) -> str:
        """The rows; the message speaks of the mask where that is wrong."""
        if got["refused"]:
            return f"ValueError: {got['refused'][:200]}"
        if got["leaf"]:
            return ""
        rows, more = ", ".join(map(str, got["rows"][:6])), ", …" if len(got["rows"]) > 6 else ""
        return f"{counted(len(got['rows']), 'row')}: {rows if len(rows) < 400 else rows[:400] + ' …'}{more}"

    def format_case(self, case: Any) -> str:
        return (
            f"{len(case['lengths'])} lengths, rows of {case['capacity']}: {str(case['lengths'])[:300]}\n"
            f"mask: {case['mask_lengths']} in a row of {case['mask_capacity']}"
        )


_NO_ROWS = {"rows": [[0]], "program": "[]", "refused": "", "changed": False, "leaf": 0}


def _leaf_for_row(tree: BinTree, refused: str) -> int:
    """The leaf that the very first put named as its row, right behind a look at it or at its neighbour; 0 if none."""
    named, actions = re.fullmatch(r"cannot put a length of \d+ into bin (\d+)", refused), tree.program
    leaf = int(named[1]) if named else 0
    walked = bool(actions) and all(len(action) == 1 for action in actions) and actions[-1][0] // 2 == leaf // 2
    return leaf if walked and tree.leaves <= leaf < 2 * tree.leaves else 0


def _text(tree: BinTree) -> str:
    return json.dumps(tree.program, separators=(",", ":"))


def most_looks(count: int) -> int:
    """How many looks at the tree are allowed for so many sequences."""
    return LOOKS * count * max(1, math.ceil(math.log2(count)))


def _replayed(case: Any, text: str) -> PackedBins:
    try:
        return replay_bins(json.loads(text), case["capacity"], bins=len(case["lengths"]))
    except (ReplayError, ValueError, RecursionError) as error:
        raise Wrong(
            "the tree's record cannot be replayed",
            why=str(getattr(error, "what", error))[:200],
            next="use only the given tree's own methods, and do not change its record",
        ) from None


def _judge_mask(case: Any, mask: Any, right: Any) -> None:
    if mask.shape != right.shape or str(mask.dtype) != "bool":
        raise Wrong(
            "your mask has the wrong shape or dtype",
            why=f"got {mask.dtype} with shape {mask.shape}, for a row of capacity {case['mask_capacity']}",
            next="return one bool for each pair of positions in the row",
            keeps=_PACKED,
        )
    if (mask == right).all():
        return
    told, then = "your mask is wrong", "write down the mask of two sequences of two tokens by hand"
    size = case["mask_capacity"]
    if (mask == right.T).all():
        told, then = "your mask is transposed", "make row i say what position i may look at"
    elif any(mask[i, j] for i in range(size) for j in range(i + 1, size)):
        told, then = "in your mask, a token looks into the future", "let position i look only at positions up to i"
    elif (mask & ~right)[: sum(case["mask_lengths"])].any():
        told, then = "in your mask, a token looks into another sequence", "where does its own sequence begin?"
    elif mask[sum(case["mask_lengths"]) :].any():
        told, then = (
            "in your mask, padding looks at something",
            "let positions after the last sequence see nothing, not even themselves",
        )
    elif (right & ~mask).any():
        told, then = (
            "in your mask, a token does not see enough of its own sequence",
            "let each token see itself and all earlier tokens of its sequence",
        )
    place = [int(n) for n in (mask != right).nonzero()[0][:1]] + [int(n) for n in (mask != right).nonzero()[1][:1]]
    where = (
        f"for lengths {case['mask_lengths']}, the entry for position {place[0]} looking at position {place[1]} is wrong"
    )
    raise Wrong(told, why=where, next=then, keeps=_PACKED)


def _judge_refusal(case: Any, refused: str) -> None:
    place = max(range(len(case["lengths"])), key=case["lengths"].__getitem__)
    if not refused:
        raise Wrong(
            "your code packed a sequence that is longer than a row",
            why=f"sequence {place} has {case['lengths'][place]} tokens, but a row has room for {case['capacity']}",
            next="raise a ValueError that names the sequence's index",
        )
    if str(place) not in "".join(c if c.isdigit() else " " for c in refused).split():
        raise Wrong(
            "your error does not say which sequence is too long",
            why=f"it says {refused[:120]!r}, but does not name sequence {place}",
            next="include its index in the message: a real data set has a million sequences",
        )


def _judge_rows(case: Any, rows: Any, run: PackedBins) -> None:
    if sorted(str(i) for row in rows for i in row) == sorted(map(str, case["lengths"])):
        why = f"the first row is {str(rows[0])[:60]}"
        raise Wrong("your rows contain lengths, not indices", why=why, next="use a sequence's index in `lengths`")
    if sorted(i for row in rows for i in row) != list(range(len(case["lengths"]))):
        raise Wrong(
            "your rows do not contain every sequence exactly once",
            why="an index is missing, or occurs twice",
            next="count the indices in your rows",
        )
    empty = sum(not row for row in rows)
    if empty:
        raise Wrong(
            "your function returned empty rows",
            why=f"{empty} of {len(rows)} rows contain no sequence",
            next="leave out rows that stayed empty",
        )
    if not run.bins:
        raise Wrong(
            "your code never calls tree.put()",
            why=f"your function returned {counted(len(rows), 'row')}, but the tree is still empty: every look shows a "
            "row with all of its room left",
            next="as soon as you have found the row of a sequence, put its length into this row of the tree",
        )
    told = sorted(tuple(sorted(case["lengths"][i] for i in row)) for row in rows)
    if told != sorted(tuple(sorted(row)) for row in run.bins):
        raise Wrong(
            "the rows that you returned differ from those in the tree",
            why=f"your function returned {counted(len(rows), 'row')}; it filled {counted(len(run.bins), 'row')} of the "
            "tree",
            next="for each row that was filled, return the indices of the sequences that you put there",
        )


# Of the rooms of all rows, a length, the row of the put before and the capacity: which row is taken?
_Rule = Callable[[list[int], int, int, int], int]


def _emptiest(rooms: list[int], length: int, row: int, capacity: int) -> int:
    begun = [(room, -i) for i, room in enumerate(rooms) if length <= room < capacity]
    return -max(begun)[1] if begun else rooms.index(capacity)


_RULES: tuple[tuple[str, str, str, _Rule], ...] = (
    (
        "your code skipped rows with exactly enough room",
        "sequences that would have filled an earlier row exactly were put into a later one",
        "compare with >=: room that is exactly as large as the sequence is enough",
        lambda rooms, length, row, capacity: next(
            i for i, room in enumerate(rooms) if room > length or room == capacity
        ),
    ),
    (
        "your code filled only the current row, and did not look at earlier rows again",
        "each sequence is in the same row as the previous one, or in the next row",
        "start at the first row each time: a shorter sequence may fit where a longer one did not",
        lambda rooms, length, row, capacity: row if rooms[row] >= length else row + 1,
    ),
    (
        "your code chose the last row with room, not the first",
        "no row after the chosen one ever had room, but earlier rows did",
        "below which of a node's two children are the earlier rows?",
        lambda rooms, length, row, capacity: max(i for i, room in enumerate(rooms) if room >= length),
    ),
    (
        "your code chose the fullest row with room, not the first",
        "of all rows with room, the chosen one always had the least",
        "apply first fit: of all rows with room, choose the first",
        lambda rooms, length, row, capacity: min((room, i) for i, room in enumerate(rooms) if room >= length)[1],
    ),
    (
        "your code chose the emptiest row, not the first with room",
        "of all rows that already contained a sequence, the chosen one always had the most room",
        "apply first fit: of all rows with room, choose the first",
        _emptiest,
    ),
)


def _follows(case: Any, puts: list[tuple[int, int]], rule: _Rule) -> bool:
    """Whether each sequence was put into the row that the rule takes."""
    capacity, before = case["capacity"], 0
    rooms = [capacity] * (1 << max(0, len(case["lengths"]) - 1).bit_length())
    for row, length in puts:
        if rule(rooms, length, before, capacity) != row:
            return False
        rooms[row], before = rooms[row] - length, row
    return True


def _judge_packing(case: Any, run: PackedBins) -> None:
    if run.unsorted is not None:
        raise Wrong(
            "your code put a long sequence after a shorter one",
            why=f"put {run.unsorted} places a longer sequence than the put before it",
            next="put the sequences in decreasing order of length, the longest first",
        )
    if run.skipped is not None:
        raise Wrong(
            _LATER,
            why=f"at put {run.skipped}, an earlier row had room",
            next="apply first fit: choose the first row that has room",
        )
    if run.unproven is not None:
        raise Wrong(
            _UNPROVEN,
            why=f"before put {run.unproven}, the nodes that you had looked at left open whether an "
            "earlier row had room",
            next="decide by the values of tree.room(): a node with too little room rules out all rows below it",
        )
    count, most = len(case["lengths"]), most_looks(len(case["lengths"]))
    if run.looks > most:
        raise Wrong(
            "your code looks at the tree too often",
            why=f"your code looked {run.looks:,} times for {count} sequences; at most 3 n log2 n = "
            f"{most:,} are allowed",
            next="walk down from the root instead of along the rows: one look at a node can rule out all rows below it",
        )
