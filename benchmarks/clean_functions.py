"""Thirty more functions without a mistake, of the kinds that people time. The detector must not report any of them."""

from __future__ import annotations

import bisect
import collections
import hashlib
import heapq
import io
import itertools
import json
import math
import os
import pickle
import queue
import random
import re
import struct
import threading
import zlib
from typing import Any

import numpy as np
import torch
from snippet_register import clean

RNG = np.random.default_rng(0)
WORDS = [f"word{number % 37}" for number in range(500)]


def _plain(fn: Any, **options: Any) -> Any:
    return clean(lambda: {"fn": fn, **options})


_plain(lambda: collections.Counter(WORDS).most_common(3))
_plain(lambda: json.loads(json.dumps({"loss": [0.1] * 50, "step": 3})))
_plain(lambda: pickle.loads(pickle.dumps(list(range(200)))))
_plain(lambda: hashlib.sha256(b"x" * 10_000).hexdigest())
_plain(lambda: zlib.compress(b"the same text " * 100))
_plain(lambda: re.findall(r"d(\d+)", " ".join(WORDS[:100])))
_plain(lambda: re.sub(r"(\d)", r"<\1>", "a1b2c3" * 20))
_plain(lambda: list(itertools.islice(itertools.permutations(range(6)), 100)))
_plain(lambda: sum(x * x for x in (i / 7 for i in range(300))))
_plain(lambda: sorted(random.random() for _ in range(500)))
_plain(lambda: heapq.nsmallest(5, [random.random() for _ in range(300)]))
_plain(lambda numbers: sorted(numbers), inputs=lambda: ([random.random() for _ in range(500)],))
_plain(lambda numbers: max(numbers), inputs=([math.sin(i) for i in range(1000)],))
_plain(lambda: struct.unpack("<64f", struct.pack("<64f", *range(64))))
_plain(lambda a: a.astype(np.float32), inputs=(RNG.standard_normal(2000),))
_plain(lambda a: np.fft.rfft(a), inputs=lambda: (RNG.standard_normal(1024),))
_plain(lambda a: a[a > 0], inputs=(RNG.standard_normal(1000),))
_plain(lambda x: x.t().contiguous(), inputs=lambda: (torch.randn(64, 48),))
_plain(lambda x: torch.sort(x).values, inputs=lambda: (torch.randn(2000),))
_plain(lambda x: torch.softmax(x.masked_fill(x > 1, -math.inf), -1), inputs=(torch.randn(16, 64),))
_plain(lambda x: x.masked_fill(x > 1, -math.inf), inputs=(torch.randn(16, 64),))


@clean
def text_into_a_sink() -> dict[str, Any]:
    sink = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 it stays open for all calls

    def fn() -> None:
        print("step", 3, "loss", 0.25, file=sink)
        sink.flush()

    return {"fn": fn, "restore": sink.close}


@clean
def text_in_memory() -> dict[str, Any]:
    def fn() -> str:
        text = io.StringIO()
        for number in range(50):
            print(number, file=text)
        return text.getvalue()

    return {"fn": fn}


@clean
def bytes_into_a_sink() -> dict[str, Any]:
    sink, data = open(os.devnull, "wb"), bytes(1 << 16)  # noqa: SIM115 it stays open for all calls
    return {"fn": lambda: sink.write(data), "restore": sink.close}


@clean
def network_under_no_grad() -> dict[str, Any]:
    model = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.LazyLinear(10))
    model(torch.randn(2, 3, 16, 16))
    model.eval()

    @torch.no_grad()
    def fn(x: torch.Tensor) -> torch.Tensor:
        return model(x).argmax(-1)

    return {"fn": fn, "inputs": lambda: (torch.randn(2, 3, 16, 16),)}


@clean
def attention_in_inference_mode() -> dict[str, Any]:
    layer = torch.nn.MultiheadAttention(32, 4, batch_first=True).eval()

    @torch.inference_mode()
    def fn(x: torch.Tensor) -> torch.Tensor:
        return layer(x, x, x, need_weights=False)[0]

    return {"fn": fn, "inputs": lambda: (torch.randn(2, 16, 32),)}


@clean
def gradient_by_function() -> dict[str, Any]:
    w, x = torch.randn(16, 16, requires_grad=True), torch.randn(8, 16)
    return {"fn": lambda: torch.autograd.grad((x @ w).square().mean(), w)[0]}


@clean
def clipped_training_step() -> dict[str, Any]:
    model, x = torch.nn.LSTM(8, 16, batch_first=True), torch.randn(4, 10, 8)
    optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-4)

    def fn() -> None:
        model(x)[0].square().mean().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()

    return {"fn": fn}


@clean
def normalised_power_iteration() -> dict[str, Any]:
    a, state = RNG.standard_normal((32, 32)), {"x": RNG.standard_normal(32)}

    def fn() -> None:
        x = a @ state["x"]
        state["x"] = x / np.linalg.norm(x)

    return {"fn": fn}


@clean
def moving_average_in_place() -> dict[str, Any]:
    average, new = RNG.standard_normal(1000), RNG.standard_normal(1000)

    def fn() -> Any:
        average[:] = 0.9 * average + 0.1 * new
        return average

    return {"fn": fn}


@clean
def worker_behind_queues() -> dict[str, Any]:
    asked: queue.Queue[Any] = queue.Queue()
    given: queue.Queue[Any] = queue.Queue()

    def work() -> None:
        for item in iter(asked.get, None):
            given.put(item * 2)

    threading.Thread(target=work, daemon=True).start()

    def fn() -> int:
        asked.put(3)
        return int(given.get())

    return {"fn": fn, "restore": lambda: asked.put(None)}


@clean
def lookup_in_a_sorted_list() -> dict[str, Any]:
    table = [number * 0.5 for number in range(1000)]
    return {"fn": lambda: [bisect.bisect(table, key) for key in (3.2, 77.0, 400.1)]}


@clean
def buffer_that_is_filled_anew() -> dict[str, Any]:
    state: dict[str, Any] = {}

    def fn(x: Any) -> Any:
        if "out" not in state:
            state["out"] = np.empty(512)
        return np.multiply(x, 3.0, out=state["out"])

    return {"fn": fn, "inputs": (RNG.standard_normal(512),)}
