"""A page that shows how far a class run is, and asks for itself again: served to this machine alone, while it runs."""

from __future__ import annotations

import secrets
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType

from edl_labs.course.grade.classrun import ClassProgress
from edl_labs.course.pages.shell import render

REFRESH_S = 2  # as often as a line of the log
_SEEN_S = 2.5 * REFRESH_S  # how long the last state waits for a browser to ask once more
_KEY_BYTES = 16  # nobody else on the machine guesses the address
_HEADERS = (
    ("Content-Type", "text/html; charset=utf-8"),
    ("Cache-Control", "no-store"),
    ("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'"),
    ("X-Content-Type-Options", "nosniff"),
    ("Referrer-Policy", "no-referrer"),
)


class WatchPage:
    """A server on 127.0.0.1 for one page, at an address that holds a key; it ends with the `with` block.

    `tell(progress)` changes what the page shows. A browser that watches gets the last state before the server ends.
    """

    def __init__(self, assignment: str) -> None:
        self._assignment = assignment
        self._now: ClassProgress | None = None
        self._asked, self._ended, self._last_seen = False, False, threading.Event()
        self._path = f"/{secrets.token_urlsafe(_KEY_BYTES)}"
        page = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                page._serve(self)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing: the log is the run's."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def address(self) -> str:
        """Where a browser on this machine finds the page."""
        return f"http://127.0.0.1:{self._server.server_port}{self._path}"

    def __enter__(self) -> WatchPage:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.1}, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        self._ended = True
        if self._asked and kind is None:
            self._last_seen.wait(_SEEN_S)
        self._server.shutdown()
        self._server.server_close()

    def tell(self, now: ClassProgress) -> None:
        """What the page shows from now on."""
        self._now = now

    def _serve(self, request: BaseHTTPRequestHandler) -> None:
        """The page for who knows its address; a page of another site that resolves to this machine gets nothing."""
        port = self._server.server_port
        hosts = (f"127.0.0.1:{port}", f"localhost:{port}")
        is_ours = secrets.compare_digest(request.path.encode(), self._path.encode())
        if request.headers.get("Host") not in hosts or not is_ours:
            request.send_error(404)
            return
        ended = self._ended
        self._asked = True
        data = render("watch.html", assignment=self._assignment, now=self._now, running=not ended).encode()
        request.send_response(200)
        again = () if ended else (("Refresh", str(REFRESH_S)),)
        for name, value in (*_HEADERS, *again, ("Content-Length", str(len(data)))):
            request.send_header(name, value)
        with suppress(ConnectionError):  # a tab that was closed
            request.end_headers()
            request.wfile.write(data)
        if ended:
            self._last_seen.set()
