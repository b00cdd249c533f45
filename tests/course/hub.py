"""A JupyterHub that really runs, on loopback: a class whose members have a server and a folder each."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import requests
import websocket

PASSWORD = "a-password-of-this-test"
_WAIT_S = 120.0  # a server starts in 5 s where nothing else runs
_CONFIG = """\
c = get_config()
c.JupyterHub.bind_url = "http://127.0.0.1:{port}"
c.JupyterHub.hub_bind_url = "http://127.0.0.1:{hub_port}"
c.ConfigurableHTTPProxy.api_url = "http://127.0.0.1:{api_port}"
c.ConfigurableHTTPProxy.command = ["{programs}/configurable-http-proxy"]
c.ConfigurableHTTPProxy.auth_token = "{token}"
c.JupyterHub.authenticator_class = "dummy"
c.DummyAuthenticator.password = "{password}"
c.Authenticator.allow_all = True
c.JupyterHub.spawner_class = "simple"
c.SimpleLocalProcessSpawner.home_dir_template = "{homes}/{{username}}"
c.Spawner.cmd = ["{programs}/jupyterhub-singleuser", "--allow-root"]
c.Spawner.environment = {environment!r}
c.Spawner.default_url = "/lab"
"""


def free_port() -> int:
    """A port of loopback that nobody uses now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


@dataclass
class Student:
    """A browser of one student, as far as requests go: logged in, with a server of their own."""

    hub: str
    name: str
    session: requests.Session = field(default_factory=requests.Session)

    @property
    def base(self) -> str:
        """The address of the student's server."""
        return f"{self.hub}/user/{self.name}"

    def log_in(self) -> None:
        """Through the hub's login page, then wait for the server."""
        self.session.get(f"{self.hub}/hub/login")
        form = {"username": self.name, "password": PASSWORD, "_xsrf": self.session.cookies.get("_xsrf", "")}
        self.session.post(f"{self.hub}/hub/login?next=/hub/spawn", data=form).raise_for_status()
        end_s = time.monotonic() + _WAIT_S
        while not self._opens("/lab"):
            assert time.monotonic() < end_s, "the student's server did not start"
            time.sleep(0.5)

    def _opens(self, path: str) -> bool:
        """Whether a page of the student's own server opens; the hub answers with pages of its own until it runs."""
        answer = self.session.get(f"{self.base}{path}")
        return answer.ok and answer.url.startswith(f"{self.base}{path}")

    def pull(self, repository: Path, target: str) -> str:
        """What nbgitpuller says while it pulls a repository into the student's folder."""
        asked = {"repo": f"file://{repository}", "targetpath": target, "branch": "main", "_xsrf": self._xsrf}
        answer = self.session.get(f"{self.base}/git-pull/api", params=asked, timeout=_WAIT_S)
        answer.raise_for_status()
        return answer.text

    def file(self, path: str) -> Any:
        """A notebook as JupyterLab opens it."""
        answer = self.session.get(f"{self.base}/api/contents/{path}")
        answer.raise_for_status()
        return answer.json()["content"]

    def save(self, path: str, notebook: Any) -> None:
        """A notebook as JupyterLab saves it."""
        self._ask("put", f"/api/contents/{path}", {"type": "notebook", "content": notebook})

    @contextmanager
    def kernel(self, path: str) -> Iterator[Kernel]:
        """A kernel for a notebook, in its folder."""
        body = {"path": path, "name": path, "type": "notebook", "kernel": {"name": "python3"}}
        started = self._ask("post", "/api/sessions", body).json()
        cookies = "; ".join(f"{cookie.name}={cookie.value}" for cookie in self.session.cookies)
        address = f"{self.base}/api/kernels/{started['kernel']['id']}/channels".replace("http", "ws", 1)
        socket_ = websocket.create_connection(address, cookie=cookies, timeout=_WAIT_S, origin=self.hub)
        try:
            yield Kernel(socket_)
        finally:
            socket_.close()
            self._ask("delete", f"/api/sessions/{started['id']}", None)

    @property
    def _xsrf(self) -> str:
        return next((c.value or "" for c in self.session.cookies if c.name == "_xsrf" and self.name in c.path), "")

    def _ask(self, verb: str, path: str, body: Any) -> requests.Response:
        headers = {"X-XSRFToken": self._xsrf}
        answer = self.session.request(verb, f"{self.base}{path}", json=body, headers=headers, timeout=_WAIT_S)
        answer.raise_for_status()
        return answer


@dataclass
class Kernel:
    """A kernel that runs cells."""

    channel: Any

    def run(self, code: str) -> str:
        """What a cell prints, shows, or raises."""
        number, said = uuid.uuid4().hex, []
        header = {"msg_id": number, "msg_type": "execute_request", "session": "test", "username": "", "version": "5.3"}
        content = {"code": code, "silent": False, "store_history": True, "allow_stdin": False, "stop_on_error": True}
        message = {"header": header, "parent_header": {}, "metadata": {}, "content": content, "channel": "shell"}
        self.channel.send(json.dumps(message))
        while True:
            heard = json.loads(self.channel.recv())
            if heard["parent_header"].get("msg_id") != number:
                continue
            about = heard["content"]
            if heard["msg_type"] == "stream":
                said.append(about["text"])
            elif heard["msg_type"] in ("execute_result", "display_data"):
                said.append(about["data"].get("text/plain", ""))
            elif heard["msg_type"] == "error":
                said.append(re.sub(r"\x1b\[[\d;]*m", "", "\n".join(about["traceback"])))
            elif heard["msg_type"] == "status" and about["execution_state"] == "idle":
                return "".join(said)


@contextmanager
def running_hub(folder: Path, environment: dict[str, str]) -> Iterator[str]:
    """The address of a hub whose students' folders are below `folder`/homes; ended with all that it started."""
    (folder / "homes").mkdir(parents=True)
    programs, port = Path(sys.executable).parent, free_port()
    text = _CONFIG.format(
        port=port,
        hub_port=free_port(),
        api_port=free_port(),
        programs=programs,
        token=uuid.uuid4().hex,
        password=PASSWORD,
        homes=folder / "homes",
        environment=environment,
    )
    (folder / "jupyterhub_config.py").write_text(text)
    command = [sys.executable, "-m", "jupyterhub", "-f", "jupyterhub_config.py"]
    own = {**os.environ, "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}"}
    with (folder / "hub.log").open("wb") as log:
        hub = subprocess.Popen(command, cwd=folder, env=own, stdout=log, stderr=subprocess.STDOUT)
    try:
        _wait_for(f"http://127.0.0.1:{port}/hub/health", hub, folder / "hub.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        _end(hub)


def _wait_for(address: str, hub: subprocess.Popen[bytes], log: Path) -> None:
    end_s = time.monotonic() + _WAIT_S
    while hub.poll() is None and time.monotonic() < end_s:
        try:
            if requests.get(address, timeout=5).ok:
                return
        except requests.RequestException:
            time.sleep(0.5)
    raise AssertionError(f"the hub did not start:\n{log.read_text()[-3000:]}")


def _end(hub: subprocess.Popen[bytes]) -> None:
    started = psutil.Process(hub.pid).children(recursive=True)
    hub.terminate()
    psutil.wait_procs([psutil.Process(hub.pid)], timeout=20)
    for process in started:
        if process.is_running():
            process.kill()
    hub.wait(timeout=20)
