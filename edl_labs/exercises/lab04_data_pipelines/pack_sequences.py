"""pack_sequences: first-fit-decreasing on a recorded tree, its comparisons counted in a replay, and the mask."""

from __future__ import annotations

import json
import math
from typing import Any

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.virtual import ReplayError
from edl_labs.virtual.bin_tree import BinTree, PackedBins, replay_bins

_PACKED = 0.5  # of the points: two functions, and the one that is right keeps its half
LOOKS = 3  # times n log2 n, promised in the lab's text


@exercise("pack_sequences")
class PackSequences:
    """First-fit-decreasing in O(n log n) comparisons, and the mask that keeps neighbours apart.

    `student.pack_sequences(lengths, tree)` gives rows of indices; `student.packed_mask(…)` a mask.
    """

    @property
    def form(self) -> Any:
        """What evidence looks like."""
        import torch

        return {"rows": [[0]], "program": "", "refused": "", "changed": False} | {
            "mask": torch.zeros(1, 1, dtype=torch.bool)
        }

    def probe(self, student: Any, case: Any) -> Any:
        mask = student.packed_mask(list(case["mask_lengths"]), case["mask_capacity"])
        tree, lengths = BinTree(case["capacity"], bins=len(case["lengths"])), list(case["lengths"])
        try:
            rows = student.pack_sequences(lengths, tree)
        except ValueError as error:
            return {"rows": [[0]], "program": "[]", "refused": str(error), "changed": False, "mask": mask}
        changed = lengths != case["lengths"]
        made = [list(row) for row in rows]
        return {"rows": made, "program": _text(tree), "refused": "", "changed": changed, "mask": mask}

    def compare(self, case: Any, got: Any, want: Any) -> None:
        self._judge_first_fit(case, got)
        _judge_mask(case, got["mask"].numpy(), want["mask"].numpy())

    def combine(self, fractions: list[float]) -> float:
        """The packing is half of the points: they stay where the mask alone is wrong, in whatever cases."""
        return min(fractions, default=0.0)

    def _judge_first_fit(self, case: Any, got: Any) -> None:
        if max(case["lengths"]) > case["capacity"]:
            _judge_refusal(case, got["refused"])
            return
        if got["refused"]:
            raise Wrong(
                "sequences that fit were refused", why=got["refused"][:200], next="only what is longer than a row"
            )
        run = _replayed(case, got["program"])
        try:
            _judge_rows(case, got["rows"], run)
        except Wrong:
            if not got["changed"]:
                raise
            raise Wrong(
                "the list that was given was sorted itself",
                why="after that an index is a place in another order than the caller's",
                next="sort the indices by length: sorted(range(len(lengths)), key=…), and leave `lengths` as it is",
            ) from None
        _judge_packing(case, run)

    def public(self, case: Any, want: Any) -> Any:
        """The mask: the packing itself follows from the rules, and its program would be one to copy."""
        return {"mask": want["mask"]}

    def yours(self, case: Any, got: Any) -> str:
        """The rows; the message speaks of the mask where that is wrong."""
        if got["refused"]:
            return f"ValueError: {got['refused'][:200]}"
        return f"{len(got['rows'])} rows, {got['rows'][:6]}"

    def show(self, case: Any) -> str:
        return (
            f"{len(case['lengths'])} lengths, rows of {case['capacity']}: {str(case['lengths'])[:300]}\n"
            f"mask: {case['mask_lengths']} in a row of {case['mask_capacity']}"
        )


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
            next="look and put through the tree that was given, and leave its record alone",
        ) from None


def _judge_mask(case: Any, mask: Any, right: Any) -> None:
    if mask.shape != right.shape or str(mask.dtype) != "bool":
        raise Wrong(
            "the mask has another shape or dtype",
            why=f"{mask.dtype} of {mask.shape}, for a row of {case['mask_capacity']}",
            next="one bool for each pair of positions of the row",
            keeps=_PACKED,
        )
    if (mask == right).all():
        return
    told, then = "the mask is wrong", "write down the mask of two sequences of two tokens by hand"
    size = case["mask_capacity"]
    if (mask == right.T).all():
        told, then = "the mask is turned round", "row i says what position i may look at"
    elif any(mask[i, j] for i in range(size) for j in range(i + 1, size)):
        told, then = "a token looks into the future", "position i sees positions up to i"
    elif (mask & ~right)[: sum(case["mask_lengths"])].any():
        told, then = "a token looks into another sequence", "where does its own sequence begin?"
    elif mask[sum(case["mask_lengths"]) :].any():
        told, then = "padding looks at something", "positions behind the last sequence see nothing, not even themselves"
    elif (right & ~mask).any():
        told, then = "a token does not see all of its own sequence", "itself, and all before it in its sequence"
    place = [int(n) for n in (mask != right).nonzero()[0][:1]] + [int(n) for n in (mask != right).nonzero()[1][:1]]
    where = f"lengths {case['mask_lengths']}, position {place[0]} to position {place[1]}"
    raise Wrong(told, why=where, next=then, keeps=_PACKED)


