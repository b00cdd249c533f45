"""The page that shows a class run: this machine's alone, at an address that nobody guesses, until the end."""

from __future__ import annotations

import threading
from http.client import HTTPConnection
from urllib.parse import urlsplit

import pytest

from edl_labs.course.grade.classrun import ClassProgress
from edl_labs.course.grade.watch_page import WatchPage

FLAGS, SLOW = (("late", 2), ("tampered", 1)), (("<i>dan</i>", "cell 7", 93.2),)
NOW = ClassProgress(3, 12, "<b>cleo</b>", elapsed_s=6.0, left_s=18.0, flags=FLAGS, slow=SLOW)
END = ClassProgress(12, 12, "zoe", elapsed_s=24.0, left_s=0.0)


def got(address: str, *, path: str = "", host: str = "") -> tuple[int, str, bool]:
    """Status, text, and whether a browser would ask again."""
    parts = urlsplit(address)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=10)
    connection.request("GET", path or parts.path, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    return answer.status, answer.read().decode(), answer.getheader("Refresh") is not None


def look_until_the_end(address: str, seen: list[str]) -> None:
    again = True
    while again:
        _, html, again = got(address)
        seen.append(html)


def test_the_page_shows_how_far_the_run_is_and_asks_for_itself_again():
    with WatchPage("lab01") as page:
        _, before, _ = got(page.address)
        page.tell(NOW)
        status, html, again = got(page.address)
        browser = threading.Thread(target=look_until_the_end, args=(page.address, []))
        browser.start()
    browser.join()

    assert (200, True) == (status, again)
    assert "Nobody is graded yet" in before
    for shown in (
        "3 of 12 students",
        "30.0 a minute",
        "about 1 minute left",
        "tampered",
        "has been at cell 7 for 93 seconds",
    ):
        assert shown in html
    assert "<b>cleo" not in html
    assert "<i>dan" not in html


def test_the_last_state_is_shown_before_the_server_ends():
    seen: list[str] = []
    with WatchPage("lab01") as page:
        got(page.address)
        page.tell(END)
        browser = threading.Thread(target=look_until_the_end, args=(page.address, seen))
        browser.start()
    browser.join()

    assert "Done; the marks are in the gradebook" in seen[-1]
    with pytest.raises(OSError, match="refused"):
        got(page.address)


def test_nobody_else_gets_the_page():
    with WatchPage("lab01") as page:
        port = urlsplit(page.address).port
        found = [
            got(page.address, path="/")[0],
            got(page.address, host="evil.example")[0],
            got(page.address, host=f"evil.example:{port}")[0],
        ]
        assert "127.0.0.1" == page._server.server_address[0]
        assert len(urlsplit(page.address).path) > 20

    assert [404, 404, 404] == found
