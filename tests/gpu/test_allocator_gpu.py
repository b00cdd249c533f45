"""VirtualAllocator against torch's own: bytes in use and reserved after each request of drawn traces, to the byte."""

from __future__ import annotations

import json
import random
import subprocess
import sys

import pytest

from edl_labs.virtual.memory import AllocatorSettings, program_of_snapshot, replay_allocator

pytestmark = pytest.mark.gpu

MIB = 1 << 20
# Requests on the real allocator in a fresh process, since its cache must be empty and its history whole.
_REQUESTS = """
import json, sys, torch
requests, settings = json.load(sys.stdin)
torch.cuda.memory._set_allocator_settings(settings)
torch.cuda.init()
torch.cuda.memory._record_memory_history("all", context=None, max_entries=1_000_000)
streams = [torch.cuda.current_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
live, readings = {}, []
for op, number, size, stream in requests:
    if op == "malloc":
        with torch.cuda.stream(streams[stream]):
            live[number] = torch.empty(size, dtype=torch.uint8, device="cuda")
    elif op == "free":
        del live[number]
    else:
        torch.cuda.empty_cache()
    readings.append([torch.cuda.memory_allocated(), torch.cuda.memory_reserved()])
snapshot = torch.cuda.memory._snapshot()
trace = [
    {name: event[name] for name in ("action", "addr", "size", "stream") if name in event}
    for event in snapshot["device_traces"][torch.cuda.current_device()]
]
print(json.dumps([readings, {"device_traces": [trace]}]))
"""


def drawn_requests(seed: int) -> list[tuple[str, int, int, int]]:
    rng, live, requests = random.Random(seed), [], []
    for number in range(200):
        top = rng.choice((600, 40_000, MIB, 3 * MIB, 12 * MIB, 60 * MIB))
        requests.append(("malloc", number, rng.choice((rng.randint(1, top), top, top + 1)), rng.randrange(3)))
        live.append(number)
        while live and rng.random() < 0.47:
            requests.append(("free", live.pop(rng.randrange(len(live))), 0, 0))
        if rng.random() < 0.03:
            requests.append(("empty_cache", 0, 0, 0))
    return requests


@pytest.mark.parametrize("seed", range(20))
def test_bytes_in_use_and_reserved_are_the_real_ones(seed: int) -> None:
    import torch

    if not torch.cuda.is_available():
        pytest.skip("needs a CUDA device: the real caching allocator runs only there")
    requests, expandable = drawn_requests(seed), seed % 4 == 3
    given = json.dumps([requests, f"expandable_segments:{expandable}"])
    done = subprocess.run(
        [sys.executable, "-c", _REQUESTS], input=given, capture_output=True, text=True, check=False, timeout=300
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    readings, snapshot = json.loads(done.stdout.splitlines()[-1])

    # The model's own addresses rank segments by age; the recording has the real ones, which break ties.
    replayed = replay_allocator(program_of_snapshot(snapshot), AllocatorSettings(expandable_segments=expandable))

    real = [reading for reading, request in zip(readings, requests, strict=True) if request[0] != "empty_cache"]
    program = zip(replayed.history, replayed.program, strict=True)
    assert real == [list(state) for state, entry in program if entry["op"] != "empty_cache"]
