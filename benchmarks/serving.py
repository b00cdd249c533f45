"""Compares the VirtualServer with a real small decoder: throughput and p50 of six drawn loads with the same policies.

The decoder has seeded weights and a paged cache, and runs on one thread. Its clock is the thread's processor time, so
other programs on the machine and waiting for arrivals do not count. The model's rates (FLOP/s, B/s, and seconds per
step and per sequence) come from a separate run of single steps before each load, because the speed of a shared machine
drifts by a third within a minute. The loads are served in five interleaved rounds. The error is the median over these
rounds of measured / predicted - 1.

Run with `python benchmarks/serving.py [--json] [--repeats N]`. Exit status 1 means that the target is missed.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import numpy as np
import torch
from scipy.optimize import nnls
from torch.nn import functional

from edl_labs.device import describe
from edl_labs.virtual.server import (
    Arrival,
    DecoderShape,
    ServerMachine,
    ServerReplay,
    StepWork,
    VirtualServer,
    arrivals_of,
    burst_times,
    drawn_lengths,
    poisson_times,
    replay,
)
from edl_labs.virtual.server.engine import ServerEngine

LARGEST_ERROR = 0.15  # the target, on throughput and on p50
LAYERS, WIDTH, HEADS, KV_HEADS, SIZE, WORDS = 4, 256, 8, 4, 32, 512
BLOCKS, BLOCK_TOKENS = 160, 16
REPEATS, COUNT = 5, 24
NEVER = 1e24  # a rate that takes no time: the largest that a machine may have
ROUNDS = 6  # of the steps that calibrate, a second in all: their medians differ by 3 %


class PagedDecoder:
    """Four layers of about 0.7 million parameters, and a cache whose blocks lie anywhere in a pool."""

    def __init__(self) -> None:
        drawn = torch.Generator().manual_seed(1)

        def make(*shape: int) -> torch.Tensor:
            return torch.randn(*shape, generator=drawn) / math.sqrt(shape[-1])

        kv = KV_HEADS * SIZE
        self.layers = [
            {"q": make(WIDTH, WIDTH), "kv": make(2 * kv, WIDTH), "out": make(WIDTH, WIDTH),
             "up": make(4 * WIDTH, WIDTH), "down": make(WIDTH, 4 * WIDTH)}
            for _ in range(LAYERS)
        ]  # fmt: skip
        self.words = make(WORDS, WIDTH)
        self.cache = torch.zeros(LAYERS, 2, BLOCKS * BLOCK_TOKENS, KV_HEADS, SIZE)
        counts = [part.numel() for layer in self.layers for part in layer.values()]
        self.parameters = sum(counts) + self.words.numel()

    def step(self, rows: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> list[int]:
        """The next word of each row: (words, cells) of its new tokens' words and of all tokens' places in the cache.

        One pass for all of them, as a step of the VirtualServer: a layer's weights are read once, for the tokens of
        prompts and of rows that decode alike; each row attends alone.
        """
        counts = [len(words) for words, _ in rows]
        x = self.words[torch.cat([words for words, _ in rows])]
        own = torch.cat([cells[-count:] for (_, cells), count in zip(rows, counts, strict=True)])
        for number, layer in enumerate(self.layers):
            y = functional.layer_norm(x, (WIDTH,))
            q = functional.linear(y, layer["q"]).view(-1, HEADS, SIZE)
            k, v = functional.linear(y, layer["kv"]).view(-1, 2, KV_HEADS, SIZE).unbind(1)
            self.cache[number, 0, own], self.cache[number, 1, own] = k, v
            mixed = [
                self._attended(number, part, cells) for part, (_, cells) in zip(q.split(counts), rows, strict=True)
            ]
            x = x + functional.linear(torch.cat(mixed), layer["out"])
            y = functional.layer_norm(x, (WIDTH,))
            x = x + functional.linear(functional.gelu(functional.linear(y, layer["up"])), layer["down"])
        last = torch.tensor(counts).cumsum(0) - 1
        return functional.linear(x[last], self.words).argmax(-1).tolist()

    def _attended(self, number: int, q: torch.Tensor, cells: torch.Tensor) -> torch.Tensor:
        k, v = self.cache[number].index_select(1, cells).transpose(1, 2)
        found = functional.scaled_dot_product_attention(
            q.transpose(0, 1)[None], k[None], v[None], is_causal=len(q) > 1, enable_gqa=True
        )
        return found[0].transpose(0, 1).reshape(-1, WIDTH)


class RealEngine(ServerEngine):
    """The state of a VirtualServer, with steps that a decoder really does, timed in the thread's processor time."""

    decoder: PagedDecoder

    def tables(self) -> None:
        """Give every request as many blocks of the pool as it holds, and take back the others."""
        for number, one in enumerate(self.requests):
            table = self.table.setdefault(number, [])
            while len(table) > one.held:
                self.pool.append(table.pop())
        for number, one in enumerate(self.requests):
            while len(self.table[number]) < one.held:
                self.table[number].append(self.pool.pop())

    def begin(self, decoder: PagedDecoder) -> None:
        self.decoder, self.pool = decoder, list(range(BLOCKS))
        self.table: dict[int, list[int]] = {}
        self.text: dict[int, list[int]] = {}

    def step_ps(self, able: Sequence[int], work: StepWork) -> int:
        self.tables()
        for number in able:
            self.text.setdefault(number, [(7 * at + number) % WORDS for at in range(self.requests[number].prompt)])
        began = time.thread_time()
        rows = [(torch.tensor(self._words(number)), self._cells(number)) for number in able]
        words = self.decoder.step(rows)
        took_s = time.thread_time() - began
        for number, word in zip(able, words, strict=True):
            self.text[number].append(word)
        return max(1, round(took_s * 1e12))

    def _words(self, number: int) -> list[int]:
        return self.text[number][-1:] if self.requests[number].cached else self.text[number]

    def _cells(self, number: int) -> torch.Tensor:
        at = torch.arange(self.requests[number].due_tokens)
        return torch.tensor(self.table[number])[at // BLOCK_TOKENS] * BLOCK_TOKENS + at % BLOCK_TOKENS


def served_really(machine: ServerMachine, load: Sequence[Arrival], policy: Any, decoder: PagedDecoder) -> VirtualServer:
    """A load on the decoder itself."""
    server = VirtualServer(machine, load)
    server.engine = engine = RealEngine(machine, server.load, traced=False)
    engine.begin(decoder)
    return server.run(policy)


def continuous(server: VirtualServer) -> None:
    """Whoever fits joins before every step; the youngest leaves where blocks are short."""
    _release(server)
    while sum(one.needs for one in server.running) > server.free_blocks:
        server.preempt(server.running[-1])
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    _fill(server, server.machine.most_sequences)


def in_batches(server: VirtualServer) -> None:
    """A batch runs to its end before the next begins."""
    _release(server)
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    if not server.running:
        _fill(server, 8)


def one_by_one(server: VirtualServer) -> None:
    """One request after the other."""
    _release(server)
    for one in server.running:
        if one.needs:
            server.allocate(one, one.needs)
    _fill(server, 1)


def _release(server: VirtualServer) -> None:
    for one in server.finished:
        server.free(one)


def _fill(server: VirtualServer, most: int) -> None:
    for one in server.waiting:
        if len(server.running) >= most or one.needs > server.free_blocks:
            return
        server.allocate(one, one.needs)
        server.admit(one)


class OneThread(ServerMachine):
    """A machine on which nothing overlaps: one thread reads weights or computes, so that the two times add up."""

    def work_s(self, work: StepWork) -> float:
        """Seconds of a step: computing, then reading, and the overheads."""
        computing = ServerMachine(**{**self.to_dict(), "memory_byte_per_s": NEVER})
        reading = ServerMachine(**{**self.to_dict(), "flop_per_s": NEVER, "step_s": 0.0, "sequence_s": 0.0})
        return computing.work_s(work) + reading.work_s(work)


def calibrated(decoder: PagedDecoder) -> ServerMachine:
    """The machine whose roofline fits single steps best: prompts of some lengths, batches of some contexts, and both.

    Steps are done as those of a load, with their tables of blocks, and the lengths lie between those of the loads.
    """
    works = [StepWork((n,), ()) for n in (8, 32, 96, 200)]
    works += [StepWork((), (n,) * rows) for rows in (1, 4, 12) for n in (16, 60, 180)]
    works += [StepWork((n,), (60,) * rows) for rows in (3, 9) for n in (30, 110)]
    works += [StepWork((40,) * rows, ()) for rows in (3, 8)]
    for work in works:
        _step_s(decoder, work)
    times: list[list[float]] = [[] for _ in works]
    for _ in range(ROUNDS):  # in turns, as the loads: what the machine does meanwhile meets all alike
        for found, work in zip(times, works, strict=True):
            found.append(_step_s(decoder, work))
    took = [median(found) for found in times]
    shape = DecoderShape("real", LAYERS, HEADS, KV_HEADS, SIZE, decoder.parameters, 4)
    fixed = {"name": "this CPU", "shape": shape, "blocks": BLOCKS, "block_tokens": BLOCK_TOKENS, "most_sequences": 12}
    free = {"flop_per_s": NEVER, "memory_byte_per_s": NEVER}
    units = [OneThread(**fixed, **free | rate) for rate in (
        {"flop_per_s": 1.0}, {"memory_byte_per_s": 1.0}, {"step_s": 1.0}, {"sequence_s": 1.0}
    )]  # fmt: skip
    # A step's seconds are linear in these four, and relative errors count: each step has the weight of its own time.
    rows = np.array([[unit.work_s(work) for unit in units] for work in works]) / np.array(took)[:, None]
    scale = rows.max(axis=0)
    fitted = nnls(rows / scale, np.ones(len(works)))[0] / scale
    flop_s, byte_s, step_s, sequence_s = (float(value) for value in fitted)
    return OneThread(
        **fixed,
        flop_per_s=1 / max(flop_s, 1 / NEVER),
        memory_byte_per_s=1 / max(byte_s, 1 / NEVER),
        step_s=step_s,
        sequence_s=sequence_s,
    )


def _step_s(decoder: PagedDecoder, work: StepWork) -> float:
    """Seconds of one step, done by the engine that serves loads: some rows that decode, and fresh prompts."""
    lengths = [*work.prompts, *(n - 1 for n in work.contexts)]
    engine = RealEngine(
        ServerMachine(blocks=BLOCKS, block_tokens=BLOCK_TOKENS), [Arrival(0.0, n, 9) for n in lengths], traced=False
    )
    engine.begin(decoder)
    for number, one in enumerate(engine.requests):
        one.cached = 0 if number < len(work.prompts) else one.prompt
        one.held = engine.machine.blocks_for(one.due_tokens)
    return engine.step_ps(range(len(lengths)), work) / 1e12


def six_loads(machine: ServerMachine) -> list[tuple[str, Callable[[VirtualServer], None], list[Arrival]]]:
    """Loads around what the machine can do: policies, arrivals and lengths differ."""
    rng = np.random.default_rng(2)
    token_s = machine.work_s(StepWork((), (60,)))

    def load(use: float, prompt: int, answer: int, *, burst: int = 0) -> list[Arrival]:
        per_s = use / (answer * token_s)
        times = burst_times(rng, count=COUNT, per_s=per_s, burst=burst) if burst else poisson_times(
            rng, count=COUNT, per_s=per_s
        )  # fmt: skip
        prompts = drawn_lengths(rng, count=COUNT, median=prompt, spread=0.5, most=200)
        return arrivals_of(times, prompts, drawn_lengths(rng, count=COUNT, median=answer, spread=0.6, most=60))

    return [
        ("one by one, half busy", one_by_one, load(0.5, 40, 16)),
        ("batches of 8", in_batches, load(1.5, 40, 16)),
        ("continuous, calm", continuous, load(0.6, 40, 16)),
        ("continuous, busy", continuous, load(2.5, 40, 16)),
        ("continuous, bursts", continuous, load(1.5, 30, 20, burst=8)),
        ("continuous, long prompts", continuous, load(1.2, 120, 12)),
    ]


def measured(repeats: int) -> list[dict[str, Any]]:
    """A row a load: predicted and measured throughput and p50, and their errors."""
    torch.set_num_threads(1)
    decoder = PagedDecoder()
    with torch.inference_mode():
        for _ in range(3):
            _step_s(decoder, StepWork((64,), (64,) * 4))
        loads = six_loads(calibrated(decoder))
        runs: list[list[tuple[ServerReplay, ServerReplay]]] = [[] for _ in loads]
        for turn in range(repeats):
            for found, (name, policy, load) in zip(runs, loads, strict=True):
                machine = calibrated(decoder)
                predicted = replay(VirtualServer(machine, load).run(policy))
                found.append((predicted, _as_run(served_really(machine, load, policy, decoder))))
                rates = f"{machine.flop_per_s:.3g} FLOP/s, {machine.memory_byte_per_s:.3g} B/s"
                overheads = f"{machine.step_s * 1e6:.0f} µs per step, {machine.sequence_s * 1e6:.0f} µs per sequence"
                print(f"round {turn + 1}, {name}: {rates}, {overheads}", file=sys.stderr)
    return [_row(name, found) for (name, _, _), found in zip(loads, runs, strict=True)]


def _as_run(server: VirtualServer) -> ServerReplay:
    """The figures of a real run: its own times, which no model would replay."""
    from edl_labs.virtual.server.replay import _result

    return _result(server, {})


def _row(name: str, runs: Sequence[tuple[ServerReplay, ServerReplay]]) -> dict[str, Any]:
    """Medians over rounds of a load; each round's error is against its own prediction."""
    figures = {"token_per_s": lambda run: run.token_per_s, "p50_s": lambda run: run.latency_s(0.5)}
    row: dict[str, Any] = {"load": name}
    for key, read in figures.items():
        predicted, measured = ([read(run) for run in side] for side in zip(*runs, strict=True))
        ratios = [real / model - 1 for model, real in zip(predicted, measured, strict=True)]
        row[key] = {"predicted": median(predicted), "measured": median(measured), "errors": ratios}
        row[key]["error"] = median(ratios)
    return row


def main(arguments: Sequence[str]) -> int:
    repeats = int(arguments[arguments.index("--repeats") + 1]) if "--repeats" in arguments else REPEATS
    rows = measured(repeats)
    missed = [
        (row["load"], key) for row in rows for key in ("token_per_s", "p50_s") if abs(row[key]["error"]) > LARGEST_ERROR
    ]
    if "--json" in arguments:
        print(json.dumps({"device": describe(), "torch": torch.__version__, "rows": rows}, default=str))
    else:
        print("| load | predicted, tokens/s | measured | error | predicted p50 | measured | error | rounds |")
        print("|---" * 8 + "|")
        for row in rows:
            a, b = row["token_per_s"], row["p50_s"]
            print(f"| {row['load']} | {a['predicted']:.0f} | {a['measured']:.0f} | {a['error']:+.1%} | "
                  f"{b['predicted'] * 1e3:.1f} ms | {b['measured'] * 1e3:.1f} ms | {b['error']:+.1%} | "
                  f"{min(b['errors']):+.1%} … {max(b['errors']):+.1%} |")  # fmt: skip
        print(f"{len(rows) * 2 - len(missed)} of {len(rows) * 2} figures are within {LARGEST_ERROR:.0%}")
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
