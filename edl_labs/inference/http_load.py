"""A load for a service over HTTP: a bounded number of requests that come at given times, answered or not."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

from edl_labs.errors import UsageError
from edl_labs.virtual.server import ServedCall
from edl_labs.virtual.server.batching_rules import ANSWERED, FULL, TIMED_OUT, UNANSWERED

MOST_REQUESTS = 2000  # of a load: each has a task and a connection of its own
_ENDED_S = 1.0  # for the tasks that are cancelled at the limit


class LoadedCalls(NamedTuple):
    """What became of each request, as its client saw it, and the bodies that came back (None where none did)."""

    calls: tuple[ServedCall, ...]
    bodies: tuple[Any, ...]


def load_over_http(url: str, asked: Sequence[Any], arrivals_s: Sequence[float], *, limit_s: float = 8.0) -> LoadedCalls:
    """Send each of `asked` as JSON at its time; after `limit_s` seconds nothing is waited for any more.

    The load is open: a request goes out at its time, and waits for no answer to another one. It goes out of a thread
    of this process, which takes some processor time from the service.
    """
    if not 1 <= len(asked) == len(arrivals_s) <= MOST_REQUESTS:
        raise UsageError(
            f"{len(asked)} requests do not match {len(arrivals_s)} arrival times",
            why=f"each request needs one time, and a load must have 1 to {MOST_REQUESTS:,} requests",
            next="call, for example, load_over_http(url, [{'item': 3}], [0.0])",
        )
    found: list[LoadedCalls | BaseException] = []

    def work() -> None:
        try:
            found.append(asyncio.run(_load(url, asked, arrivals_s, limit_s)))
        except BaseException as error:
            found.append(error)

    # A thread: where a notebook calls this, its own loop runs already.
    thread = threading.Thread(target=work, name="edl_labs http load", daemon=True)
    thread.start()
    thread.join(limit_s + 10 * _ENDED_S)
    if not found:
        raise UsageError("the load test did not finish", why=f"{limit_s:g} s have passed", next="run the cell again")
    if isinstance(found[0], BaseException):
        raise found[0]
    return found[0]


async def _load(url: str, asked: Sequence[Any], arrivals_s: Sequence[float], limit_s: float) -> LoadedCalls:
    import aiohttp

    connections = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(connector=connections) as session:
        start_s = time.perf_counter()
        pairs = zip(asked, arrivals_s, strict=True)
        tasks = [asyncio.ensure_future(_one(session, url, body, at_s, start_s)) for body, at_s in pairs]
        await asyncio.wait(tasks, timeout=limit_s)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_ENDED_S)
    ended = [task for task in tasks if task.done() and not task.cancelled()]
    results = {task: task.result() for task in ended}
    unanswered = [(ServedCall(at_s, math.inf, UNANSWERED), None) for at_s in arrivals_s]
    pairs_found = [results.get(task, unknown) for task, unknown in zip(tasks, unanswered, strict=True)]
    return LoadedCalls(tuple(call for call, _ in pairs_found), tuple(body for _, body in pairs_found))


async def _one(session: Any, url: str, body: Any, at_s: float, start_s: float) -> tuple[ServedCall, Any]:
    import aiohttp

    await asyncio.sleep(max(0.0, at_s - (time.perf_counter() - start_s)))
    sent_s = time.perf_counter() - start_s
    try:
        async with session.post(url, json=body) as response:
            said = await response.json()
    except (aiohttp.ClientError, OSError):
        return ServedCall(sent_s, math.inf, UNANSWERED), None
    ended_s = time.perf_counter() - start_s
    reasons = {200: ANSWERED, 503: said.get("error", FULL) if isinstance(said, dict) else FULL}
    outcome = reasons.get(response.status, UNANSWERED)
    known = outcome if outcome in (ANSWERED, FULL, TIMED_OUT) else UNANSWERED
    return ServedCall(sent_s, ended_s, known), said
