"""Writing a file whole, and what is no file."""

from __future__ import annotations

import os
from pathlib import Path

from edl_labs.course.grade.files import write_atomically


def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(pipe, b"marks")
    said = os.read(reader, 100)
    os.close(reader)

    assert b"marks" == said
    assert pipe.is_fifo()
    assert [pipe] == list(tmp_path.iterdir())


def test_a_link_to_a_device_stays(tmp_path: Path) -> None:
    link = tmp_path / "out.csv"
    link.symlink_to(os.devnull)
    write_atomically(link, b"marks")

    assert link.is_symlink()
    assert link.is_char_device()
