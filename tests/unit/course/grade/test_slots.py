"""As many submissions at a time as memory has room for, whatever their code takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from edl_labs.course.grade.grader import slots_that_fit
from edl_labs.course.sandbox.limits import GIB, MIB
from edl_labs.device import free_bytes


def machine(root: Path, *, available_kb: int, most: str = "", used: int = 0) -> Path:
    """A machine's files, in a folder."""
    (root / "proc").mkdir()
    (root / "proc/meminfo").write_text(f"MemTotal: 99 kB\nMemAvailable:   {available_kb} kB\n")
    if most:
        (root / "sys/fs/cgroup").mkdir(parents=True)
        (root / "sys/fs/cgroup/memory.max").write_text(f"{most}\n")
        (root / "sys/fs/cgroup/memory.current").write_text(f"{used}\n")
    return root


@pytest.mark.parametrize(
    ("most", "used", "free"), [("", 0, 8 * GIB), ("max", GIB, 8 * GIB), (str(4 * GIB), GIB, 3 * GIB), ("1000", 2000, 0)]
)
def test_free_memory_is_the_machines_or_what_its_container_has_left(tmp_path, most, used, free):
    assert free == free_bytes(root=machine(tmp_path, available_kb=8 << 20, most=most, used=used))


def test_the_limit_of_a_session_counts_where_the_machine_has_more(tmp_path):
    """The Littlest JupyterHub gives each server a group of systemd's; its limit may be on a group above."""
    root = machine(tmp_path, available_kb=8 << 20, most="max", used=7 * GIB)
    (root / "proc/self").mkdir()
    (root / "proc/self/cgroup").write_text("4:memory:/old\n0::/hub.slice/ada.service\n")
    session = root / "sys/fs/cgroup/hub.slice/ada.service"
    session.mkdir(parents=True)
    (session / "memory.max").write_text("max\n")
    (session.parent / "memory.max").write_text(f"{2 * GIB}\n")
    (session.parent / "memory.current").write_text(f"{GIB}\n")
    (session.parent / "memory.stat").write_text(f"anon 5\ninactive_file {GIB // 2}\n")

    assert 3 * GIB // 2 == free_bytes(root=root)


def test_without_proc_the_free_memory_is_unknown(tmp_path):
    assert free_bytes(root=tmp_path) is None


@pytest.mark.parametrize(("gigabytes", "slots"), [(1, 1), (4, 1), (8, 2), (16, 4), (64, 17)])
def test_the_sum_of_all_slots_and_the_run_itself_fits(gigabytes, slots):
    free, memory_bytes = gigabytes * 10**9, 3 * GIB

    assert slots == slots_that_fit(free, memory_bytes=memory_bytes)
    assert slots == 1 or slots * (memory_bytes + 400_000_000) + 700_000_000 <= free


def test_smaller_kernels_make_more_slots():
    assert 7 == slots_that_fit(8 * 10**9, memory_bytes=512 * MIB)
