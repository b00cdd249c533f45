"""The message about a prefetcher that hangs, loses or changes items, hides an error, or goes too far ahead."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong

# Kinds of cases in which more happens than that some items are taken and close() is called.
FALSE_ITEMS, ERROR_AHEAD, CLOSED_ELSEWHERE = "false items", "error ahead", "closed elsewhere"


def judge_hang(case: Any, got: Any) -> None:
    if got["hangs"] and got["closing"]:
        raise Wrong(
            "close() never returned: the thread waits at a full queue",
            why="close() waits for a thread that waits in put(), and the queue is no longer read",
            next="does close() say that it is closed before it joins the thread? And does the thread hear it: put with "
            "a timeout, and look between two attempts",
        )
    if got["hangs"] and not got["made"]:
        raise Wrong(
            "Prefetcher(...) itself never came back",
            why=f"the source gave {got['given']} while it was made: it is drawn in the caller's own thread",
            next="start() runs the target in a new thread, run() in this one",
        )
    if got["hangs"] and case["count"] and not got["given"]:
        raise Wrong(
            "the source was never read",
            why="the consumer waits for ever, and not even the first item was drawn",
            next="is the thread started, and does it iterate over the source?",
        )
    if got["hangs"] and case["kind"] == CLOSED_ELSEWHERE and got["given"] == case["slow"]:
        raise Wrong(
            "a consumer that waits is not let go by close()",
            why="it waited for an item when another thread called close(), and for seconds after that",
            next="get with a timeout, and look between two attempts whether close() was called",
        )
    if (
        got["hangs"]
        and case["kind"] != CLOSED_ELSEWHERE
        and 0 < got["given"] < case["count"]
        and not got["threads_left"]
    ):
        raise Wrong(
            "the thread ended before its source did",
            why=f"{got['given']} of {case['count']} items were drawn, then it ended, with no end or error after them",
            next="what makes it return? A function without `return True` gives None, which is taken for False",
        )
    if got["dropped"]:
        raise Wrong(
            "items were dropped, and the consumer waits for ever",
            why=f"{got['given']} items were drawn and {got['taken']} came; the queue is empty and the thread ended, "
            "so the others were never put, nor what comes after them, the end or an error",
            next="a put that finds the queue full, and gives up, loses what it held: wait for room, and put it then",
        )
    if got["hangs"]:
        raise Wrong(
            "the consumer waits for ever",
            why=f"nothing came for seconds; the source gave {got['given']}, and close() had not been called yet",
            next="how does the consumer learn that the source has ended, or failed? Was an item, or the end, dropped?",
        )


def judge_items(case: Any, got: Any, want: Any) -> None:
    if got["items"] == want["items"]:
        return
    if sorted(map(str, got["items"])) == sorted(map(str, want["items"])):
        raise Wrong(
            "the order changed", why=f"first {got['items'][:5]}", next="first in, first out: one thread, one queue"
        )
    if len(got["items"]) < len(want["items"]) and case["kind"] == FALSE_ITEMS:
        raise Wrong(
            "items that are false were lost",
            why=f"{len(got['items'])} of {len(want['items'])} came; 0 and None are items like any others",
            next="tell the end from an item by something else than the item's value",
        )
    if len(got["items"]) < len(want["items"]) and got["same"] and got["error"]:
        raise Wrong(
            "the exception overtook items",
            why=f"{len(got['items'])} of {len(want['items'])} came before it; the rest was waiting in the queue",
            next="what the source gave before it failed comes first: where does the exception wait for its turn?",
        )
    if len(got["items"]) < len(want["items"]):
        told = "items were lost before the error" if case["error"] else "items were lost"
        raise Wrong(
            told,
            why=f"{len(got['items'])} of {len(want['items'])} came",
            next="what is in the queue when the source ends comes first, and then the end",
        )
    raise Wrong("the items changed", why=f"first {got['items'][:5]}", next="hand on what the source gives, and no more")


def items_taken(count: int) -> str:
    return "1 item was" if count == 1 else f"{count} items were"


def judge_error(case: Any, got: Any, want: Any) -> None:
    if got["error"] == want["error"] and got["message"] == want["message"]:
        if got["same"]:
            return
        raise Wrong(
            "a copy of the exception reached the consumer",
            why=f"another object than the {want['error']} that the source raised: what else was known of it is lost",
            next="hand over the exception itself, and raise that",
        )
    if not got["error"]:
        raise Wrong(
            "the source's exception was swallowed",
            why=f"it raised {want['error']}, and the consumer saw an ordinary end: an epoch on half of the data",
            next="catch it in the thread, hand it over after the items, and raise it in the consumer",
        )
    raise Wrong(
        "another exception reached the consumer",
        why=f"{got['error']}({got['message']!r}) instead of {want['error']}({want['message']!r})",
        next="raise the very exception that the source raised",
    )


def judge_bound(case: Any, got: Any) -> None:
    ahead, depth = got["given"] - got["taken"], case["depth"]
    if case["take"] < 0:
        return
    # One more than the queue holds may be in the thread's hands.
    if ahead > depth + 1:
        raise Wrong(
            "the queue has no bound",
            why=f"the consumer took {got['taken']}, the source gave {got['given']}; depth is {depth}",
            next="a thread that is depth items ahead waits until one is taken",
        )
    if ahead < (1 if case["slow"] else depth) and (case["count"] < 0 or got["given"] < case["count"]):
        raise Wrong(
            "nothing is fetched ahead",
            why=f"the consumer took {got['taken']} and paused; the source gave {got['given']}, depth is {depth}",
            next="the thread runs on its own, from the start, until depth items wait",
        )


def judge_closing(got: Any) -> None:
    when, _, raised = got["refused"].partition(": ")
    if when:
        raise Wrong(
            "close() raised an exception after the end"
            if "end" in when
            else "close() raised an exception when called twice",
            why=f"it raised {raised}",
            next="close() after the end, or a second time, does nothing more and raises nothing; the given `__iter__` "
            "sets the event at the end",
        )
