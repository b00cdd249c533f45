"""A model served over HTTP on this machine's own loopback address: handlers, a queue, and one task that runs batches.

A lab or a course writes the handlers and the task as plain asyncio; here are the socket, the thread and what requests
wait for. aiohttp (the extra `serve`) is imported when a server starts.
"""

from __future__ import annotations

import asyncio
import importlib.util
import math
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from edl_labs.device import is_quick
from edl_labs.errors import UsageError
from edl_labs.inference.service_counts import ServiceCounts
from edl_labs.virtual.server import BatchLimits, QueuedRequest
from edl_labs.virtual.server.batching_rules import batch_or_time

LOOPBACK = "127.0.0.1"  # only this machine reaches it
_TRIED_S = 0.5  # of a connection to this machine itself, which takes some microseconds
_START_S = 10.0  # until a server listens: milliseconds, seconds where aiohttp is read from a slow disk
_LAST_S = 1.0  # for replies under way when a server ends
_STOP_S = 5.0  # until a server has ended; no batch takes that long

Reply = tuple[int, Any]  # a status, and what the body holds: text, or plain data as JSON
Handler = Callable[["HttpService", Any], Awaitable[Reply]]


class HttpService:
    """What a service holds while it runs: requests that wait, the replies they wait for, and counts.

    `model` gets a list of inputs and returns as many outputs, as plain data. All but the model runs in one thread.
    """

    def __init__(self, model: Callable[[list[Any]], Sequence[Any]], limits: BatchLimits) -> None:
        self.model, self.limits = model, limits
        self.queue: list[QueuedRequest] = []
        self.counts = ServiceCounts(limits.max_batch)
        self.failure: BaseException | None = None
        self._start_s = time.perf_counter()
        self._came = asyncio.Event()
        self._owed: dict[int, tuple[QueuedRequest, Any, asyncio.Future[Reply]]] = {}
        self._numbers = 0

    def now_s(self) -> float:
        """Seconds since the service was made."""
        return time.perf_counter() - self._start_s

    def enqueue(self, asked: Any) -> QueuedRequest:
        """Put a request at the end of the queue."""
        request = QueuedRequest(self._numbers, self.now_s())
        self._numbers += 1
        self._owed[request.number] = request, asked, asyncio.get_running_loop().create_future()
        self.queue.append(request)
        self._came.set()
        return request

    async def reply_to(self, request: QueuedRequest) -> Reply:
        """Wait for what `reply` or `run` gives a request."""
        try:
            return await self._owed[request.number][2]
        finally:
            self._leave(request.number)

    def reply(self, number: int, status: int, body: Any) -> None:
        """End the wait of a request."""
        request, _, future = self._owed[number]
        self.queue = [one for one in self.queue if one is not request]
        if not future.done():
            future.set_result((status, body))

    async def run(self, numbers: Sequence[int]) -> None:
        """Run waiting requests as one batch, in a thread of its own: others come meanwhile. A time is waited for."""
        chosen = batch_or_time(numbers, self.now_s(), self.queue, self.limits)
        if isinstance(chosen, float):
            return await self.arrival(chosen)
        asked = [self._owed[number][1] for number in chosen]
        self.queue = [one for one in self.queue if one.number not in chosen]
        self.counts.ran(len(chosen))
        for number, output in zip(chosen, await asyncio.to_thread(self.model, asked), strict=True):
            if number in self._owed:  # its client may have gone
                self.reply(number, 200, output)

    async def arrival(self, until_s: float = math.inf) -> None:
        """Wait for the next request, or until a time of `now_s`."""
        self._came.clear()
        await asyncio.sleep(0)  # even a time that is over lets others go on
        ahead_s = None if until_s == math.inf else until_s - self.now_s()
        with suppress(asyncio.TimeoutError):
            await asyncio.wait_for(self._came.wait(), ahead_s)

    def fail(self, error: BaseException) -> None:
        """Keep the first error, and end every wait with status 500."""
        self.failure = self.failure or error
        for number in list(self._owed):
            self.reply(number, 500, {"error": type(error).__name__})

    def _leave(self, number: int) -> None:
        request, _, _ = self._owed.pop(number)
        self.queue = [one for one in self.queue if one is not request]


