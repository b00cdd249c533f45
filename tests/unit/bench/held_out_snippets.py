"""The code of the mistakes that `held_out_mistakes` describes in words: name -> a function that makes it."""

from __future__ import annotations

import asyncio
import cProfile
import functools
import heapq
import importlib
import importlib.util
import logging
import os
import queue
import subprocess
import sys
import tempfile
import threading
import tracemalloc
import warnings
from concurrent.futures import ThreadPoolExecutor
from gc import collect
from pathlib import Path
from time import sleep

import numpy as np
import torch

RNG = np.random.default_rng(1)


class Featurizer:
    @functools.cache  # noqa: B019 the mistake itself
    def features(self, n):
        return tuple(i * 0.5 for i in range(n))


class Table:
    @functools.cached_property
    def rows(self):
        return [i * i for i in range(500)]


class Lazy:
    def __init__(self):
        self.weights = None

    def __call__(self):
        if self.weights is None:
            self.weights = RNG.standard_normal((50, 50)) @ RNG.standard_normal((50, 50))
        return self.weights


def method_with_cache():
    featurizer = Featurizer()
    return {"fn": lambda: featurizer.features(300)}


def cached_property():
    table = Table()
    return {"fn": lambda: table.rows}


def keyed_by_the_bytes_of_an_array():
    memo = {}

    def fn(x):
        key = x.tobytes()
        if key not in memo:
            memo[key] = np.linalg.svd(x, compute_uv=False)
        return memo[key]

    return {"fn": fn, "inputs": (RNG.standard_normal((20, 20)),)}


def attribute_filled_once():
    return {"fn": Lazy()}


def windows_of_an_array():
    x = RNG.standard_normal(5000)
    return {"fn": lambda: np.lib.stride_tricks.sliding_window_view(x, 16)}


def chunks_of_a_tensor():
    return {"fn": lambda x: torch.chunk(x, 4), "inputs": (torch.randn(64, 64),)}


def cast_to_the_type_it_has():
    return {"fn": lambda x: x.float(), "inputs": (torch.randn(64, 64),)}


def memoryview_slice():
    message = memoryview(os.urandom(1 << 16))
    return {"fn": lambda: message[128:4096]}


def sleep_imported_by_name():
    def fn():
        sleep(0.002)
        return sum(range(50))

    return {"fn": fn}


def asyncio_sleep():
    async def request():
        await asyncio.sleep(0.001)
        return 1

    return {"fn": lambda: asyncio.run(request())}


def event_that_nobody_sets():
    stop = threading.Event()
    return {"fn": lambda: stop.wait(0.002)}


def numpy_of_1e_310():
    x = RNG.uniform(1, 2, 1000) * 1e-310
    return {"fn": lambda: x * 1.5}


def weights_scaled_down():
    model = torch.nn.Linear(64, 64)
    with torch.no_grad():
        model.weight.mul_(1e-40)

    @torch.no_grad()
    def fn(x):
        return model(x)

    return {"fn": fn, "inputs": (torch.randn(8, 64),)}


def power_iteration():
    a, x = torch.rand(64, 64), torch.rand(64)

    def fn():
        nonlocal x
        x = a @ x

    return {"fn": fn}


def learning_rate_too_high():
    model, x, y = torch.nn.Linear(16, 1), torch.randn(32, 16), torch.randn(32, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=50.0)

    def fn():
        optimizer.zero_grad()
        (model(x) - y).square().mean().backward()
        optimizer.step()

    return {"fn": fn}


def numpy_state():
    x = RNG.uniform(1.5, 2.0, 100)

    def fn():
        with np.errstate(all="ignore"):
            np.square(x, out=x)

    return {"fn": fn}


def float32_precision():
    x, before = torch.randn(32, 32), torch.get_float32_matmul_precision()

    def fn():
        torch.set_float32_matmul_precision("high")
        return x @ x

    return {"fn": fn, "restore": lambda: torch.set_float32_matmul_precision(before)}


def default_dtype():
    def fn():
        torch.set_default_dtype(torch.float64)
        return torch.rand(100).sum()

    return {"fn": fn, "restore": lambda: torch.set_default_dtype(torch.float32)}


def environment():
    before = os.environ.get("OMP_NUM_THREADS")

    def fn():
        os.environ["OMP_NUM_THREADS"] = "3"
        return sum(range(100))

    def restore():
        del os.environ["OMP_NUM_THREADS"]
        if before is not None:
            os.environ["OMP_NUM_THREADS"] = before

    return {"fn": fn, "restore": restore}


def collect_by_name():
    def fn():
        collect()
        return list(range(100))

    return {"fn": fn}


def youngest_generation():
    import gc

    x = torch.randn(16, 16)

    def fn():
        y = x @ x
        gc.collect(0)
        return y

    return {"fn": fn}


def accelerator_cache():
    x = torch.randn(16, 16)

    def fn():
        y = x + 1
        torch.accelerator.empty_cache()
        return y

    return {"fn": fn}


def progress_by_stderr():
    def fn():
        sys.stderr.write("\rstep 3")
        return sum(range(100))

    return {"fn": fn}


