"""Which files must a reader open to follow the code? python -m tools.walk [check] [grade] [build].

Three walks are traced with `sys.setprofile` in small courses of the tests, whose exercises are outside the package: a
public check, a graded submission, and the build of a lab. The walk of a submission covers the command's process and
each process of the package that it starts outside the sandbox. A walk lists the functions of the package in the order
in which they are first entered, so that loops count once. Code that runs while a module is imported does not count. A
return is a visit to a file that the walk had left before. Threads are walked one after the other.
"""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from types import CodeType, FrameType

import edl_labs

PACKAGE = Path(edl_labs.__file__).parent
REPOSITORY = Path(__file__).resolve().parents[1]
_TO = "EDL_LABS_WALK"  # where child processes write their walks
_CHILD = """
import os, sys
if os.environ.get("EDL_LABS_WALK") and "-P" not in sys.orig_argv and "edl_labs" in " ".join(sys.orig_argv):
    sys.path.insert(0, {root!r})
    from tools.walk import follow_child
    follow_child()
"""
"""Follows what the package starts, by `-m` or as a worker; not the kernels' parent, which is started with -P."""


@dataclass
class Walk:
    """Files of the package by thread, in the order in which functions were entered first."""

    entered: dict[int, list[str]] = field(default_factory=dict)
    seen: set[CodeType] = field(default_factory=set)
    importing: dict[int, int] = field(default_factory=dict)
    note: Callable[[int, str], None] | None = None

    def follow(self) -> None:
        """Begin, in this thread and in those that start from now on."""
        threading.setprofile(self._event)
        sys.setprofile(self._event)

    def stop(self) -> None:
        """End in this thread, and for new ones."""
        sys.setprofile(None)
        threading.setprofile(None)

    def _event(self, frame: FrameType, event: str, _: object) -> None:
        if event not in ("call", "return"):
            return
        code, thread = frame.f_code, threading.get_ident()
        if code.co_name == "<module>" and frame.f_globals.get("__name__") != "__main__":
            self.importing[thread] = max(0, self.importing.get(thread, 0) + (1 if event == "call" else -1))
        elif event == "call" and not self.importing.get(thread) and code not in self.seen:
            self._enter(thread, code)

    def _enter(self, thread: int, code: CodeType) -> None:
        self.seen.add(code)
        path = Path(code.co_filename)
        if code.co_flags & inspect.CO_OPTIMIZED and path.is_relative_to(PACKAGE):
            name = path.relative_to(PACKAGE).as_posix()
            self.entered.setdefault(thread, []).append(name)
            if self.note is not None:
                self.note(thread, name)


def follow_child() -> None:
    """Write the walk of this process, line by line: it may be killed at any time."""
    from multiprocessing import current_process  # noqa: F401  (before the first line, not amid them)

    module = next((one for one in sys.orig_argv if one.startswith("edl_labs")), "").partition(":")[0]
    out = (Path(os.environ[_TO]) / f"{module}.{os.getpid()}").open("w", buffering=1)
    Walk(note=lambda thread, name: print(thread, name, file=out)).follow()


def stays(files: list[str]) -> list[str]:
    """The files one after the other, each once for as long as it is not left."""
    return [name for name, _ in groupby(files)]


def returns(threads: list[list[str]]) -> int:
    """Stays in a file that was left before, in the same thread."""
    return sum(len(stays(files)) - len(set(files)) for files in threads)


def walk_check() -> dict[str, list[list[str]]]:
    """The walk of a public check whose answer is right."""
    from tests.course.course_fixture import make_course

    with tempfile.TemporaryDirectory(prefix="edl-walk-") as folder:
        course = make_course(Path(folder) / "course")
        os.environ["EDL_LABS_EXERCISES"] = str(course.exercises)
        os.chdir(course.root)
        from edl_labs import check

        walk = Walk()
        walk.follow()
        check("area", {"area": lambda width, height: width * height})
        walk.stop()
    return {"notebook": list(walk.entered.values())}


def walk_grade() -> dict[str, list[list[str]]]:
    """The walks of `edl-labs grade` with one right submission."""
    from tests.course.course_fixture import LAB, make_course

    with tempfile.TemporaryDirectory(prefix="edl-walk-") as folder:
        course = make_course(Path(folder) / "course")
        course.submit("ana", course.answered())
        os.environ["EDL_LABS_EXERCISES"] = str(course.exercises)
        return _walk_command(["grade", LAB, "--jobs", "1", "--seed", "7"], course.root)


def walk_build() -> dict[str, list[list[str]]]:
    """The walks of `edl-labs build` in a course of one lab."""
    from tests.unit.course.lab import kit

    with tempfile.TemporaryDirectory(prefix="edl-walk-") as folder:
        return _walk_command(["build"], kit.write_course(Path(folder) / "course").root)


def _walk_command(arguments: list[str], folder: Path) -> dict[str, list[list[str]]]:
    """A command's walk in this process, and those of the package's processes that it starts."""
    from edl_labs.cli import main

    hook, notes = folder / "hook", folder / "walks"
    for one in (hook, notes):
        one.mkdir()
    (hook / "sitecustomize.py").write_text(_CHILD.format(root=str(REPOSITORY)))
    os.environ |= {_TO: str(notes), "PYTHONPATH": str(hook)}
    os.chdir(folder)
    sys.argv = ["edl-labs", *arguments]
    walk = Walk()
    walk.follow()
    try:
        main()
    except SystemExit as end:
        if end.code:
            raise
    finally:
        walk.stop()
    return {"command": list(walk.entered.values()), **dict(_of_children(notes))}


def _of_children(notes: Path) -> Iterator[tuple[str, list[list[str]]]]:
    """By module, the walks of child processes; several of one module are one walk, since each does part of it."""
    for module, paths in groupby(sorted(notes.iterdir()), key=lambda path: path.name.rpartition(".")[0]):
        threads: dict[str, list[str]] = {}
        for path in paths:
            for line in path.read_text().splitlines():
                thread, _, name = line.partition(" ")
                threads.setdefault(f"{path.name} {thread}", []).append(name)
        yield module, list(threads.values())


WALKS = {"check": walk_check, "grade": walk_grade, "build": walk_build}


def main() -> int:
    """Walk what was asked: each walk in a process of its own, which has imported nothing before."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("walks", nargs="*", default=list(WALKS), help=f"some of {', '.join(WALKS)} (default: all)")
    parser.add_argument("--files", action="store_true", help="also list the files in order")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    for name in asked.walks:
        show(name, WALKS[name](), files=asked.files, as_json=asked.json)
    return 0


def show(name: str, parts: dict[str, list[list[str]]], *, files: bool, as_json: bool) -> None:
    """One walk: its processes, with files entered and returns to files already left."""
    every = [thread for threads in parts.values() for thread in threads]
    total = {"files": len({one for thread in every for one in thread}), "returns": returns(every)}
    if as_json:
        print(json.dumps({"walk": name, **total, "parts": parts}))
        return
    print(f"{name}: {total['files']} files, {total['returns']} returns")
    for part, threads in parts.items():
        print(f"  {part}: {len({one for thread in threads for one in thread})} files, {returns(threads)} returns")
        for thread in threads if files else ():
            print("    " + " > ".join(stays(thread)))


if __name__ == "__main__":
    sys.exit(main())
