"""The cases of where_the_peak_is: steps whose peak is at each moment, and what known mistakes say of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.exercises.slip_digests import digest

_TRIES = 5000  # the rarest kind is one draw in a hundred
_APART = 1.03  # between the largest moment or part and the next: nothing hangs on a rounding
# (moment, part, whether layers are checkpointed)
_KINDS = (
    ("loss", "logits", False),
    ("loss", "activations", False),
    ("loss", "logits", True),
    ("last layer", "activations", True),
    ("loss", "states", False),
    ("first layer", "states", True),
    ("optimizer", "states", False),
)
Parts = dict[str, dict[str, float]]


@case_source("where_the_peak_is")
def steps(rng: Any) -> list[Case]:
    return [_decided(rng, number, *kind) for number, kind in enumerate(_KINDS)]


def _decided(rng: Any, number: int, moment: str, part: str, checkpointed: bool) -> Case:
    for _ in range(_TRIES):
        step = _drawn(rng, checkpointed, itemsize=4 if number % 3 == 1 else 2)
        sums, largest = _ranked(moments(step))
        if (sums[0][1], largest[0][1]) == (moment, part) and _is_clear(sums) and _is_clear(largest):
            slips = {name: digest(slip(step)) for name, slip in SLIPS.items()}
            return Case(given=step, hidden={"slips": slips})
    raise AssertionError(f"no step has its peak at {moment}, {part}; draw other sizes")


def _drawn(rng: Any, checkpointed: bool, *, itemsize: int) -> dict[str, Any]:
    return {
        "batch": int(rng.integers(1, 33)),
        "tokens": int(2 ** rng.integers(3, 13)),
        "width": 128 * int(rng.integers(1, 33)),
        "layers": int(rng.integers(2, 49)),
        "vocabulary": int(rng.choice([1_024, 8_192, 32_000, 50_257, 128_256])),
        "itemsize": itemsize,
        "checkpointed": checkpointed,
    }


def moments(
    step: Any,
    *,
    logit_bytes: float = 12,
    has_master: bool = True,
    recomputes: bool = True,
    early_gradients: bool = False,
    tables: int = 2,
) -> Parts:
    """The bytes of each part at each moment of a step, as the lab's table has them."""
    item, width, layers = step["itemsize"], step["width"], step["layers"]
    positions, table = step["batch"] * step["tokens"], step["vocabulary"] * width
    of_layer = 12 * width**2
    weights = layers * of_layer + tables * table
    states = weights * (item + 8 + (4 if has_master and item == 2 else 0))
    one_input, one_layer = width * item * positions, 16 * width * item * positions
    kept, again = (layers * one_input, one_layer) if step["checkpointed"] else (layers * one_layer, 0)
    first = one_layer + (one_input if step["checkpointed"] else 0)
    if not recomputes and step["checkpointed"]:
        again, first = 0, one_input
    made = {"loss": 0, "last layer": table, "first layer": table + (layers - 1) * of_layer, "optimizer": weights}
    alive = {"loss": kept, "last layer": kept + again, "first layer": first, "optimizer": 0}
    return {
        moment: {
            "states": states,
            "gradients": item * (weights if early_gradients else made[moment]),
            "activations": alive[moment],
            "logits": logit_bytes * positions * step["vocabulary"] if moment == "loss" else 0,
        }
        for moment in made
    }


def _ranked(found: Parts) -> tuple[list[tuple[float, str]], list[tuple[float, str]]]:
    """Sums by moment and, at the largest, bytes by part: the largest first."""
    sums = sorted(((sum(parts.values()), moment) for moment, parts in found.items()), reverse=True)
    return sums, sorted(((size, part) for part, size in found[sums[0][1]].items()), reverse=True)


def _is_clear(ranked: list[tuple[float, str]]) -> bool:
    return ranked[0][0] > _APART * ranked[1][0]


def _answer(found: Parts) -> list[Any]:
    sums, largest = _ranked(found)
    return [sums[0][1], largest[0][1], float(sums[0][0])]


def _at_the_loss(step: Any) -> list[Any]:
    return _answer({"loss": moments(step)["loss"]})


SLIPS: dict[str, Callable[[Any], list[Any]]] = {
    "no_logits": lambda step: _answer(moments(step, logit_bytes=0)),
    "one_copy": lambda step: _answer(moments(step, logit_bytes=step["itemsize"])),
    "no_fp32": lambda step: _answer(moments(step, logit_bytes=3 * step["itemsize"])),
    "no_master": lambda step: _answer(moments(step, has_master=False)),
    "gradients_from_the_start": lambda step: _answer(moments(step, early_gradients=True)),
    "nothing_recomputed": lambda step: _answer(moments(step, recomputes=False)),
    "all_kept": lambda step: _answer(moments({**step, "checkpointed": False})),
    "one_table": lambda step: _answer(moments(step, tables=1)),
    "states_called_largest": lambda step: [*_answer(moments(step))[:1], "states", _answer(moments(step))[2]],
    "loss_called_the_moment": _at_the_loss,
}
