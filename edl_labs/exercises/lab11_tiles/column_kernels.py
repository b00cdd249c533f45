"""column_sums: programs that share an output, by atomics or by a second pass."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import FP32_ROUNDING, KernelRun
from edl_labs.exercises.lab11_tiles.tile_exercises import KernelExercise, TensorForm
from edl_labs.units import counted


@exercise("column_sums")
class ColumnSums(KernelExercise):
    """`column_sums(x, BM, BN)` returns the sum of each column of a tall fp16 matrix, in fp32."""

    host: ClassVar[str] = "column_sums"

    def forms(self, given: Any) -> dict[str, TensorForm]:
        return {"x": TensorForm((given["rows"], given["columns"]), "float16")}

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["BM"], given["BN"])

    def out_form(self, given: Any) -> TensorForm:
        return TensorForm((given["columns"],), "float32")

    def truth(self, case: Any, values: dict[str, Any]) -> tuple[Any, Any]:
        import numpy as np

        x = values["x"].astype(np.float64)
        return x.sum(axis=0), 2 * (case["rows"] + 8) * FP32_ROUNDING * np.abs(x).sum(axis=0)

    def reads(self, given: Any) -> dict[str, int]:
        return {"x": given["rows"] * given["columns"]}

    def most_moved(self, given: Any) -> int:
        """Atomics read and write each sum of a tile; a second pass reads what the first one wrote."""
        return (2 * -(-given["rows"] // given["BM"]) + 1) * given["columns"]

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        tiles = -(-case["rows"] // case["BM"]) * -(-case["columns"] // case["BN"])
        programs = max(one.programs for one in run.launches)
        if programs < tiles:
            why = f"x has {tiles:,} tiles, but the largest grid has only {counted(programs, 'program')}"
            raise Wrong(
                "A program of your kernel sums more than one tile.",
                why=why,
                next="launch one program for each tile of x",
            )

    def explain_values(self, case: Any, run: KernelRun, out: Any, right: Any, bound: Any) -> Wrong:
        """Sums of some rows alone show which tiles reach the output."""
        import numpy as np

        x = self.values(case)["x"].astype(np.float64)
        whole, last = len(x) // case["BM"] * case["BM"], (len(x) - 1) // case["BM"] * case["BM"]
        if 0 < whole < len(x) and np.all(np.abs(out - x[:whole].sum(axis=0)) <= bound):
            why = f"your values are the sums of rows 0 to {whole - 1}, but x has {len(x)} rows"
            return Wrong(
                "Your sums leave out the last rows.", why=why, next="round the number of programs up: cdiv(M, BM)"
            )
        for name, rows in (("first", x[: case["BM"]]), ("last", x[last:])):
            if last and np.all(np.abs(out - rows.sum(axis=0)) <= bound):
                why = f"each of your values is the sum over only the {name} tile of rows"
                then = "add the sums of all tiles: use tl.atomic_add, or a second kernel that adds partial sums"
                return Wrong("Your output contains the sums of only one tile of rows.", why=why, next=then)
        return super().explain_values(case, run, out, right, bound)

    def explain_nan(self, case: Any, run: KernelRun, seen: str) -> Wrong:
        """Atomics on memory that was never set."""
        if not all(one.zeros for one in run.program.allocated):
            why = f"{seen}; the input contains no NaN, but memory from torch.empty has undefined values"
            then = "allocate the tensor that you add to with torch.zeros"
            return Wrong("Your kernel adds to memory that was never set.", why=why, next=then)
        return super().explain_nan(case, run, seen)

    def format_case(self, case: Any) -> str:
        """The sizes of the matrix and of its tiles."""
        return f"x of {case['rows']} x {case['columns']} float16, BM = {case['BM']}, BN = {case['BN']}"
