"""The zygote's life: give up root, import, then fork a kernel for each request until the judge is gone."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import shutil
import signal
import socket
import tempfile
import time
import traceback
from typing import Any

from edl_labs.course.sandbox import landlock, syscalls
from edl_labs.course.sandbox.level import Level
from edl_labs.course.sandbox.limits import Limits
from edl_labs.course.sandbox.stage import become_ordinary, open_way
from edl_labs.course.sandbox.view import View
from edl_labs.course.sandbox.zygote import inside, warm
from edl_labs.course.sandbox.zygote.box import Place, bubblewrap_arguments, write_etc
from edl_labs.course.sandbox.zygote.children import Child, Children

MESSAGE_BYTES = 1 << 17  # the judge's own bound, which one message on a Unix socket may have
FDS_AT_MOST = 8  # six come: gate, start pipe, three channels, files
_CLASS = 6  # kernels after which there will be many more: making pages huge takes as long as it saves on some 20
_WATCH_BOX_S, _WATCH_FAMILY_S = 0.1, 0.5  # a family is looked for among all of the machine's processes


def main(control_fd: int) -> None:
    """Serve the judge at the other end of `control_fd`, a socket that keeps message boundaries."""
    control = socket.socket(fileno=control_fd)
    config = json.loads(control.recv(MESSAGE_BYTES))
    scratch = ""
    try:
        Zygote.prepare(config)
        scratch = tempfile.mkdtemp(prefix="edl-zygote-")
        os.chmod(scratch, 0o711)
        zygote = Zygote(control, config, scratch)
        control.send(json.dumps({"ready": True}).encode())
        try:
            zygote.serve()
        finally:
            zygote.children.stop_all()
    except Exception:
        with contextlib.suppress(OSError):  # nobody waits any more
            control.send(json.dumps({"ready": False, "why": traceback.format_exc(limit=-4)}).encode())
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    # Nothing is left to do, and native libraries print complaints when an interpreter is taken down in order.
    os._exit(0)


class Zygote:
    """Answers the judge's requests: import, spawn, usage, stop."""

    def __init__(self, control: socket.socket, config: dict[str, Any], scratch: str) -> None:
        self.control, self.scratch = control, scratch
        self.level = Level(config["level"])
        self.limits = Limits(**config["limits"])
        self.view = View.from_dict(config["view"])
        self.children = Children(self.limits)
        self._spawned = 0
        self._watch_s = _WATCH_BOX_S if self.level is Level.NAMESPACES else _WATCH_FAMILY_S
        os.environ["MPLCONFIGDIR"] = scratch
        warm.import_all(config["preload"], scratch=scratch)
        if self.level is not Level.UNSAFE:
            inside.prepare_filter(network=self.level is Level.NAMESPACES)
        if self.level is Level.NAMESPACES:
            write_etc(scratch)
            self.box_arguments = bubblewrap_arguments(self.view, self.limits, etc=scratch)
        self.fence = landlock.fence(self.view) if self.level is Level.LANDLOCK else None
        self._watch_children()
        gc.freeze()  # looking for garbage before takes as long as a tenth of the imports, and finds little

    @staticmethod
    def prepare(config: dict[str, Any]) -> None:
        """Become an ordinary user, and the parent of every orphan below."""
        paths = [*config["view"]["shown"], config["view"]["package_root"]]
        if Level(config["level"]) is Level.NAMESPACES:
            become_ordinary(paths)
        elif Level(config["level"]) is Level.LANDLOCK:
            open_way(paths)
        syscalls.become_subreaper()

    def serve(self) -> None:
        """Answer until the judge's end is closed; look after the kernels' limits in between."""
        next_look = time.monotonic()
        while True:
            wait_s = max(0.0, next_look - time.monotonic()) if self.children.watched else None
            readable, _, _ = select.select([self.control.fileno(), self._woken], [], [], wait_s)
            if self._woken in readable:
                self._drain()
                self.children.reap()
            if self.control.fileno() in readable and not self._answer_one():
                return
            if time.monotonic() >= next_look:
                self.children.look()
                next_look = time.monotonic() + self._watch_s

    def _answer_one(self) -> bool:
        message, fds, _, _ = socket.recv_fds(self.control, MESSAGE_BYTES, FDS_AT_MOST)
        if not message:
            return False
        try:
            answer, given = self._handle(json.loads(message), fds)
        except Exception as error:
            answer, given = {"error": f"{type(error).__name__}: {error}"}, []
        finally:
            for fd in fds:
                os.close(fd)
        try:
            socket.send_fds(self.control, [json.dumps(answer).encode()], given)
        except BrokenPipeError:
            return False
        return True

    def _handle(self, request: dict[str, Any], fds: list[int]) -> tuple[dict[str, Any], list[int]]:
        if request["do"] == "spawn":
            child = self._spawn(request, fds)
            return {"pid": child.pid}, child.handles()
        if request["do"] == "import":
            return {"why": self._import(request["names"])}, []
        child = self.children.find(request["pid"])
        if request["do"] == "stop":
            self.children.stop(child)
            return child.report(), []
        return {**child.report(), "waited_s": child.waited_s()}, []

    def _spawn(self, request: dict[str, Any], fds: list[int]) -> Child:
        arguments = self.box_arguments if self.level is Level.NAMESPACES else None
        place = self._place()
        child = self.children.spawn(arguments, place, gate=fds[0])
        if child is not None:
            self._spawned += 1
            if self._spawned == _CLASS:
                syscalls.make_huge(warm.own_memory())
            return child
        # From here on this is the student's process.
        try:
            self._leave_parent()
            settings = inside.Settings(self.limits, place, self.fence, cuda=bool(self.view.devices))
            inside.run_kernel(request, settings, fds[1:])
        except BaseException as error:
            os.write(fds[1], f"{type(error).__name__}: {error}".encode()[:4000])
        finally:
            os._exit(1)
        raise AssertionError("unreachable")

    def _import(self, names: list[str]) -> str:
        try:
            warm.import_more(names)
        except Exception as error:
            return f"{type(error).__name__}: {error}"
        gc.freeze()
        return ""

    def _place(self) -> Place:
        if self.level is Level.NAMESPACES:
            return Place.in_sandbox()
        return Place.on_host(self.scratch, own_user=self.level is Level.LANDLOCK)

    def _leave_parent(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)

    def _watch_children(self) -> None:
        self._woken, writing = os.pipe()
        os.set_blocking(self._woken, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def _drain(self) -> None:
        with contextlib.suppress(BlockingIOError):
            os.read(self._woken, 4096)
