"""Functions without a mistake that use pipes, files, threads, contexts and generators. The detector reports nothing."""

from __future__ import annotations

import contextlib
import decimal
import io
import itertools
import multiprocessing
import os
import socket
import tempfile
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import torch
from snippet_register import clean

RNG = np.random.default_rng(1)


@clean
def bytes_through_a_pipe() -> dict[str, Any]:
    ear, mouth = os.pipe()
    data = bytes(range(256)) * 80

    def fn() -> bytes:
        os.write(mouth, data)
        return os.read(ear, len(data))

    return {"fn": fn, "restore": lambda: (os.close(ear), os.close(mouth))}


@clean
def bytes_through_a_socket() -> dict[str, Any]:
    near, far = socket.socketpair()
    data = bytes(range(256)) * 80

    def fn() -> int:
        near.sendall(data)
        return len(far.recv(len(data), socket.MSG_WAITALL))

    return {"fn": fn, "restore": lambda: (near.close(), far.close())}


@clean
def file_on_a_pipe() -> dict[str, Any]:
    ear, mouth = os.pipe()
    reader, writer = open(ear, "rb"), open(mouth, "wb")  # noqa: SIM115 they stay open for all calls
    data = bytes(range(256)) * 80

    def fn() -> bytes:
        writer.write(data)
        writer.flush()
        return reader.read(len(data))

    return {"fn": fn, "restore": lambda: (reader.close(), writer.close())}


@clean
def what_the_kernel_tells() -> dict[str, Any]:
    places = [Path(f"/proc/{name}") for name in ("self/maps", "self/smaps", "meminfo", "vmstat", "self/status")]
    return {"fn": lambda: [place.read_text() for place in places if place.exists()] or [""]}


@clean
def random_bytes() -> dict[str, Any]:
    def fn() -> bytes:
        with open("/dev/urandom", "rb", buffering=0) as source:
            return source.read(20_000)

    return {"fn": fn}


@clean
def file_that_is_written_and_read() -> dict[str, Any]:
    folder = tempfile.TemporaryDirectory()
    path = Path(folder.name) / "checkpoint.json"

    def fn() -> int:
        path.write_text("{" + '"loss": 0.25, ' * 20 + "}")
        return len(path.read_text())

    return {"fn": fn, "restore": folder.cleanup}


@clean
def array_in_memory_as_a_file() -> dict[str, Any]:
    values = RNG.standard_normal(5000)

    def fn() -> Any:
        place = io.BytesIO()
        np.save(place, values)
        place.seek(0)
        return np.load(place)

    return {"fn": fn}


@clean
def state_dict_in_memory() -> dict[str, Any]:
    model = torch.nn.Linear(32, 32)

    def fn() -> Any:
        place = io.BytesIO()
        torch.save(model.state_dict(), place)
        place.seek(0)
        return torch.load(place)

    return {"fn": fn}


@clean
def pool_in_a_context() -> dict[str, Any]:
    def fn() -> list[int]:
        with ThreadPoolExecutor(2) as pool:
            return [future.result() for future in [pool.submit(sum, range(n)) for n in (10, 20)]]

    return {"fn": fn}


@clean
def pool_waited_for_by_its_context() -> dict[str, Any]:
    done: list[int] = []

    def work(number: int) -> None:
        done[:] = [number]

    def fn() -> None:
        with ThreadPoolExecutor(2) as pool:
            pool.submit(work, 1)

    return {"fn": fn}


@clean
def threads_under_a_lock() -> dict[str, Any]:
    lock, total = threading.Lock(), {"n": 0}

    def work() -> None:
        with lock:
            total["n"] += 1

    def fn() -> int:
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return total["n"]

    return {"fn": fn}


@clean
def context_of_ones_own() -> dict[str, Any]:
    depth: list[int] = []

    @contextlib.contextmanager
    def deeper() -> Any:
        depth.append(1)
        try:
            yield len(depth)
        finally:
            depth.pop()

    def fn() -> int:
        with deeper() as a, deeper() as b:
            return a + b

    return {"fn": fn}


@clean
def text_caught_in_memory() -> dict[str, Any]:
    def fn() -> str:
        text = io.StringIO()
        with contextlib.redirect_stdout(text):
            print("loss", 0.25)
        return text.getvalue()

    return {"fn": fn}


@clean
def errors_ignored_for_a_while() -> dict[str, Any]:
    x = RNG.standard_normal(500)

    def fn() -> Any:
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.nan_to_num(np.log(x))

    return {"fn": fn}


@clean
def warnings_caught() -> dict[str, Any]:
    def fn() -> int:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            warnings.warn("odd", stacklevel=1)
        return len(caught)

    return {"fn": fn}


@clean
def precision_for_a_while() -> dict[str, Any]:
    def fn() -> decimal.Decimal:
        with decimal.localcontext() as context:
            context.prec = 50
            return decimal.Decimal(2).sqrt()

    return {"fn": fn}


@clean
def generator_read_to_its_end() -> dict[str, Any]:
    def windows(numbers: list[int]) -> Any:
        for i in range(len(numbers) - 3):
            yield numbers[i : i + 3]

    numbers = list(range(0, 200, 3))
    return {"fn": lambda: sum(max(window) for window in windows(numbers))}


@clean
def generator_that_never_ends() -> dict[str, Any]:
    counter = itertools.count()
    return {"fn": lambda: next(counter) * 2}


@clean
def batches_in_turn() -> dict[str, Any]:
    batches = itertools.cycle([RNG.standard_normal((8, 8)) for _ in range(3)])
    return {"fn": lambda: next(batches) @ np.eye(8)}


@clean
def queue_of_ones_own() -> dict[str, Any]:
    waiting: list[int] = []

    def fn() -> int:
        waiting.extend(range(50))
        total = 0
        while waiting:
            total += waiting.pop()
        return total

    return {"fn": fn}


@clean
def lock_that_is_tried() -> dict[str, Any]:
    room = threading.Semaphore(1)

    def fn() -> int:
        with room:
            return sum(range(50))

    return {"fn": fn}


@clean
def process_behind_a_pipe() -> dict[str, Any]:
    pool = multiprocessing.get_context("fork").Pool(1)
    return {"fn": lambda: len(pool.apply(os.urandom, (40_000,))), "restore": pool.terminate}