def logger_with_a_handler():
    logger, handler = logging.getLogger("held out"), logging.StreamHandler(sys.stderr)
    logger.addHandler(handler)
    logger.propagate = False  # a test runner keeps what arrives at the root

    def fn():
        logger.warning("loss %.3f", 0.25)
        return sum(range(100))

    return {"fn": fn, "restore": lambda: logger.removeHandler(handler)}


def warnings_each_time():
    def fn():
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            warnings.showwarning = _show
            warnings.warn("deprecated", stacklevel=1)
        return sum(range(100))

    return {"fn": fn}


def _show(message, category, filename, lineno, file=None, line=None):
    print(category.__name__, message, file=sys.stderr)


def list_sorted_in_place():
    numbers = RNG.standard_normal(2000).tolist()

    def fn():
        numbers.sort()
        return numbers[0]

    return {"fn": fn}


def tensor_sorted_before():
    return {"fn": lambda x: torch.sort(x).values, "inputs": (torch.arange(2000.0),)}


def heap_made_again():
    numbers = RNG.standard_normal(2000).tolist()
    return {"fn": lambda: heapq.heapify(numbers)}


def file_at_its_end():
    file = tempfile.TemporaryFile("w+")  # noqa: SIM115 it stays open for all calls
    file.write("line\n" * 100)
    file.seek(0)
    return {"fn": lambda: len(file.read()), "restore": file.close}


def queue_drained():
    waiting = queue.Queue()
    for number in range(100):
        waiting.put(number)

    def fn():
        total = 0
        while not waiting.empty():
            total += waiting.get()
        return total

    return {"fn": fn}


def loader_iterator():
    data = torch.utils.data.TensorDataset(torch.randn(32, 8))
    batches = iter(torch.utils.data.DataLoader(data, batch_size=4))

    def fn():
        return [x.sum() for (x,) in batches]

    return {"fn": fn}


def _file(size):
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "data.npy"
    np.save(path, RNG.standard_normal(size))
    return folder, path


def numpy_load():
    folder, path = _file(10_000)
    return {"fn": lambda: np.load(path), "restore": folder.cleanup}


def read_bytes():
    folder, path = _file(1 << 17)
    return {"fn": path.read_bytes, "restore": folder.cleanup}


def memory_map():
    folder, path = _file(1 << 15)
    mapped = np.load(path, mmap_mode="r")
    return {"fn": lambda: mapped.sum(), "restore": folder.cleanup}


def _module():
    folder = tempfile.TemporaryDirectory()
    (Path(folder.name) / "held_out_module.py").write_text("VALUE = 3\n", encoding="utf-8")
    sys.path.insert(0, folder.name)

    def restore():
        sys.path.remove(folder.name)
        sys.modules.pop("held_out_module", None)
        folder.cleanup()

    return Path(folder.name) / "held_out_module.py", restore


def import_anew():
    _, restore = _module()

    def fn():
        sys.modules.pop("held_out_module", None)
        return importlib.import_module("held_out_module").VALUE

    return {"fn": fn, "restore": restore}


def spec_exec_module():
    path, restore = _module()

    def fn():
        spec = importlib.util.spec_from_file_location("held_out_module", path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module.VALUE

    return {"fn": fn, "restore": restore}


def argmax_of_logits():
    model, x = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4)), torch.randn(8, 32)
    return {"fn": lambda: model(x).argmax(-1)}


def detached_afterwards():
    model, x = torch.nn.Linear(32, 4), torch.randn(8, 32)
    return {"fn": lambda: model(x).detach().numpy()}


def evaluated_in_eval_mode():
    model = torch.nn.Sequential(torch.nn.Linear(32, 32), torch.nn.Dropout(), torch.nn.Linear(32, 4)).eval()
    return {"fn": lambda x: model(x), "inputs": lambda: (torch.randn(8, 32),)}


def tracemalloc_in_the_call():
    def fn():
        tracemalloc.start()
        out = [i * i for i in range(100)]
        tracemalloc.stop()
        return out

    return {"fn": fn}


def cprofile_in_the_call():
    def fn():
        with cProfile.Profile():
            return [i * i for i in range(100)]

    return {"fn": fn}


def anomaly_mode_from_before():
    torch.autograd.set_detect_anomaly(True, check_nan=False)
    w = torch.randn(16, 16, requires_grad=True)

    def fn():
        w.grad = None
        (w @ w).sum().backward()

    return {"fn": fn, "restore": lambda: torch.autograd.set_detect_anomaly(False)}


def short_task_of_a_pool():
    pool, done = ThreadPoolExecutor(1), []

    def fn():
        done.clear()
        pool.submit(done.append, 1)

    return {"fn": fn, "restore": pool.shutdown}


def timer_thread():
    def fn():
        timer = threading.Timer(0.001, int)
        timer.daemon = True
        timer.start()

    return {"fn": fn}


def process_not_waited_for():
    def fn():
        process = subprocess.Popen([sys.executable, "-S", "-c", ""], stdin=subprocess.DEVNULL)
        return process.pid

    return {"fn": fn}
