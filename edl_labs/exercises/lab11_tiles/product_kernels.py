"""tiled_product and gelu: C = f(A·B + bias) in tiles, with the epilogue in registers."""

from __future__ import annotations

import math
from typing import Any, ClassVar

from edl_labs.checks import exercise
from edl_labs.errors import Wrong
from edl_labs.exercises.lab11_tiles.evaluated_kernels import (
    FP16_ROUNDING,
    FP16_TINY,
    FP32_ROUNDING,
    KernelRun,
    require_exact_dots,
)
from edl_labs.exercises.lab11_tiles.tile_exercises import KernelExercise, TensorForm


class _Product(KernelExercise):
    """A product of drawn matrices in tiles of BM by BN."""

    def epilogue(self, x: Any) -> Any:
        """What is applied to A·B + bias, in float64; its slope is at most 1.13."""
        raise NotImplementedError

    def forms(self, given: Any) -> dict[str, TensorForm]:
        dtype = given["dtype"]
        a = TensorForm((given["M"], given["K"]), dtype)
        return {"a": a, "b": TensorForm((given["K"], given["N"]), dtype), "bias": TensorForm((given["N"],), dtype)}

    def scalars(self, given: Any) -> tuple[Any, ...]:
        return (given["BM"], given["BN"])

    def out_form(self, given: Any) -> TensorForm:
        return TensorForm((given["M"], given["N"]), given["dtype"])

    def truth(self, case: Any, values: dict[str, Any]) -> tuple[Any, Any]:
        import numpy as np

        a, b, bias = (values[name].astype(np.float64) for name in ("a", "b", "bias"))
        right = self.epilogue(a @ b + bias)
        terms = np.abs(a) @ np.abs(b) + np.abs(bias)
        bound = _SLOPE * 2 * (case["K"] + 8) * FP32_ROUNDING * terms
        if case["dtype"] == "float16":
            bound = bound + FP16_ROUNDING * np.abs(right) + FP16_TINY
        return right, bound

    def reads(self, given: Any) -> dict[str, int]:
        m, n, k = given["M"], given["N"], given["K"]
        across, down = -(-n // given["BN"]), -(-m // given["BM"])
        return {"a": m * k * across, "b": k * n * down, "bias": n * down}

    def judge_launches(self, case: Any, run: KernelRun) -> None:
        if case["dtype"] == "float32":
            require_exact_dots(run)

    def explain_bytes(self, case: Any, name: str, share: float) -> Wrong | None:
        """The grid's tiles decide how often a matrix is read."""
        if share == 1 or name == "bias":
            return None
        tiles = {"a": f"⌈N/BN⌉ = {-(-case['N'] // case['BN'])}", "b": f"⌈M/BM⌉ = {-(-case['M'] // case['BM'])}"}
        why = f"each element of `{name}` must be read {tiles[name]} times, once for each tile that needs it"
        then = "use the BM and BN that the function receives, and load each element of a tile once"
        return Wrong(f"Your kernel reads `{name}` {share:.3g} times as often as its tiles need.", why=why, next=then)

    def format_case(self, case: Any) -> str:
        """The sizes of the product and of its tiles."""
        sizes = ", ".join(f"{name} = {case[name]}" for name in ("M", "N", "K", "BM", "BN"))
        return f"{sizes}, {case['dtype']}"


@exercise("tiled_product")
class TiledProduct(_Product):
    """`tiled_product(a, b, bias, BM, BN)` returns relu(A·B + bias)."""

    host: ClassVar[str] = "tiled_product"

    def epilogue(self, x: Any) -> Any:
        """relu."""
        import numpy as np

        return np.maximum(x, 0.0)


@exercise("gelu_product")
class GeluProduct(_Product):
    """`gelu_product(a, b, bias, BM, BN)` returns gelu(A·B + bias), the exact one."""

    host: ClassVar[str] = "gelu_product"

    def epilogue(self, x: Any) -> Any:
        """x · Φ(x)."""
        import numpy as np

        return 0.5 * x * (1 + erf(x / np.sqrt(2)))


def erf(x: Any) -> Any:
    """The error function of each element, in fp64."""
    import numpy as np

    return np.vectorize(math.erf, otypes=[np.float64])(x)


_SLOPE = 1.13  # the largest slope of gelu; relu's is 1
