"""row_softmax and long_rows: a row that fits into a block, and one that does not."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import FP16_ROUNDING, FP16_TINY, FP32_ROUNDING, KernelRun
from edl_labs.exercises.lab11_tiles.tile_exercises import KernelExercise, TensorForm
from edl_labs.units import counted


class _RowSoftmax(KernelExercise):
    """Softmax of each row, fp16 in and out."""

    def forms(self, given: Any) -> dict[str, TensorForm]:
        return {"x": TensorForm((given["rows"], given["columns"]), "float16", given["row_stride"])}

    def out_form(self, given: Any) -> TensorForm:
        return TensorForm((given["rows"], given["columns"]), "float16")

    def values(self, case: Any) -> dict[str, Any]:
        """Normal values around the case's `level`; with a spread, so that a row's maximum decides."""
        import numpy as np

        drawn = np.random.default_rng(case["seed"]).standard_normal((case["rows"], case["columns"]))
        return {"x": (case["level"] + case["spread"] * drawn).astype(np.float16)}

    def truth(self, case: Any, values: dict[str, Any]) -> tuple[Any, Any]:
        import numpy as np

        x = values["x"].astype(np.float64)
        e = np.exp(x - x.max(axis=1, keepdims=True))
        right = e / e.sum(axis=1, keepdims=True)
        exact = FP16_ROUNDING + (case["columns"] + 64) * FP32_ROUNDING
        return right, right * exact + FP16_TINY

    def explain_nan(self, case: Any, run: KernelRun, seen: str) -> Wrong:
        """Padding between rows is NaN here: a kernel that gives NaN with it and none without it has read it."""
        if run.reads_padding(self.forms(case), self.out_form(case)):
            why = (
                f"{seen}; rows start {case['row_stride']} elements apart, but each has only {case['columns']} elements"
            )
            then = "advance by x.stride(0) from row to row, and mask with the number of columns"
            return Wrong("Your kernel reads the padding between rows.", why=why, next=then)
        then = "subtract the row's maximum before exp: exp(89) is infinite in fp32"
        return Wrong("Your output has NaN, but your kernel did not read any padding.", why=seen, next=then)

    def explain_values(self, case: Any, run: KernelRun, out: Any, right: Any, bound: Any) -> Wrong:
        """Rows that do not sum to 1 say more than their first element."""
        import numpy as np

        sums = np.asarray(out, dtype=np.float64).sum(axis=1)
        least = int(np.argmin(sums)) if not np.isnan(sums).any() else -1
        if least >= 0 and sums[least] < _LOW_SUM:
            why = f"row {least} has {case['columns']} columns and a maximum of {self._top(case, least):.3g}"
            return Wrong(
                f"A row of your output sums to {sums[least]:.4g}, not to 1.", why=why, next=self._next_of_sums(case)
            )
        return super().explain_values(case, run, out, right, bound)

    def _next_of_sums(self, case: Any) -> str:
        """Where some lanes are masked they may be the cause; elsewhere it is something else."""
        if case["columns"] % case.get("BLOCK", 1 << (case["columns"] - 1).bit_length()):
            return "how do masked lanes change the maximum and the sum? Choose `other` so that they change neither"
        return "divide by the sum of exp(x - maximum) over the whole row, with the same maximum for all terms"

    def _top(self, case: Any, row: int) -> float:
        return float(self.values(case)["x"][row].max())

    def format_case(self, case: Any) -> str:
        """The shape, where rows begin, and how large the values are."""
        shape = f"x of {case['rows']} x {case['columns']} float16, row stride {case['row_stride']}"
        return f"{shape}, values around {case['level']:g} ± {case['spread']:g}"


@exercise("row_softmax")
class RowSoftmax(_RowSoftmax):
    """`row_softmax(x)`: a program has a row, in one block."""

    host: ClassVar[str] = "row_softmax"

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return ()

    def reads(self, given: Any) -> dict[str, int]:
        return {"x": given["rows"] * given["columns"]}

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        programs = sum(one.programs for one in run.launches)
        if programs != case["rows"]:
            why = f"got {counted(programs, 'program')} for {case['rows']} rows"
            raise Wrong(
                "Your grid does not have one program per row.",
                why=why,
                next="launch the kernel with the grid (x.shape[0],)",
            )


@exercise("long_rows")
class LongRows(_RowSoftmax):
    """`long_rows(x, BLOCK)`: rows longer than a block, read twice and written once."""

    host: ClassVar[str] = "long_rows"

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["BLOCK"],)

    def reads(self, given: Any) -> dict[str, int]:
        return {"x": 2 * given["rows"] * given["columns"]}

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        if run.live_bytes > _BLOCKS_LIVE * 4 * case["BLOCK"]:
            limit = f"with BLOCK = {case['BLOCK']}, the limit is {_BLOCKS_LIVE * 4 * case['BLOCK']:,} bytes"
            why = f"{run.live_bytes:,} bytes of block values are alive at once; {limit}"
            raise Wrong(
                "A program of your kernel keeps more than a few blocks at once.",
                why=why,
                next="loop over blocks of BLOCK elements",
            )

    def explain_bytes(self, case: Any, name: str, share: float) -> Wrong | None:
        """Three passes are maximum, sum and result; one pass held the row."""
        if share == _THREE_PASSES:
            then = "update maximum and sum in one pass: multiply the sum by exp(old maximum - new maximum)"
            why = "expected two reads: the maximum and the sum do not need separate passes"
            return Wrong("Your kernel reads `x` three times.", why=why, next=then)
        return None


_LOW_SUM = 0.994  # fp16 results, and a sum of 1,000 values in fp16, move the sum of a row by less
_BLOCKS_LIVE = 6  # blocks of fp32 values that two passes need at most
_THREE_PASSES = 1.5  # of the two that are needed
