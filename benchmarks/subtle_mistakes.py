"""Mistakes that make the measured time wrong but not the function's result, each in its most frequent form."""

from __future__ import annotations

import functools
import gc
import importlib
import logging
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from snippet_register import mistaken


@mistaken("remembered")
def lru_cache_on_the_function() -> dict[str, Any]:
    @functools.lru_cache
    def squares(n: int) -> list[int]:
        return [i * i for i in range(n)]

    return {"fn": lambda: squares(1000)}


@mistaken("remembered")
def memo_of_ones_own() -> dict[str, Any]:
    memo: dict[int, list[int]] = {}

    def fn() -> list[int]:
        if 1000 not in memo:
            memo[1000] = [i * i for i in range(1000)]
        return memo[1000]

    return {"fn": fn}


@mistaken("remembered")
def cache_that_inputs_rotate_through() -> dict[str, Any]:
    @functools.cache
    def squares(n: int) -> int:
        return sum(i * i for i in range(n))

    sizes = iter(range(1000, 100_000))
    return {"fn": squares, "inputs": lambda: (next(sizes),)}


@mistaken("nothing_computed")
def transposed_view() -> dict[str, Any]:
    return {"fn": lambda x: x.T, "inputs": (torch.randn(100, 100),)}


@mistaken("nothing_computed")
def numpy_reshape() -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal((64, 64))
    return {"fn": lambda: np.transpose(x).reshape(64, 64)[::2]}


@mistaken("sleeps")
def sleep_for_the_network() -> dict[str, Any]:
    def fn() -> int:
        time.sleep(0.001)
        return sum(range(100))

    return {"fn": fn}


@mistaken("denormals")
def tiny_inputs() -> dict[str, Any]:
    return {"fn": lambda a: a * 0.5, "inputs": (torch.randn(1000) * 1e-41,)}


@mistaken("diverged")
def grows_to_infinity() -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal(100)

    def fn() -> None:
        with np.errstate(over="ignore"):
            np.multiply(x, 1e4, out=x)

    return {"fn": fn}


@mistaken("settings_changed")
def threads_set_inside() -> dict[str, Any]:
    x, before = torch.randn(64, 64), torch.get_num_threads()

    def fn() -> torch.Tensor:
        torch.set_num_threads(1)
        return x @ x

    return {"fn": fn, "restore": lambda: torch.set_num_threads(before)}


@mistaken("housekeeping")
def collect_in_the_call() -> dict[str, Any]:
    def fn() -> list[int]:
        out = [i * i for i in range(100)]
        gc.collect()
        return out

    return {"fn": fn}


@mistaken("housekeeping")
def empty_cache_in_the_call() -> dict[str, Any]:
    x = torch.randn(64, 64)

    def fn() -> torch.Tensor:
        torch.cuda.empty_cache()
        return x @ x

    return {"fn": fn}


@mistaken("prints")
def print_of_the_progress() -> dict[str, Any]:
    def fn() -> int:
        total = sum(range(100))
        print("total", total)
        return total

    return {"fn": fn}


@mistaken("prints")
def root_logger() -> dict[str, Any]:
    logger, handler = logging.getLogger("training"), logging.StreamHandler()
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False  # a test runner keeps what arrives at the root

    def fn() -> int:
        total = sum(range(100))
        logger.info("total %d", total)
        return total

    return {"fn": fn, "restore": lambda: logger.removeHandler(handler)}


@mistaken("sorted_already")
def array_sorted_in_place() -> dict[str, Any]:
    x = np.random.default_rng(0).standard_normal(1000)
    return {"fn": lambda: x.sort()}


@mistaken("sorted_already")
def sorted_list() -> dict[str, Any]:
    return {"fn": sorted, "inputs": (list(range(1000)),)}


@mistaken("used_up")
def generator_that_calls_share() -> dict[str, Any]:
    numbers = (i * i for i in range(1000))
    return {"fn": lambda: sum(numbers)}


@mistaken("page_cache")
def same_file_each_time() -> dict[str, Any]:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "sample.bin"
    path.write_bytes(bytes(1 << 16))

    def fn() -> int:
        with path.open("rb") as file:
            return len(file.read())

    return {"fn": fn, "restore": folder.cleanup}


@mistaken("loads_code")
def module_reloaded() -> dict[str, Any]:
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "timed_settings.py").write_text("RATE = 0.1\n", encoding="utf-8")
    sys.path.insert(0, folder.name)
    module = importlib.import_module("timed_settings")

    def fn() -> float:
        return float(importlib.reload(module).RATE)

    def restore() -> None:
        sys.path.remove(folder.name)
        del sys.modules["timed_settings"]
        folder.cleanup()

    return {"fn": fn, "restore": restore}


@mistaken("graph_unused")
def inference_with_gradients() -> dict[str, Any]:
    model, x = torch.nn.Linear(64, 64).eval(), torch.randn(8, 64)
    return {"fn": lambda: model(x)}


@mistaken("instrumented")
def profiler_inside() -> dict[str, Any]:
    x = torch.randn(32, 32)

    def fn() -> torch.Tensor:
        with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
            return x @ x

    return {"fn": fn}


@mistaken("instrumented")
def anomaly_mode_inside() -> dict[str, Any]:
    w, x = torch.randn(32, 32, requires_grad=True), torch.randn(8, 32)

    def fn() -> None:
        w.grad = None
        with torch.autograd.detect_anomaly(check_nan=False):
            (x @ w).square().mean().backward()

    return {"fn": fn}


@mistaken("other_stream")
def short_thread_left_behind() -> dict[str, Any]:
    done: list[int] = []

    def fn() -> None:
        done.clear()
        threading.Thread(target=done.append, args=(1,), daemon=True).start()

    return {"fn": fn}
