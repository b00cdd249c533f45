"""The cases of continuous: pools that are too small for all, answers much shorter than the longest, and bursts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from edl_labs.checks import Case, case_source
from edl_labs.virtual.server import (
    Arrival,
    DecoderShape,
    ServerMachine,
    arrivals_of,
    burst_times,
    drawn_lengths,
    poisson_times,
)

_COUNT = 64  # requests: three seconds of a busy server, and a second of the judge's
_FEW = 15  # of the load whose end is what counts: a tenth of a second of the judge's
_SHAPE = DecoderShape("7B", layers=32, heads=32, kv_heads=32, head_size=128, parameters=6_738_000_000)


@case_source("continuous")
def loads(rng: Any) -> list[Case]:
    cases = [
        _case(rng, burst=1, blocks=(180, 240), most=48),
        _case(rng, burst=12, blocks=(180, 240), most=48),
        _case(rng, burst=1, blocks=(600, 700), most=int(rng.integers(8, 11))),
        # Short prompts hold a block or two: who is taken out for two blocks may give back one.
        _case(rng, burst=1, blocks=(60, 80), most=48, prompt=12, least=1),
        _case(rng, burst=1, blocks=(60, 80), most=48, prompt=12, least=1, count=_FEW, fills=True),
    ]
    return [Case(given=one) for one in cases]


def _case(
    rng: Any,
    *,
    burst: int,
    blocks: tuple[int, int],
    most: int,
    prompt: int = 150,
    least: int = 16,
    count: int = _COUNT,
    fills: bool = False,
) -> dict[str, Any]:
    per_s, longest = float(rng.uniform(11, 15)), int(rng.choice([320, 384]))
    limits = {"blocks": int(rng.integers(*blocks)), "most_sequences": most, "most_output_tokens": longest}
    machine = ServerMachine.of("A100-80GB", _SHAPE, **limits, step_s=1e-3, sequence_s=2e-5)

    def drawn(count: int) -> list[Arrival]:
        times = poisson_times(rng, count=count, per_s=per_s)
        if burst > 1:
            times = burst_times(rng, count=count, per_s=per_s, burst=burst)
        prompts = drawn_lengths(rng, count=count, median=prompt, spread=0.7, most=5 * prompt + 50, least=least)
        answers = drawn_lengths(rng, count=count, median=90, spread=0.8, most=longest, least=2)
        return arrivals_of(times, prompts, answers)

    last = _filling(machine) if fills else []
    load = drawn(count - len(last))
    fork = _forked(rng, load, longest, drawn)
    return {"machine": machine.to_dict(), "load": _plain(_after(load, last)), "fork": _plain(_after(fork, last))}


def _filling(machine: ServerMachine) -> list[Arrival]:
    """A request that needs every block of the pool, and two that wait for it, run side by side and end together."""
    prompt = machine.block_tokens * (machine.blocks - 1) + 1
    return [Arrival(0.0, prompt, machine.block_tokens // 2), Arrival(0.0, 8, 1), Arrival(0.0, 8, 1)]


def _after(load: list[Arrival], last: list[Arrival]) -> list[Arrival]:
    """A load, and those who come with its last request."""
    end_s = load[-1].arrival_s
    return load + [Arrival(end_s, one.prompt_tokens, one.output_tokens) for one in last]


def _forked(rng: Any, load: list[Arrival], longest: int, drawn: Callable[[int], list[Arrival]]) -> list[Arrival]:
    """The same requests at first, some with longer answers, and others from a moment on."""
    at = int(rng.integers(len(load) // 3, 2 * len(load) // 3))
    longer = [
        Arrival(one.arrival_s, one.prompt_tokens, min(longest, one.output_tokens + int(rng.integers(1, 120))))
        if number >= at // 2
        else one
        for number, one in enumerate(load[:at])
    ]
    begin_s = load[at - 1].arrival_s
    rest = drawn(len(load) - at)
    return longer + [Arrival(round(begin_s + one.arrival_s, 6), one.prompt_tokens, one.output_tokens) for one in rest]


def _plain(load: list[Arrival]) -> list[list[Any]]:
    return [[one.arrival_s, one.prompt_tokens, one.output_tokens] for one in load]
