"""Archives that others made."""

from __future__ import annotations

import io
import stat
import tarfile
import zipfile
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from edl_labs.course.marks.archives import BadArchive, Entry, files_inside, read_folder, read_zip


def packed(files: dict[str, bytes], *, links: tuple[str, ...] = ()) -> bytes:
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            info = zipfile.ZipInfo(name)
            info.compress_type = zipfile.ZIP_DEFLATED
            if name in links:
                info.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(info, content)
    return data.getvalue()


def tarred(name: str, *, kind: bytes = tarfile.REGTYPE, target: str = "") -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w:gz") as archive:
        info = tarfile.TarInfo(name)
        info.type, info.linkname, info.size = kind, target, 2 if kind == tarfile.REGTYPE else 0
        archive.addfile(info, io.BytesIO(b"{}"))
    return data.getvalue()


@pytest.mark.parametrize(
    "name", ["../x.ipynb", "/etc/x.ipynb", "a/../../x.ipynb", "..\\x.ipynb", "C:\\x.ipynb", "\\\\host\\x", "a/..", ".."]
)
def test_an_entry_that_would_leave_the_folder_refuses_the_whole_archive(name: str) -> None:
    with pytest.raises(BadArchive, match="refused"):
        list(read_zip(packed({"good.ipynb": b"{}", name: b"{}"}), "x.zip"))


def test_links_in_archives_are_refused() -> None:
    with pytest.raises(BadArchive, match="link"):
        list(read_zip(packed({"a.ipynb": b"/etc/passwd"}, links=("a.ipynb",)), "x.zip"))
    for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
        (found,) = files_inside(Entry("x.tgz", tarred("a.ipynb", kind=kind, target="/etc/passwd")))

        assert (b"", "a.ipynb") == (found.data, found.path)
        assert "links are not followed" in found.refused


def test_a_bomb_is_not_unpacked_and_what_is_beside_it_is_read() -> None:
    bomb, small = read_zip(packed({"a.ipynb": bytes(64 << 20), "b.ipynb": b"{}"}), "x.zip")

    assert (b"", b"{}") == (bomb.data, small.data)
    assert "too large when unpacked" in bomb.refused
    assert not small.refused


def test_many_small_bombs_are_refused_until_the_rest_is_bearable() -> None:
    found = list(read_zip(packed({f"{n}.ipynb": bytes(6 << 20) for n in range(8)} | {"own.ipynb": b"{}"}), "x.zip"))

    assert sum(len(entry.data) for entry in found) < 24 << 20
    assert b"{}" == found[-1].data


@pytest.mark.parametrize("name", ["../x.gz", "/etc/x.gz", "C:\\x.gz", "a/.."])
def test_of_a_students_own_archive_the_rest_is_read(name: str) -> None:
    odd, good = files_inside(Entry("work.zip", packed({name: b"x", "work/good.ipynb": b"{}"})))

    assert odd.refused
    assert b"" == odd.data
    assert ".." not in odd.path
    assert ("work/good.ipynb", b"{}", "") == (good.path, good.data, good.refused)


@pytest.mark.parametrize("data", [b"", b"PK\x03\x04", b"no zip at all", packed({"a": b"x" * 1000})[:-30]])
def test_broken_archives_are_said(data: bytes) -> None:
    with pytest.raises(BadArchive):
        list(read_zip(data, "x.zip"))


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=300), st.integers(0, 200))
@example(b"\x00\x08" + b"\x00" * 18 + b"\n", 47)  # a local name that claims to be UTF-8 and is not
@example(bytes(16), 171)  # an entry without a name
def test_damaged_archives_give_files_or_a_clear_line(junk: bytes, at: int) -> None:
    whole = packed({"a.ipynb": b"{}", "b/c.ipynb": b"x" * 300})
    try:
        found = list(read_zip(whole[:at] + junk + whole[at + len(junk) :], "x.zip"))
    except BadArchive as problem:
        assert "x.zip" in problem.what
    else:
        assert all(".." not in entry.path.split("/") for entry in found)


def test_what_operating_systems_notebooks_and_checks_add_is_left_out() -> None:
    added = ("__MACOSX/._a.ipynb", ".DS_Store", ".edl_labs/lab01.json", "index.html", "x/.ipynb_checkpoints/a.ipynb")
    found = read_zip(packed({**dict.fromkeys(added, b"{}"), "a.ipynb": b"{}"}), "x.zip")

    assert ["a.ipynb"] == [entry.path for entry in found]


def test_accents_survive_archives_that_do_not_say_their_encoding() -> None:
    plain = packed({"Jose_1_2_x.ipynb": b"{}"})
    data = plain.replace(b"Jose_1_2_x.ipynb", "José_1_2_.ipynb".encode())  # the same number of bytes, unflagged

    assert ["José_1_2_.ipynb"] == [entry.path for entry in read_zip(data, "x.zip")]


def test_files_are_found_in_what_students_pack() -> None:
    inner = packed({"work/lab01.ipynb": b"{}", "readme.txt": b""})

    assert ["lab01.ipynb", "readme.txt"] == [e.name for e in files_inside(Entry("work.zip", inner))]
    assert ["lab01.ipynb"] == [e.name for e in files_inside(Entry("work.tar.gz", tarred("w/lab01.ipynb")))]
    assert [] == files_inside(Entry("lab01.pdf", b"%PDF"))


def test_folders_are_read_without_following_links(tmp_path: Path) -> None:
    (tmp_path / "ana").mkdir()
    (tmp_path / "ana" / "lab01.ipynb").write_bytes(b"{}")
    (tmp_path / "eve").symlink_to(tmp_path / "ana")
    (tmp_path / "eve.ipynb").symlink_to(tmp_path / "ana" / "lab01.ipynb")

    assert ["ana/lab01.ipynb"] == [entry.path for entry in read_folder(tmp_path)]
