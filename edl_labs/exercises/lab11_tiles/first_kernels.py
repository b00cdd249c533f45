"""scale_shift_relu: the first kernel, judged by its values, its bytes and its grid."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import FP32_ROUNDING, KernelRun
from edl_labs.exercises.lab11_tiles.tile_exercises import KernelExercise, TensorForm
from edl_labs.units import counted

MOST_PER_PROGRAM = 4096  # elements of a program, as announced in the lab's text


@exercise("scale_shift_relu")
class ScaleShiftRelu(KernelExercise):
    """`scale_shift_relu(x, a, b)` returns relu(a·x + b) for a vector of any length."""

    host: ClassVar[str] = "scale_shift_relu"

    def forms(self, given: Any) -> dict[str, TensorForm]:
        return {"x": TensorForm((given["n"],))}

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["a"], given["b"])

    def out_form(self, given: Any) -> TensorForm:
        return TensorForm((given["n"],))

    def truth(self, case: Any, values: dict[str, Any]) -> tuple[Any, Any]:
        import numpy as np

        scaled, shift = case["a"] * values["x"].astype(np.float64), case["b"]
        bound = 4 * FP32_ROUNDING * (np.abs(scaled) + abs(shift))
        return np.maximum(scaled + shift, 0.0), bound

    def reads(self, given: Any) -> dict[str, int]:
        return {"x": given["n"]}

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        programs = sum(one.programs for one in run.launches)
        if case["n"] > MOST_PER_PROGRAM * programs:
            why = (
                f"got {counted(programs, 'program')} for {case['n']:,} elements, but a program may process at most "
                f"{MOST_PER_PROGRAM:,}"
            )
            then = "keep BLOCK fixed, and let the grid grow with the length"
            raise Wrong("Your grid has too few programs to fill a GPU.", why=why, next=then)
        if len(run.launches) > 1:
            why = f"got {len(run.launches)} launches for one vector, expected 1"
            raise Wrong(
                "Your host function launches more than one kernel.", why=why, next="let one grid cover the whole vector"
            )

    def format_case(self, case: Any) -> str:
        """The length and the two numbers."""
        return f"x of {case['n']:,} elements, a = {case['a']:g}, b = {case['b']:g}"
