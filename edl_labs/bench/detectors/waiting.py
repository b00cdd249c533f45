"""Waiting at the wrong place: not at all, in each call, or for something that nobody waits for."""

from __future__ import annotations

import threading
from typing import Any

from edl_labs.bench.detectors.called_code import calls_by_name
from edl_labs.bench.detectors.detector import Detector
from edl_labs.bench.detectors.other_threads import works_on
from edl_labs.clock import is_asynchronous


class NoSync(Detector):
    """The clock is read while the device still works."""

    kind = "no_sync"
    what = "the work was not finished when the clock was read"
    why = "the call only queues work on a device and returns; {detail}"
    next = "drop clock= so that the clock of the device is found, or use one whose synchronize() waits for that device"

    def after_call(self, result: Any) -> str:
        look = self.look
        pending = look.torch.pending() if look.torch and not is_asynchronous(look.clock) else ""
        return pending or (look.virtual.undrained if look.virtual else "")


class SyncEachCall(Detector):
    """The function itself waits for the device."""

    kind = "sync_each_call"
    what = "each call waits for the device"
    why = "{detail}: the device idles while the host prepares the next call, which real code would overlap"
    next = "take the synchronisation out of the function; the harness waits at both ends of a block"

    def before(self) -> str:
        seen = self.look.virtual is None and calls_by_name((self.look.fn,), "synchronize")
        return "its code calls synchronize()" if seen else ""

    def after_call(self, result: Any) -> str:
        look = self.look
        waits = next(iter(look.torch.waits), "") if look.torch else ""
        return waits or (look.virtual.waits if look.virtual else "")


class ItemInside(Detector):
    """The function reads a value back from the device."""

    kind = "item_inside"
    what = "each call reads a value back: {detail}"
    why = "the host must wait until the device has computed it, so that launches no longer run ahead of the work"
    next = "keep the result on the device inside the function, and read it once, after the timing"

    def after_call(self, result: Any) -> str:
        look = self.look
        reads = next(iter(look.torch.reads), "") if look.torch else ""
        return reads or (look.virtual.reads if look.virtual else "")


class OtherStream(Detector):
    """A thread or a stream works on after the call, and nothing waits for it."""

    kind = "other_stream"
    what = "work runs beside the call, where the caller does not wait for it"
    why = "{detail}: it overlaps with the next call and with the clock's own work"
    next = "join it inside the function: current_stream().wait_stream(side), thread.join(), future.result()"

    def after_call(self, result: Any) -> str:
        look = self.look
        threads = works_on(look.threads, look.computing) if threading.active_count() > 1 else ""
        return threads or self._stream() or (look.virtual.apart if look.virtual else "")

    def _stream(self) -> str:
        watch = self.look.torch
        apart = watch is not None and len(watch.streams) > 1 and not watch.joined
        return "kernels ran on a second stream, and the current stream does not wait for it" if apart else ""
