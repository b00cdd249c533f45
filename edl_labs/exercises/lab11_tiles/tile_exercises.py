"""What all kernel exercises share: host code on tensors without values, kernels that the judge evaluates."""

from __future__ import annotations

import inspect
import math
from dataclasses import dataclass
from typing import Any, ClassVar

from edl_labs.checks import Exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import KernelRun, evaluated, require_no_races
from edl_labs.exercises.lab11_tiles.host_programs import host_evidence, meta_tensor
from edl_labs.exercises.lab11_tiles.kernel_slips import named_slip

Array = Any


@dataclass(frozen=True)
class TensorForm:
    """The shape and dtype of an argument. A row of it begins `row_stride` elements after the one before."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    row_stride: int | None = None

    @property
    def strides(self) -> tuple[int, ...]:
        """Elements from one index to the next, for each dimension."""
        if len(self.shape) == 1:
            return (1,)
        return (self.row_stride or self.shape[1], 1)

    @property
    def stored_elements(self) -> int:
        """Elements of its storage, padding included."""
        return self.shape[0] * self.strides[0]


class KernelExercise(Exercise):
    """`host(*tensors, *scalars)` launches kernels. Judged: values within a bound, and bytes exactly.

    The evidence is the text of the kernels, and what the host launched. In grading the text is that of the submitted
    cells.
    """

    answer_form: ClassVar[Any] = {"source": [""], "ran": [""], "program": ""}
    source_is_evidence: ClassVar[bool] = True
    answers: ClassVar[tuple[str, ...]] = ("source", "program")  # what ran in the process only explains a mistake
    host: ClassVar[str]

    def forms(self, given: Any) -> dict[str, TensorForm]:
        """The tensors of the call, by name."""
        raise NotImplementedError

    def scalars(self, given: Any) -> tuple[Any, ...]:
        """What the host receives after the tensors."""
        raise NotImplementedError

    def out_form(self, given: Any) -> TensorForm:
        """The shape and dtype of what the host returns."""
        raise NotImplementedError

    def truth(self, case: Any, values: dict[str, Array]) -> tuple[Array, Array]:
        """The right output in float64, and how far from it each element may be."""
        raise NotImplementedError

    def reads(self, given: Any) -> dict[str, int]:
        """How many elements of each tensor the programs read together."""
        raise NotImplementedError

    def most_moved(self, given: Any) -> int:
        """How many elements of allocated tensors all programs may read and write together: the output, once."""
        return math.prod(self.out_form(given).shape)

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        """Wrong where values and bytes are right, and the launches are still not as required."""

    def explain_bytes(self, case: Any, name: str, share: float) -> Wrong | None:
        """What it means that a tensor was read `share` times as often as it has to be."""
        return None

    def values(self, case: Any) -> dict[str, Array]:
        """The tensors of a case, drawn from its hidden seed."""
        import numpy as np

        rng = np.random.default_rng(case["seed"])
        drawn = {name: rng.standard_normal(form.shape) for name, form in self.forms(case).items()}
        return {name: value.astype(self.forms(case)[name].dtype) for name, value in drawn.items()}

    def probe(self, student: Any, given: Any) -> Any:
        forms = self.forms(given)
        tensors = {name: meta_tensor(form.shape, form.dtype, form.strides) for name, form in forms.items()}
        host = inspect.unwrap(getattr(student, self.host))  # its tensors have no values that could be copied
        return host_evidence(host, tensors, self.scalars(given))

    def public_want(self, case: Any, want: Any) -> Any:
        """Nothing: kernels and launches would be the answer, and `compare` works the values out."""
        return {}

    def student_inputs(self, case: Any) -> Any:
        """The arguments of the host function as torch tensors and numbers."""
        import torch

        made = []
        for name, value in self.values(case).items():
            form = self.forms(case)[name]
            store = torch.full((form.stored_elements,), math.nan, dtype=getattr(torch, form.dtype))
            tensor = store.as_strided(form.shape, form.strides)
            tensor.copy_(torch.from_numpy(value))
            made.append(tensor)
        return (*made, *self.scalars(case))

    def compare(self, case: Any, got: Any, want: Any) -> None:
        values = self.values(case)
        run = evaluated(got, {name: (form, values[name]) for name, form in self.forms(case).items()})
        require_no_races(run)
        self._judge_output(case, run, values)
        self._judge_bytes(case, run)
        self.judge_launches(case, run)

    def _judge_output(self, case: Any, run: KernelRun, values: dict[str, Array]) -> None:
        import numpy as np

        out = run.output(self.out_form(case))
        right, bound = self.truth(case, values)
        with np.errstate(invalid="ignore"):
            off = ~(np.abs(out - right) <= bound)
        if off.any():
            raise named_slip(case, out) or self.explain_values(case, run, out, right, bound)

    def explain_values(self, case: Any, run: KernelRun, out: Array, right: Array, bound: Array) -> Wrong:
        """What is known of wrong values that no known mistake explains."""
        import numpy as np

        with np.errstate(invalid="ignore", divide="ignore"):
            excess = np.abs(out - right) / bound
        first = tuple(int(at) for at in np.argwhere(~(excess <= 1))[0])
        place = f"output{list(first)}"
        seen = f"{place} is {out[first]:.6g}, expected {right[first]:.6g}"
        if np.isnan(out[first]):
            return self.explain_nan(case, run, f"{place} is NaN, expected {right[first]:.6g}")
        is_near = np.abs(out - right).max() <= _NEAR * np.abs(right).max()
        if is_near and float(np.nanmax(excess)) < _CLOSE and not np.isnan(out).any():
            why = f"{seen}; the largest error is {float(excess.max()):.3g} times the allowed error"
            then = "keep sums and intermediate values in tl.float32, and round only once, in the store"
            return Wrong("Your values are close, but less accurate than sums in fp32.", why=why, next=then)
        if (out < 0).any() and not (right < 0).any():
            first = tuple(int(at) for at in np.argwhere(out < 0)[0])
            seen = f"output{list(first)} is {out[first]:.6g}, expected {right[first]:.6g}"
            return Wrong("Your output has negative values.", why=seen, next="apply relu before the store")
        then = f'run the kernel on case("{self.exercise_name}"), and compute this element by hand'
        return Wrong("Your output has wrong values.", why=seen, next=then)

    def explain_nan(self, case: Any, run: KernelRun, seen: str) -> Wrong:
        """What is known of an output with NaN."""
        return Wrong("Your output has NaN.", why=seen, next="look for inf − inf, 0 / 0 and inf / inf in the kernel")

    @property
    def exercise_name(self) -> str:
        """Its name in hints and cases; the host function has it too."""
        return self.host

    def _judge_bytes(self, case: Any, run: KernelRun) -> None:
        extra = run.moved_elements_of_buffers - self.most_moved(case)
        if len(run.launches) > 1 and extra > 0:
            why = f"{len(run.launches)} launches move {extra:,} elements of intermediate results through memory"
            then = "compute all steps in one kernel, in registers"
            raise Wrong("Your additional launches move additional bytes.", why=why, next=then)
        wanted = self.reads(case)
        for name in self.forms(case):
            if run.read_elements(name) != wanted[name]:
                raise self._bytes_symptom(case, run, name, wanted[name])
            if run.written_elements(name):
                why = f"your kernel overwrites {run.written_elements(name):,} elements of `{name}`"
                raise Wrong(
                    "Your kernel writes to its input.", why=why, next="store the results in the allocated output"
                )
        if extra > 0:
            moved = f"{run.moved_elements_of_buffers:,} elements of the allocated tensors"
            why = f"your kernels read and write {moved}, {extra:,} more than necessary"
            raise Wrong(
                "Your kernels read or write the output more than once.", why=why, next="store each element only once"
            )

    def _bytes_symptom(self, case: Any, run: KernelRun, name: str, wanted: int) -> Wrong:
        read = run.read_elements(name)
        share = read / wanted if wanted else math.inf
        found = self.explain_bytes(case, name, share)
        if found is not None:
            return found
        why = f"the kernel loads {read:,} elements, but {wanted:,} are needed"
        if read > wanted:
            then = "keep loaded values in a variable, and mask lanes that no result needs"
            return Wrong(f"Your kernel reads `{name}` {share:.3g} times as often as needed.", why=why, next=then)
        then = "let every program load its whole tile, and check the masks: masked lanes load nothing"
        return Wrong(f"Your kernel reads only a part of `{name}`.", why=why, next=then)


_CLOSE = 1e4  # times the bound: fp16 sums are some hundred times as far off as fp32 sums; other mistakes are further
_NEAR = 0.01  # of the largest value: sums in fp16 are nearer, and mistakes farther off