def missing_for_http() -> str:
    """Why no server can run here, in words; nothing where it can. It takes half a second at most."""
    if is_quick():
        return "this is a quick run"
    if importlib.util.find_spec("aiohttp") is None:
        return 'aiohttp is not installed (pip install "edl-labs[serve]")'
    try:
        with socket.create_server((LOOPBACK, 0)) as listening:
            socket.create_connection(listening.getsockname(), timeout=_TRIED_S).close()
    except OSError as error:
        return f"no connection to {LOOPBACK} ({type(error).__name__})"
    return ""


@contextmanager
def served(
    service: HttpService, routes: Mapping[str, Handler], task: Callable[[HttpService], Awaitable[None]]
) -> Iterator[str]:
    """Serve `routes`, such as `{"POST /predict": handler}`, and run `task` at the same time; gives the address.

    The server has a thread and a free port of its own and ends with the block. A handler gets the service and the
    body that came, as plain data, and returns a status and a body. What the task or a handler raises ends the block.
    """
    missing = missing_for_http()
    if missing:
        raise UsageError("no server can run here", why=missing, next="call missing_for_http() first")
    started: dict[str, Any] = {}
    ready = threading.Event()

    async def main() -> None:
        started["loop"], started["stop"] = asyncio.get_running_loop(), asyncio.Event()
        try:
            await _serve(service, routes, task, started, ready)
        except Exception as error:
            service.fail(error)
        finally:
            ready.set()

    thread = threading.Thread(target=lambda: asyncio.run(main()), name="edl_labs http service", daemon=True)
    thread.start()
    ready.wait(_START_S)
    try:
        if "url" in started:
            yield started["url"]
    except Exception:
        if service.failure is None:
            raise  # otherwise a client's error, which the failure below explains
    finally:
        with suppress(RuntimeError):  # the loop has ended by itself
            started["loop"].call_soon_threadsafe(started["stop"].set)
        thread.join(_STOP_S)
    if service.failure is not None:
        raise service.failure
    if "url" not in started:
        raise UsageError("the server did not start", why=f"{_START_S:g} s have passed", next="run the cell again")


async def _serve(
    service: HttpService,
    routes: Mapping[str, Handler],
    task: Callable[[HttpService], Awaitable[None]],
    started: dict[str, Any],
    ready: threading.Event,
) -> None:
    from aiohttp import web

    app = web.Application()
    for route, handler in routes.items():
        method, _, path = route.partition(" ")
        app.router.add_route(method, path, _bound(service, handler))
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_LAST_S)
    await runner.setup()
    batches = asyncio.ensure_future(task(service))
    batches.add_done_callback(lambda done: _ended(service, done))
    try:
        await web.TCPSite(runner, LOOPBACK, 0).start()
        started["url"] = f"http://{LOOPBACK}:{runner.addresses[0][1]}"
        ready.set()
        await started["stop"].wait()
    finally:
        batches.cancel()
        with suppress(asyncio.CancelledError, Exception):  # _ended has kept what it raised
            await batches
        await runner.cleanup()


def _ended(service: HttpService, done: asyncio.Future[None]) -> None:
    """The task ended: by itself it should not, and nobody would answer any more."""
    if not done.cancelled():
        service.fail(done.exception() or RuntimeError("the task that runs batches has ended"))


def _bound(service: HttpService, handler: Handler) -> Callable[[Any], Awaitable[Any]]:
    """A handler as aiohttp calls it."""
    from aiohttp import web

    async def handle(request: Any) -> Any:
        came_s = service.now_s()
        try:
            asked = await request.json() if request.can_read_body else None
        except ValueError:
            return web.json_response({"error": "the body is not JSON"}, status=400)
        try:
            if service.failure is not None:
                raise service.failure
            status, body = await handler(service, asked)
        except Exception as error:
            service.fail(error)
            status, body = 500, {"error": type(error).__name__}
        if request.method == "POST":
            service.counts.replied(status, service.now_s() - came_s)
        if isinstance(body, str):
            return web.Response(text=body, status=status)
        return web.json_response(body, status=status)

    return handle
