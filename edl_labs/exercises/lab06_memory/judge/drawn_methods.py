"""The cases of method_table: jobs on either side of the ridge, of the network and of the link to the host."""

from __future__ import annotations

from typing import Any

from edl_labs.checks import Case, case_source

_MIB = 1 << 20  # sizes that are easily read
_PLAIN_STEP = 3.004  # forward passes: a backward pass takes two, an update 0.004


@case_source("method_table")
def jobs(rng: Any) -> list[Case]:
    made = [
        *(_case(rng, "split", fill=8.0), _case(rng, "split", fill=1.2), _case(rng, "split", fill=0.5)),
        *(_case(rng, "accumulate", reduce=0.6), _case(rng, "accumulate", fill=0.4, reduce=2.0)),
        *(_case(rng, "accumulate"), _case(rng, "accumulate", fill=0.4)),
        *(_case(rng, "checkpoint", fill=0.5, room=3.0), _case(rng, "checkpoint")),
        *(_case(rng, "checkpoint and grow", fill=0.2, room=4.0), _case(rng, "checkpoint and grow", fill=0.05)),
        *(_case(rng, "checkpoint and grow", fill=6.0), _case(rng, "checkpoint and grow", fill=9.0)),
        *(_case(rng, "offload", link=3.0), _case(rng, "offload", link=1.5), _case(rng, "offload", link=0.2)),
        *(_case(rng, "empty_cache", flush=0.4), _case(rng, "empty_cache", flush=0.1)),
        _case(rng, "empty_cache", flush=0.001),
        # 0.95 % more time is the same, 1.05 % fewer bytes are not.
        *(_case(rng, "empty_cache", flush=0.0095 * _PLAIN_STEP), _case(rng, "checkpoint", saved=0.0105)),
        # A network so slow that a second forward pass is no matter, and a third one would be.
        _case(rng, "checkpoint", reduce=120.0),
        # What tells half-right rules from right ones: a batch that grows over the ridge, copies of one pass alone.
        *(
            _case(rng, "checkpoint and grow", fill=0.7),
            _case(rng, "checkpoint and grow", fill=0.78),
            _case(rng, "offload", link=0.6),
        ),
        _case(rng, "accumulate", update=0.3),
        *(_case(rng, "offload", link=0.4, kept=0.75), _case(rng, "checkpoint", kept=0.998)),
    ]
    return [Case(given=made[i]) for i in rng.permutation(len(made))]


def _case(
    rng: Any,
    method: str,
    *,
    fill: float = 4.0,
    reduce: float = 0.0,
    room: float = 1.0,
    link: float = 2.0,
    flush: float = 0.1,
    kept: float = 0.0,
    update: float = 0.004,
    saved: float = 0.0,
) -> dict[str, Any]:
    """A job whose passes take `fill` times the least time, an all-reduce of `reduce` forward passes, and so on.

    `room` is what the activations of the batch may grow to, `link` how much faster than a forward pass the whole of
    them could be copied, `saved` the share of all bytes that is let go of. But for two jobs nothing comes near the 1 %
    that is still "the same".
    """
    batch, parts = 16 * int(rng.integers(1, 9)), int(rng.choice([2, 4, 8]))
    example_s = round(float(rng.uniform(0.5, 2.0)) * 1e-3, 6)
    forward_s = batch * example_s * max(1.0, 1 / fill)
    activations = batch * (example := int(rng.integers(20, 200)) * _MIB)
    fixed = int(activations * float(rng.uniform(0.2, 1.5))) // _MIB * _MIB
    kept = kept or float(rng.choice([0.125, 0.25]))
    if saved:
        kept = round(1 - saved * (1 + fixed / activations), 6)
    job = {
        "batch": batch,
        "parts": 4 if fill == 8.0 else parts,
        "example_s": example_s,
        "least_s": round(batch * example_s / fill, 9),
        "reduce_s": round(reduce * forward_s, 6),
        "update_s": round(update * forward_s, 9),
        "fixed_bytes": fixed,
        "example_bytes": example,
        "memory_bytes": fixed + int(room * activations),
        "kept_share": kept,
        "copy_byte_per_s": round(link * activations / forward_s),
        "flush_s": round(flush * forward_s, 6),
    }
    return {"method": method, "job": job}
