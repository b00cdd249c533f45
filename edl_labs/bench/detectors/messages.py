"""What each mistake is called, why it matters and what to do next: one home for these sentences."""

from __future__ import annotations

from edl_labs.bench.results import Mistake

_TEXTS: dict[str, tuple[str, str, str]] = {
    "no_sync": (
        "the work was not finished when the clock was read",
        "the call only queues work on a device and returns; {detail}",
        "drop clock= so that the clock of the device is found, or use one whose synchronize() waits for that device",
    ),
    "sync_each_call": (
        "each call waits for the device",
        "{detail}: the device idles while the host prepares the next call, which real code would overlap",
        "take the synchronisation out of the function; the harness waits at both ends of a block",
    ),
    "item_inside": (
        "each call reads a value back: {detail}",
        "the host must wait until the device has computed it, so that launches no longer run ahead of the work",
        "keep the result on the device inside the function, and read it once, after the timing",
    ),
    "compile_inside": (
        "compiling or tuning happened while the clock ran",
        "{detail}; that is paid once, not in each call",
        "compile before measuring, and give inputs of one shape; for a Timer, run the region a few times before it",
    ),
    "graph_kept": (
        "each call keeps its autograd graph alive",
        "{detail}: memory grows with each call, and the allocator's time with it",
        "keep loss.detach() or loss.item() outside, or run the call under torch.no_grad()",
    ),
    "gradients_accumulate": (
        "gradients pile up from call to call",
        "{detail}: each backward pass adds to what the last one left, which a training step does not do",
        "set gradients to None first: optimizer.zero_grad(set_to_none=True)",
    ),
    "cache_resident": (
        "the inputs stay in the cache from call to call",
        "{detail}; real data arrives from memory",
        "give inputs= a factory, so that they are rotated, or measure with cold=True, if real data will be cold",
    ),
    "constant_inputs": (
        "the inputs hold one constant value: {detail}",
        "constant data can be faster: less power is drawn (a bf16 product of zeros ran 13 % faster on one GPU), and "
        "branches, denormals and sparsity behave unlike real data",
        "measure with data like the real thing, for example torch.randn",
    ),
    "result_unused": (
        "nothing uses the result",
        "{detail}: a compiler may leave such work out, and memory is freed in another order than in real use",
        "return the result from the function",
    ),
    "lazy_result": (
        "the result is not computed yet when the call returns",
        "{detail}: only the making of a recipe was timed",
        "consume it inside the function: list(...), .result(), a call",
    ),
    "allocator_growing": (
        "memory still grows with each call",
        "{detail}: the time of a call then includes fetching new memory, and the run may end out of memory",
        "let go of what the call stores, or reuse one buffer; empty caches and lists between calls",
    ),
    "other_stream": (
        "work runs beside the call, where the caller does not wait for it",
        "{detail}: it overlaps with the next call and with the clock's own work",
        "join it inside the function: current_stream().wait_stream(side), thread.join(), future.result()",
    ),
    "clock_low": (
        "the processor runs below its nominal clock",
        "{detail}: times are longer than on a cool, unconstrained device, and change as it warms up or cools",
        "wait, improve cooling or the power limit, and compare only results taken in the same state",
    ),
    "oversubscribed": (
        "there are more threads than processors",
        "{detail}: threads wait for each other, and times get long and noisy",
        "torch.set_num_threads(n) with at most that many, or OMP_NUM_THREADS before Python starts",
    ),
    "faster_than_light": (
        "this is faster than the machine can be",
        "{detail}",
        "check that the work is what the function does, that it runs on this machine, and that the clock waits for it",
    ),
}
KINDS = tuple(_TEXTS)


def mistake(kind: str, detail: str) -> Mistake:
    """The message of one kind of mistake, with what was seen as its detail.

    >>> mistake("sync_each_call", "its code calls synchronize()").what
    'each call waits for the device'
    """
    what, why, following = _TEXTS[kind]
    return Mistake(kind, what.format(detail=detail), why.format(detail=detail), following)
