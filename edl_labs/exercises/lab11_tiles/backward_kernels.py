"""attention_backward: the gradient of the queries, from scores that are computed again."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import FP32_ROUNDING, KernelRun, require_exact_dots
from edl_labs.exercises.lab11_tiles.tile_exercises import KernelExercise, TensorForm
from edl_labs.units import counted


@exercise("attention_backward")
class AttentionBackward(KernelExercise):
    """`attention_backward(q, k, v, o, o_grad, lse, BM, BN)` returns the gradient of q, in fp32."""

    host: ClassVar[str] = "attention_backward"

    def forms(self, given: Any) -> dict[str, TensorForm]:
        of_queries, of_keys = (given["queries"], given["d"]), (given["keys"], given["d"])
        shapes = {"q": of_queries, "k": of_keys, "v": of_keys, "o": of_queries, "o_grad": of_queries}
        return {**{name: TensorForm(shape) for name, shape in shapes.items()}, "lse": TensorForm((given["queries"],))}

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["BM"], given["BN"])

    def out_form(self, given: Any) -> TensorForm:
        return TensorForm((given["queries"], given["d"]))

    def values(self, case: Any) -> dict[str, Any]:
        """Drawn q, k, v and gradient of the output; the output and the lse that a forward pass gives for them.

        A shared direction in q and k moves all scores to around `level`.
        """
        import numpy as np

        drawn = super().values(case)
        shift = np.float32(np.sqrt(abs(case["level"]) / np.sqrt(case["d"])))
        drawn |= {"q": drawn["q"] + shift, "k": drawn["k"] + np.sign(case["level"]) * shift}
        q, k, v = (drawn[name].astype(np.float64) for name in ("q", "k", "v"))
        scores = q @ k.T / np.sqrt(case["d"])
        top = scores.max(axis=1)
        lse = top + np.log(np.exp(scores - top[:, None]).sum(axis=1))
        o = np.exp(scores - lse[:, None]) @ v
        return drawn | {"o": o.astype(np.float32), "lse": lse.astype(np.float32)}

    def truth(self, case: Any, values: dict[str, Any]) -> tuple[Any, Any]:
        """The gradient from the given output and lse, and what fp32 can add to it.

        A score is a sum of d products; the exponential turns its absolute error into a relative one of the weight.
        """
        import numpy as np

        q, k, v, o, o_grad = (values[name].astype(np.float64) for name in ("q", "k", "v", "o", "o_grad"))
        scale, d, lse = case["d"] ** -0.5, case["d"], values["lse"].astype(np.float64)[:, None]
        weights = np.exp(q @ k.T * scale - lse)
        inner = o_grad @ v.T - (o_grad * o).sum(axis=1, keepdims=True)
        scores_off = 2 * (d + 8) * scale * (np.abs(q) @ np.abs(k).T) + 4 * np.abs(lse) + 8
        inner_off = 2 * (d + 8) * (np.abs(o_grad) @ np.abs(v).T + (np.abs(o_grad) * np.abs(o)).sum(1, keepdims=True))
        off = weights * (np.abs(inner) * scores_off + inner_off)
        sums_off = 2 * (case["keys"] + 16) * np.abs(weights * inner)
        return (weights * inner) @ k * scale, 2 * FP32_ROUNDING * scale * ((off + sums_off) @ np.abs(k)) + _TINY

    def reads(self, given: Any) -> dict[str, int]:
        queries, d = given["queries"], given["d"]
        of_keys = -(-queries // given["BM"]) * given["keys"] * d
        return {"q": queries * d, "k": of_keys, "v": of_keys, "o": queries * d, "o_grad": queries * d, "lse": queries}

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        require_exact_dots(run)
        tile = 2 * case["BM"] * case["BN"] + (2 * case["BM"] + 2 * case["BN"]) * case["d"]
        if run.live_bytes > _TILES_LIVE * 4 * tile:
            why = (
                f"{run.live_bytes:,} bytes of block values are alive at once, but the limit is "
                f"{_TILES_LIVE * 4 * tile:,} bytes"
            )
            then = (
                "loop over tiles of BN keys; from one iteration to the next, keep only tiles that belong to the queries"
            )
            raise Wrong("A program of your kernel keeps more than a few tiles at once.", why=why, next=then)

    def explain_bytes(self, case: Any, name: str, share: float) -> Wrong | None:
        """Passes over the keys, or over what belongs to the queries."""
        if share <= 1:
            return None
        if name in ("k", "v"):
            tiles = counted(-(-case["queries"] // case["BM"]), "tile")
            why = f"the queries form {tiles}, and each tile needs `{name}` only once"
            then = "compute the weights, their gradient and the sum in one loop over the keys"
            what = f"Your kernel reads `{name}` {share:.3g} times for each tile of queries."
            return Wrong(what, why=why, next=then)
        why = f"`{name}` does not depend on the keys, so it is the same in each iteration of the loop over the keys"
        return Wrong(f"Your kernel reads `{name}` {share:.3g} times.", why=why, next="load it once, before the loop")

    def explain_nan(self, case: Any, run: KernelRun, seen: str) -> Wrong:
        """exp of a score alone is beyond fp32 where scores are large."""
        if case["level"] > _BEYOND:
            why = f"{seen}; the scores are around {case['level']:g}, and exp({case['level']:g}) is too large for fp32"
            then = "subtract lse before the exponential: tl.exp(scores - lse[:, None])"
            return Wrong("Your kernel returns NaN for large scores.", why=why, next=then)
        return super().explain_nan(case, run, seen)

    def format_case(self, case: Any) -> str:
        """Sizes, and the level of the scores."""
        sizes = ", ".join(f"{name} = {case[name]}" for name in ("queries", "keys", "d", "BM", "BN"))
        return f"{sizes}; scores around {case['level']:g}"


_TINY = 1e-30  # above 0, and below every gradient that counts
_BEYOND = 88.0  # exp of more is beyond the largest fp32
_TILES_LIVE = 3  # measured on the solution, with room for another order
