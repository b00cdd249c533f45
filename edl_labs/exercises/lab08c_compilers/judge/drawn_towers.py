"""The cases of capture: models with towers of several lengths, on chips of two kinds."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_CHIPS = ("H100-SXM", "A100-80GB", "H200")


@case_source("capture")
def towers(rng: Any) -> list[Case]:
    return [Case(given=_case(rng, chip)) for chip in rng.permutation(_CHIPS)]


def _case(rng: Any, chip: str) -> dict[str, Any]:
    kernels = int(rng.integers(12, 19))
    plan = {
        "image_kernels": kernels,
        # Towers of about one length: side by side they take little more than half of the time.
        "text_kernels": kernels + int(rng.integers(-2, 3)),
        "update_kernels": int(rng.integers(2, 5)),
        "kernel_s": int(rng.integers(20, 31)) / 10 * 1e-6,
        "batch_bytes": 4096 * int(rng.integers(8, 40)),
        "workspace_bytes": 1 << 20,
        "init_s": 2e-5,
    }
    return {"chip": str(chip), "batches": int(rng.integers(5, 9)), "plan": plan}
