"""tile_order: which tile a program computes decides what the L2 cache can share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from edl_labs.checks import Exercise, exercise
from edl_labs.errors import Wrong


@exercise("tile_order")
class TileOrder(Exercise):
    """`tile_order(pid, rows, columns, group)` returns (row, column) of the tile that program `pid` computes."""

    answers = "all"

    returns: ClassVar[Mapping[str, Any]] = {"tile_order": tuple[int, int]}

    def probe(self, student: Any, given: Any) -> Any:
        rows, columns, group = given["rows"], given["columns"], given["group"]
        return [list(student.tile_order(pid, rows, columns, group)) for pid in range(rows * columns)]

    def compare(self, case: Any, got: Any, want: Any) -> None:
        tiles = [(row, column) for row, column in got]
        if [[row, column] for column, row in tiles] == want != got:
            pid = next(pid for pid, tile in enumerate(tiles) if list(tile) != want[pid])
            why = f"for program {pid}, got {tiles[pid]}, expected {tuple(want[pid])}"
            raise Wrong("Your function exchanges row and column.", why=why, next="return (row, column)")
        self._require_all_tiles(case, tiles)
        for pid, (mine, theirs) in enumerate(zip(tiles, want, strict=True)):
            if mine != tuple(theirs):
                raise self._other_order(case, pid, tiles, want)

    def _require_all_tiles(self, case: Any, tiles: list[tuple[int, int]]) -> None:
        rows, columns = case["rows"], case["columns"]
        for pid, (row, column) in enumerate(tiles):
            if not (0 <= row < rows and 0 <= column < columns):
                last = f"the last row is {rows - 1}, and the last column is {columns - 1}"
                why = f"program {pid} gets row {row} and column {column}, but {last}"
                then = "check the last group: it can have fewer than `group` rows"
                raise Wrong("In your order, a program computes a tile that does not exist.", why=why, next=then)
        twice = [pid for pid, tile in enumerate(tiles) if tiles.index(tile) != pid]
        if twice:
            pid = twice[0]
            why = f"programs {tiles.index(tiles[pid])} and {pid} both compute tile {tiles[pid]}"
            raise Wrong(
                "In your order, two programs compute the same tile.",
                why=why,
                next="assign a different tile to each pid",
            )

    def _other_order(self, case: Any, pid: int, tiles: list[tuple[int, int]], want: Any) -> Wrong:
        right = [tuple(one) for one in want]
        wave = case["group"] * case["columns"]
        mine, best = strips_of(tiles[:wave]), strips_of(right[:wave])
        why = f"for program {pid}, got tile {tiles[pid]}, expected {right[pid]}"
        if mine > best:
            why += f"; the first {wave} programs then read {mine} strips of A and B, but {best} are enough"
        first = pid // (case["group"] * case["columns"]) * case["group"]
        if not first <= tiles[pid][0] < first + case["group"]:
            then = "in a group of rows, compute the tiles of all columns before the next group begins"
            return Wrong("In your order, a program computes a tile outside its group of rows.", why=why, next=then)
        then = "within a group, go down the rows of one column, then continue with the next column"
        return Wrong("Within a group, your order of the programs is wrong.", why=why, next=then)

    def format_case(self, case: Any) -> str:
        """The grid of tiles and the group."""
        return f"{case['rows']} x {case['columns']} tiles, groups of {case['group']} rows"


def strips_of(tiles: list[tuple[int, int]]) -> int:
    """How many strips of A and of B these tiles need: their distinct rows, and their distinct columns.

    >>> strips_of([(0, 0), (0, 1), (1, 0), (1, 1)])
    4
    """
    return len({row for row, _ in tiles}) + len({column for _, column in tiles})
