"""The cases of first_layers: stems with every kind of layer, odd sizes, and channels that need padding."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.lab08_kernels.judge.stem_slip_rules import handing_on, slips


@case_source("first_layers")
def stems(rng: Any) -> list[Case]:
    conv, depthwise = _kinds(rng)
    folded = [{"kind": "batch_norm"}, {"kind": "relu"}]
    one, se, norm = {"kind": "unshuffle", "factor": 4}, {"kind": "se"}, {"kind": "layer_norm"}
    cases = [
        _case(rng, [conv(2), *folded, depthwise(1), conv(1), se], is_wide=True),
        _case(rng, [one, conv(1), norm, depthwise(2), conv(1)]),
        _case(rng, [depthwise(2), conv(2), *folded, conv(1)]),
        _case(rng, [conv(1), se, {"kind": "unshuffle", "factor": 2}, conv(1), norm]),
        _case(rng, [conv(2), depthwise(2), norm, one, conv(1), *folded]),
    ]
    return [Case.split(one, "slips", "handing_on") for one in cases]


def _kinds(rng: Any) -> Any:
    def conv(stride: int) -> dict[str, Any]:
        kernel, channels = int(rng.choice([3, 5])), 4 * int(rng.integers(4, 20)) + 1
        return {"kind": "conv", "channels": channels, "kernel": kernel, "stride": stride}

    def depthwise(stride: int) -> dict[str, Any]:
        return {"kind": "depthwise", "kernel": int(rng.choice([3, 5, 7])), "stride": stride}

    return conv, depthwise


def _case(rng: Any, layers: list[dict[str, Any]], *, is_wide: bool = False) -> dict[str, Any]:
    """Sides that strides and factors meet as the text says: unshuffling divides, strides round up.

    What is wide has more channels than the multiple, and no multiple of it: a layer alone shows how they are rounded.
    """
    side, multiple = _side(rng, layers), int(rng.choice([8, 16, 64]))
    channels = multiple + int(rng.integers(1, multiple)) if is_wide else int(rng.choice([3, 6, 12]))
    case = {
        "input": [int(rng.integers(1, 17)), channels, side, side + 16],
        "layers": layers,
        "machine": {
            "flop_per_s": round(float(rng.uniform(3e12, 3e13)), -9),
            "byte_per_s": round(float(rng.uniform(0.3e12, 2e12)), -9),
            "multiple": multiple,
        },
    }
    return {**case, "slips": slips(case), "handing_on": handing_on(case)}


def _side(rng: Any, layers: list[dict[str, Any]]) -> int:
    """A multiple of 16 where pixels are unshuffled (alone, and behind strides), and odd elsewhere."""
    if any(one["kind"] == "unshuffle" for one in layers):
        return 16 * int(rng.integers(6, 14))
    return 2 * int(rng.integers(50, 120)) + 1
