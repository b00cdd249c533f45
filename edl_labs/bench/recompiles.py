"""What `torch.compile` decides at each call of a function: its front end alone, which needs no C++ compiler."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import UsageError

HIT, RECOMPILE, BREAK, EAGER = "hit", "recompile", "break", "eager"
_MOST_TEXT = 100  # a line of a notebook


@dataclass(frozen=True)
class WatchedCall:
    """One call: the decision, in how many graphs it ran, and what torch gave as the reason for a version or a break."""

    decision: str
    graphs: int
    reason: str = ""
    break_reason: str = ""

    @property
    def is_hit(self) -> bool:
        """Whether a matching version already existed."""
        return self.decision == HIT

    def __str__(self) -> str:
        parts = [self.decision, f"({self.reason})" if self.reason else ""]
        parts += [f"in {self.graphs} graphs: {self.break_reason}" if self.decision == BREAK else ""]
        return " ".join(filter(None, parts))


def watch_calls(function: Callable[..., Any], calls: Iterable[tuple[Any, ...]]) -> list[WatchedCall]:
    """Compile `function` anew with a backend that runs each graph as it is, call it, and say what each call came to.

    Dynamo decides here as it does for other backends, with its own guards, dynamic step and limit of versions. What
    was compiled before in this process is forgotten. UsageError where this torch cannot do that; what the function
    itself raises goes through.

    >>> import torch
    >>> [call.decision for call in watch_calls(torch.sin, [])]
    []
    """
    calls = list(calls)
    if not calls:
        return []
    dynamo = _dynamo()
    watch = _Watch(dynamo)
    level = logging.getLogger("torch._dynamo").level
    dynamo.reset()
    try:
        # Reaching the limit is a warning of several lines; here it is a decision.
        logging.getLogger("torch._dynamo").setLevel(logging.CRITICAL)
        compiled = dynamo.optimize(watch.backend)(function)
        return [watch.call(compiled, args) for args in calls]
    finally:
        logging.getLogger("torch._dynamo").setLevel(level)
        dynamo.reset()


class _Watch:
    """Counts frames that are compiled and graphs that run, call by call."""

    def __init__(self, dynamo: Any) -> None:
        self._dynamo = dynamo
        self._frames: list[int] = []
        self._main: int | None = None
        self._ran = 0

    def backend(self, graph: Any, _inputs: Any) -> Callable[..., Any]:
        from torch._guards import CompileContext

        number = CompileContext.current_compile_id()
        self._frames.append(int(str(number).partition("/")[0].rpartition("/")[2] or 0))

        def run(*inputs: Any) -> Any:
            self._ran += 1
            return graph.forward(*inputs)

        return run

    def call(self, compiled: Callable[..., Any], args: tuple[Any, ...]) -> WatchedCall:
        """What one call comes to. The frame that is compiled first is the function's; others go on behind a break."""
        self._frames, self._ran = [], 0
        utils = self._dynamo.utils
        with suppress(AttributeError):
            utils.clear_compilation_metrics()
        limit_hit = getattr(self._dynamo.exc, "FailOnRecompileLimitHit", ())
        try:
            with self._dynamo.config.patch(fail_on_recompile_limit_hit=True):
                compiled(*args)
        except limit_hit:
            return WatchedCall(EAGER, 0)
        if self._main is None and self._frames:
            self._main = min(self._frames)
        if self._main not in self._frames:
            return WatchedCall(HIT, self._ran)
        reason, break_reason = self._reasons()
        return WatchedCall(BREAK if self._ran > 1 else RECOMPILE, self._ran, reason, break_reason)

    def _reasons(self) -> tuple[str, str]:
        """Why no version fitted, and why the graph ended, in torch's words; empty where it keeps none."""
        try:
            metric = self._dynamo.utils.get_compilation_metrics()[0]
            return _first_line(metric.recompile_reason), _first_line(next(iter(metric.restart_reasons or ()), ""))
        except (AttributeError, IndexError, TypeError):
            return "", ""


def _first_line(text: object) -> str:
    """A reason without the number of the version in front of it, and without the source behind it."""
    line = str(text or "").split("\n")[0].split("  #")[0].strip()
    if line[:1].isdigit() and ": " in line:
        line = line.partition(": ")[2]
    return line if len(line) <= _MOST_TEXT else line[: _MOST_TEXT - 1] + "…"


def _dynamo() -> Any:
    try:
        import torch._dynamo
        import torch._dynamo.utils

        torch._dynamo.config.fail_on_recompile_limit_hit  # noqa: B018  (an older one has another name)
    except (ImportError, AttributeError, RuntimeError) as error:
        raise UsageError(
            "torch.compile's decisions cannot be observed here",
            why=f"{type(error).__name__}: {str(error)[:_MOST_TEXT]}",
            next="install torch 2.7 or later, with a version of Python that it supports",
        ) from error
    return torch._dynamo
