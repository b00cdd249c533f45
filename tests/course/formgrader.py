"""A formgrader that really runs, on loopback and a free port."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.course.browser import page_after
from tests.course.course_fixture import Course

TOKEN = "a-token-of-this-test"


class Formgrader:
    """Requests to a running formgrader."""

    def __init__(self, url: str) -> None:
        self.url = url.rstrip("/")
        self._signed_in: set[Path] = set()

    def page(self, path: str) -> str:
        """The text of a page."""
        return self._ask(f"/formgrader/{path}")

    def seen(self, path: str, profile: Path) -> str:
        """A page's document in a browser that signed in at the top: a cookie that is set deeper holds there alone."""
        if profile not in self._signed_in:
            page_after(f"{self.url}/formgrader?token={TOKEN}", profile)
            self._signed_in.add(profile)
        return page_after(f"{self.url}/formgrader/{path}", profile)

    def api(self, path: str) -> Any:
        """What the formgrader's own API answers."""
        return json.loads(self._ask(f"/formgrader/api/{path}"))

    def press(self, path: str) -> Any:
        """What a button of the page does."""
        return json.loads(self._ask(f"/formgrader/api/{path}", data=b""))

    def _ask(self, path: str, *, data: bytes | None = None) -> str:
        request = urllib.request.Request(self.url + path, data=data, headers={"Authorization": f"token {TOKEN}"})
        with urllib.request.urlopen(request, timeout=120) as answer:
            return answer.read().decode()


@contextmanager
def formgrader(course: Course) -> Iterator[Formgrader]:
    """A Jupyter server with nbgrader's extensions, as the wheel enables them, in the course's folder."""
    runtime = course.root / f"runtime-{os.getpid()}"
    log = course.root / f"server-{os.getpid()}.log"
    options = ["--ip=127.0.0.1", "--port=0", "--no-browser", "--allow-root", f"--ServerApp.root_dir={course.root}"]
    command = [sys.executable, "-m", "jupyter_server", *options, f"--IdentityProvider.token={TOKEN}"]
    env = dict(course.env, JUPYTER_RUNTIME_DIR=str(runtime))
    with log.open("w") as out:
        process = subprocess.Popen(command, cwd=course.root, env=env, stdout=out, stderr=out)
        try:
            yield Formgrader(_url(process, runtime, log))
        finally:
            process.terminate()
            process.wait(timeout=30)


def _url(process: subprocess.Popen[bytes], runtime: Path, log: Path) -> str:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and process.poll() is None:
        for path in runtime.glob("jpserver-*.json"):
            try:
                told = json.loads(path.read_text())
                socket.create_connection(("127.0.0.1", told["port"])).close()  # the file is there before the server
                return str(told["url"])
            except (ValueError, OSError):
                pass
        time.sleep(0.1)
    raise AssertionError(f"the server did not start:\n{log.read_text()}")
