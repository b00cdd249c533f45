"""Calls a function in a process with limits, because text from students can make a parser use any time and memory.

A cell of 9,000 lines, or one that is nested deeply enough, takes Python's own parser minutes, gigabytes or its stack.
Nothing of a student's runs there: the text is parsed, and plain JSON comes back.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

CPU_S = 2  # the largest honest notebook takes 0.1 s; the calls of a submission stay below 10 s with all else
MEMORY_BYTES = 1 << 30  # of address space; the largest honest notebook takes 60 MB
_WALL_S = 300.0  # only a machine that is stuck takes so long: the processor time ends sooner


def bounded_call(function: Callable[..., Any], *arguments: Any, cpu_s: int = CPU_S) -> Any | None:
    """What a module's `function` returns for JSON data; None where it took too much memory or processor time."""
    question = json.dumps([function.__module__, function.__name__, arguments, cpu_s])
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-m", __name__],
            input=question.encode("utf-8", "surrogatepass"),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=_WALL_S,
            check=False,
        )
        return json.loads(done.stdout) if done.returncode == 0 else None
    except subprocess.TimeoutExpired:
        return None


def _answer() -> None:
    import resource  # no Windows has it

    module, name, arguments, cpu_s = json.loads(sys.stdin.buffer.read())
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    json.dump(getattr(import_module(module), name)(*arguments), sys.stdout)


if __name__ == "__main__":
    _answer()
