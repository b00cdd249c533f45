"""attention and causal: one pass over keys and values, with a running maximum and a running sum."""

from __future__ import annotations

from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import FP32_ROUNDING, KernelRun, require_exact_dots
from edl_labs.exercises.lab11_tiles.tile_exercises import KernelExercise, TensorForm
from edl_labs.units import counted


class _Attention(KernelExercise):
    """Attention of one head in fp32, in tiles of BM queries and BN keys."""

    def seen(self, case: Any) -> Any:
        """Which key each query sees, as a matrix of truth values."""
        raise NotImplementedError

    def forms(self, given: Any) -> dict[str, TensorForm]:
        shape = (given["stored_keys"], given["d"])
        return {"q": TensorForm((given["queries"], given["d"])), "k": TensorForm(shape), "v": TensorForm(shape)}

    def out_form(self, given: Any) -> TensorForm:
        return TensorForm((given["queries"], given["d"]))

    def values(self, case: Any) -> dict[str, Any]:
        """Drawn values; a shared direction of `level` in q, and minus that in k, makes all scores negative."""
        import numpy as np

        drawn = super().values(case)
        shift = np.float32(np.sqrt(abs(case["level"]) / np.sqrt(case["d"])))
        return {"q": drawn["q"] + shift, "k": drawn["k"] + np.sign(case["level"]) * shift, "v": drawn["v"]}

    def truth(self, case: Any, values: dict[str, Any]) -> tuple[Any, Any]:
        import numpy as np

        q, k, v = (values[name].astype(np.float64) for name in ("q", "k", "v"))
        scores = np.where(self.seen(case), q @ k.T / np.sqrt(case["d"]), -np.inf)
        top = np.maximum(scores.max(axis=1, initial=-np.inf, keepdims=True), _LOWEST)
        weights = np.exp(scores - top)
        weights /= np.maximum(weights.sum(axis=1, keepdims=True), _TINY)
        terms = (np.abs(q) @ np.abs(k).T).max(initial=0.0) / np.sqrt(case["d"])
        share = 4 * (case["d"] + 8) * terms + 4 * (case["stored_keys"] + 16)
        return weights @ v, FP32_ROUNDING * share * (weights @ np.abs(v)) + _TINY

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        require_exact_dots(run)
        tile = case["BM"] * case["BN"] + (case["BM"] + case["BN"]) * case["d"]
        if run.live_bytes > _TILES_LIVE * 4 * tile:
            why = (
                f"{run.live_bytes:,} bytes of block values are alive at once, but the limit is "
                f"{_TILES_LIVE * 4 * tile:,} bytes"
            )
            then = (
                "loop over tiles of BN keys, and keep only the running maximum, sum and output from one tile "
                "to the next"
            )
            raise Wrong("A program of your kernel keeps more than a few tiles at once.", why=why, next=then)

    def explain_values(self, case: Any, run: KernelRun, out: Any, right: Any, bound: Any) -> Wrong:
        """Rows of zeros where all scores are far below 0."""
        import numpy as np

        rows = ~out.any(axis=1) & right.any(axis=1)
        if rows.any() and not np.isnan(out).any():
            why = (
                f"the scores of row {int(np.argmax(rows))} are around {case['level']:g}, and "
                f"exp({case['level']:g}) rounds to 0"
            )
            then = "set the scores of masked keys to -inf, then subtract each row's maximum before the exponential"
            return Wrong("Your kernel returns 0 for rows whose scores are all far below 0.", why=why, next=then)
        return super().explain_values(case, run, out, right, bound)

    def explain_nan(self, case: Any, run: KernelRun, seen: str) -> Wrong:
        """Without keys, and with scores far below 0, sums are 0."""
        if not self.seen(case).any():
            why = f"{seen}; without keys, the sum of the weights is 0"
            then = "divide by 1 where the sum is 0, so that the output is 0"
            return Wrong("Your kernel returns NaN for queries without keys.", why=why, next=then)
        if case["level"] < _FAR:
            why = f"{seen}; the scores are around {case['level']:g}"
            then = "set the scores of masked keys to -inf, then subtract each row's maximum before the exponential"
            return Wrong("Your kernel returns NaN for rows whose scores are all far below 0.", why=why, next=then)
        return super().explain_nan(case, run, seen)


@exercise("attention")
class Attention(_Attention):
    """`attention(q, k, v, keys, BM, BN)`: every query sees the first `keys` keys; without any, the output is 0."""

    host: ClassVar[str] = "attention"

    def seen(self, case: Any) -> Any:
        import numpy as np

        row = np.arange(case["stored_keys"]) < case["keys"]
        return np.broadcast_to(row, (case["queries"], case["stored_keys"]))

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["keys"], given["BM"], given["BN"])

    def reads(self, given: Any) -> dict[str, int]:
        tiles = -(-given["queries"] // given["BM"])
        read = tiles * given["keys"] * given["d"]
        return {"q": given["queries"] * given["d"], "k": read, "v": read}

    def explain_bytes(self, case: Any, name: str, share: float) -> Wrong | None:
        """Passes over the keys, for each tile of queries."""
        if name == "q" or share <= 1:
            return None
        tiles = counted(-(-case["queries"] // case["BM"]), "tile")
        why = f"the queries form {tiles}, and each tile needs `{name}` only once"
        then = "update maximum, sum and output in one loop over the keys, and mask the keys past the end"
        return Wrong(f"Your kernel reads `{name}` {share:.3g} times for each tile of queries.", why=why, next=then)

    def format_case(self, case: Any) -> str:
        """Sizes, and the level of the scores."""
        sizes = ", ".join(f"{name} = {case[name]}" for name in ("queries", "stored_keys", "keys", "d", "BM", "BN"))
        return f"{sizes}; scores around {case['level']:g}"


@exercise("causal")
class Causal(_Attention):
    """`causal(q, k, v, BM, BN)`: query i sees the keys 0 to i, and tiles that no query sees are not read."""

    host: ClassVar[str] = "causal"

    def seen(self, case: Any) -> Any:
        import numpy as np

        return np.tri(case["queries"], dtype=bool)

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["BM"], given["BN"])

    def reads(self, given: Any) -> dict[str, int]:
        n, rows, columns = given["queries"], given["BM"], given["BN"]
        ends = (min(first + rows, n) for first in range(0, n, rows))
        read = given["d"] * sum(min(-(-end // columns) * columns, n) for end in ends)
        return {"q": n * given["d"], "k": read, "v": read}

    def explain_bytes(self, case: Any, name: str, share: float) -> Wrong | None:
        """Tiles above the diagonal, or passes."""
        if name == "q" or share <= 1:
            return None
        why = (
            f"only {1 / share:.0%} of the elements that your kernel reads are in tiles that a query of the program sees"
        )
        then = "end the loop over the keys at the last key that the last query of the program sees"
        return Wrong(f"Your kernel reads tiles of `{name}` that no query of the program sees.", why=why, next=then)

    def format_case(self, case: Any) -> str:
        """Sizes, and the level of the scores."""
        sizes = ", ".join(f"{name} = {case[name]}" for name in ("queries", "d", "BM", "BN"))
        return f"{sizes}; scores around {case['level']:g}"


_LOWEST = -1e300  # a finite maximum for rows that see nothing
_TINY = 1e-30  # below every sum of weights and above 0
_FAR = -60.0  # exp of it is below what fp32 adds to 1
_TILES_LIVE = 3  # of scores, keys and output: measured on the solution, with room for another order
