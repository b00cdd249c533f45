"""The message about a prefetcher that hangs, loses or changes items, hides an error, or goes too far ahead."""

from __future__ import annotations

from typing import Any

from edl_labs.errors import Wrong
from edl_labs.units import counted

# Kinds of cases in which more happens than that some items are taken and close() is called.
FALSE_ITEMS, ERROR_AHEAD, CLOSED_ELSEWHERE = "false items", "error ahead", "closed elsewhere"


def judge_hang(case: Any, got: Any) -> None:
    if got["hangs"] and got["closing"]:
        raise Wrong(
            "your close() never returned: the thread is waiting at a full queue",
            why="close() waits for a thread that is blocked in put(), and nothing reads the queue any more",
            next="does close() set the event before it joins the thread? Call put() with a timeout, so that the "
            "thread can check the event between two attempts",
        )
    if got["hangs"] and not got["made"]:
        raise Wrong(
            "your Prefetcher(...) itself never returned",
            why=f"the constructor drew {got['given']} items: it reads the source in the caller's own thread",
            next="call the thread's start(), which runs the target in a new thread; run() would run it in this one",
        )
    if got["hangs"] and case["count"] and not got["given"]:
        raise Wrong(
            "your code never read the source",
            why="the consumer waits forever, and not even the first item was drawn",
            next="is the thread started, and does it iterate over the source?",
        )
    if got["hangs"] and case["kind"] == CLOSED_ELSEWHERE and got["given"] == case["slow"]:
        raise Wrong(
            "your close() does not wake a consumer that is waiting for an item",
            why="when another thread called close(), the consumer was waiting, and seconds later it still was",
            next="call get() with a timeout, and check between two attempts whether close() was called",
        )
    if (
        got["hangs"]
        and case["kind"] != CLOSED_ELSEWHERE
        and 0 < got["given"] < case["count"]
        and not got["threads_left"]
    ):
        raise Wrong(
            "your thread ended before its source did",
            why=f"it drew {got['given']} of {case['count']} items and ended without passing on an end or an error",
            next="what makes the thread's function end? A helper without `return True` returns None, "
            "which counts as false",
        )
    if got["dropped"]:
        raise Wrong(
            "your code dropped items, and the consumer waits forever",
            why=f"{got['given']} items were drawn, but only {got['taken']} reached the consumer; the queue is empty "
            "and the thread has ended, so it never put the others into the queue, or an end or error after them",
            next="if the queue is full, wait for room and put the item then: a put that gives up loses its item",
        )
    if got["hangs"]:
        raise Wrong(
            "the consumer waits forever",
            why=f"no item arrived for seconds; the source gave {counted(got['given'], 'item')}, and close() had not "
            "been called yet",
            next="how does the consumer learn that the source has ended or failed? Was an item, or the end, dropped?",
        )


def judge_items(case: Any, got: Any, want: Any) -> None:
    if got["items"] == want["items"]:
        return
    if sorted(map(str, got["items"])) == sorted(map(str, want["items"])):
        raise Wrong(
            "your code changed the order of the items",
            why=f"the first items are {got['items'][:5]}",
            next="pass the items on first in, first out: use one thread and one queue",
        )
    if len(got["items"]) < len(want["items"]) and case["kind"] == FALSE_ITEMS:
        raise Wrong(
            "your code lost falsy items",
            why=f"{len(got['items'])} of {len(want['items'])} items arrived; 0 and None are items like any others",
            next="mark the end by something other than the value of an item",
        )
    if len(got["items"]) < len(want["items"]) and got["same"] and got["error"]:
        raise Wrong(
            "in your code, the exception overtook items",
            why=f"{len(got['items'])} of {len(want['items'])} items arrived before the exception; "
            "the rest were still in the "
            "queue",
            next="deliver the items from before the failure first: where does the exception wait for its turn?",
        )
    if len(got["items"]) < len(want["items"]):
        told = "your code lost items before the error" if case["error"] else "your code lost items"
        raise Wrong(
            told,
            why=f"{len(got['items'])} of {len(want['items'])} items arrived",
            next="deliver the items that are in the queue when the source ends, and only then the end",
        )
    raise Wrong(
        "your code changed the items",
        why=f"the first items are {got['items'][:5]}",
        next="pass on exactly the items that the source gives",
    )


def items_taken(count: int) -> str:
    return "1 item was" if count == 1 else f"{count} items were"


def judge_error(case: Any, got: Any, want: Any) -> None:
    if got["error"] == want["error"] and got["message"] == want["message"]:
        if got["same"]:
            return
        raise Wrong(
            "your code passed on a copy of the exception",
            why=f"it is not the same object as the {want['error']} that the source raised, so its other attributes are "
            "lost",
            next="pass on the exception object itself, and raise that",
        )
    if not got["error"]:
        raise Wrong(
            "your code swallowed the source's exception",
            why=f"the source raised {want['error']}, but the consumer saw a normal end: such an "
            "epoch misses part of the data",
            next="catch the exception in the thread, pass it on after the items, and raise it in the consumer",
        )
    raise Wrong(
        "your code passed on a different exception",
        why=f"got {got['error']}({got['message']!r}), expected {want['error']}({want['message']!r})",
        next="raise the same exception object that the source raised",
    )


def judge_bound(case: Any, got: Any) -> None:
    ahead, depth = got["given"] - got["taken"], case["depth"]
    if case["take"] < 0:
        return
    # One more than the queue holds may be in the thread's hands.
    if ahead > depth + 1:
        raise Wrong(
            "your queue has no bound",
            why=f"the consumer took {got['taken']} items, but the source had given {got['given']}; depth is {depth}",
            next="make a thread that is depth items ahead wait until the consumer takes one",
        )
    if ahead < (1 if case["slow"] else depth) and (case["count"] < 0 or got["given"] < case["count"]):
        raise Wrong(
            "your code fetches nothing ahead",
            why=f"the consumer took {got['taken']} items and paused; the source had given {got['given']}, and depth is "
            f"{depth}",
            next="start the thread at once, and let it draw until depth items are waiting",
        )


def judge_closing(got: Any) -> None:
    when, _, raised = got["refused"].partition(": ")
    if when:
        raise Wrong(
            "your close() raised an exception when it was called after the last item"
            if "end" in when
            else "your close() raised an exception when it was called a second time",
            why=f"it raised {raised}",
            next="let close() do nothing, and raise nothing, after the last item or when it is called again; the given "
            "`__iter__` sets the event after the last item",
        )