def _judge_refusal(case: Any, refused: str) -> None:
    place = max(range(len(case["lengths"])), key=case["lengths"].__getitem__)
    if not refused:
        raise Wrong(
            "a sequence longer than a row was packed",
            why=f"sequence {place} has {case['lengths'][place]} tokens, a row {case['capacity']}",
            next="raise a ValueError that names it",
        )
    if str(place) not in "".join(c if c.isdigit() else " " for c in refused).split():
        raise Wrong(
            "the error does not say which sequence is too long",
            why=f"it says {refused[:120]!r}; it is sequence {place}",
            next="whoever reads it has a million of them",
        )


def _judge_rows(case: Any, rows: Any, run: PackedBins) -> None:
    if sorted(str(i) for row in rows for i in row) == sorted(map(str, case["lengths"])):
        why = f"the first row is {str(rows[0])[:60]}"
        raise Wrong("the rows hold lengths, not indices", why=why, next="give the place of a sequence in `lengths`")
    if sorted(i for row in rows for i in row) != list(range(len(case["lengths"]))):
        raise Wrong(
            "not every sequence is packed exactly once", why="an index is missing or comes twice", next="count them"
        )
    empty = sum(not row for row in rows)
    if empty:
        raise Wrong(
            "empty rows came back",
            why=f"{empty} of {len(rows)} rows hold no sequence",
            next="leave out rows that stayed empty",
        )
    told = sorted(tuple(sorted(case["lengths"][i] for i in row)) for row in rows)
    if told != sorted(tuple(sorted(row)) for row in run.bins):
        raise Wrong(
            "the rows are not what was put into the tree",
            why=f"{len(rows)} rows came back, {len(run.bins)} rows of the tree were filled",
            next="return, for each row that was filled, the indices of what was put there",
        )


def _never_exactly_full(case: Any) -> list[list[int]]:
    """First fit, decreasing, that asks for more room than a sequence has tokens."""
    rows: list[list[int]] = []
    rooms: list[int] = []
    for length in sorted(case["lengths"], reverse=True):
        row = next((row for row, room in enumerate(rooms) if room > length), len(rows))
        if row == len(rows):
            rows.append([])
            rooms.append(case["capacity"])
        rows[row].append(length)
        rooms[row] -= length
    return rows


def _judge_packing(case: Any, run: PackedBins) -> None:
    if run.unsorted is not None:
        raise Wrong(
            "a long sequence came after a shorter one",
            why=f"put {run.unsorted} is longer than the one before it",
            next="decreasing: the longest first",
        )
    if run.skipped is not None and [list(row) for row in run.bins] == _never_exactly_full(case):
        raise Wrong(
            "a row with exactly the room was passed over",
            why=f"put {run.skipped} would have filled an earlier row to its last token",
            next="room that is as large as the sequence is enough",
        )
    if run.skipped is not None:
        raise Wrong(
            "a sequence went into a later row than it had to",
            why=f"at put {run.skipped} an earlier row had room",
            next="first fit: the first row with room, not the fullest and not the emptiest",
        )
    if run.unproven is not None:
        raise Wrong(
            "the looks do not show that no earlier row had room",
            why=f"before put {run.unproven}, what was seen of the tree leaves it open",
            next="decide by what tree.room() says: a node with too little room rules out all rows below it",
        )
    count, most = len(case["lengths"]), most_looks(len(case["lengths"]))
    if run.looks > most:
        raise Wrong(
            "too many comparisons",
            why=f"{run.looks:,} looks for {count} sequences; {most:,} are allowed, 3 n log2 n",
            next="one look at a node rules out all rows below it: walk down from the root instead of along the rows",
        )
