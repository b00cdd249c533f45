"""overlap_plan and prefetcher: other right schedules, races, and threads that stay."""

from __future__ import annotations

import queue
import threading

import pytest

from edl_labs.exercises.lab04_data_pipelines import overlap_plan


def test_one_stream_for_all_is_ordered_but_slower(judged):
    def one_stream(gpu, batches, *, nbytes, slots, load, step):
        host = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
        inside, copied = gpu.empty(nbytes), [gpu.Event() for _ in range(slots)]
        for batch in range(batches):
            slot = batch % slots
            if batch >= slots:
                copied[slot].synchronize()
            load(host[slot], batch)
            gpu.copy(inside, host[slot], non_blocking=True)
            copied[slot].record()
            step(inside, batch)
        gpu.synchronize()

    assert "your steps and copies share a stream, so they never overlap" == judged("overlap_plan", feed=one_stream).what


def feeding(
    *,
    to=lambda slot, slots: slot,
    copied_in=None,
    done_in=None,
    waits_for=0,
    awaits=0,
    swapped=False,
    on_host=False,
    early=False,
    blocks=False,
    then=lambda gpu, copies, steps, event: None,
):
    """A schedule with a slip: another buffer or stream, a wait for another step or copy, an event recorded early."""

    def feed(gpu, batches, *, nbytes, slots, load, step):
        host = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
        inside = [gpu.empty(nbytes) for _ in range(slots)]
        copied, done = ([gpu.Event() for _ in range(slots)] for _ in range(2))
        streams = {"copies": gpu.Stream(), "steps": gpu.Stream(), "default": gpu.default_stream()}
        for batch in range(batches):
            slot = batch % slots
            target = inside[to(slot, slots)]
            if batch >= slots:
                copied[slot].synchronize()
                streams["copies"].wait_event(done[(slot + waits_for) % slots])
            load(host[slot], batch)
            pair = (host[slot], target) if swapped else (target, host[slot])
            if early:
                copied[slot].record(streams["copies"])
            gpu.copy(*pair, non_blocking=not blocks, stream=streams["copies"])
            if not early:
                copied[slot].record(streams[copied_in or "copies"])
            then(gpu, streams["copies"], streams["steps"], copied[slot])
            streams["steps"].wait_event(copied[max(0, slot - awaits)])
            with gpu.stream(streams["steps"]):
                step(host[slot] if on_host else target, batch)
            done[slot].record(streams[done_in or "steps"])
        gpu.synchronize()

    return feed


@pytest.mark.parametrize(
    ("slip", "told"),
    [
        ({"to": lambda slot, slots: 0}, "your code copies all batches into the same device buffer"),
        ({"copied_in": "default"}, "the event after the copy of batch 0 was recorded in a different stream"),
        ({"done_in": "copies"}, "the event after the step of batch 0 was recorded in a different stream"),
        ({"waits_for": -1}, "your copies wait for steps that use other buffers"),
        ({"swapped": True}, "your code copies batches from the device to the host"),
        ({"on_host": True}, "your code passes a host buffer to step()"),
        (
            {"early": True},
            "was recorded before the copy of batch 0 was launched, so it does not mark the end of that operation",
        ),
        ({"blocks": True}, "in your program, the host waits for each copy to end"),
        ({"then": lambda gpu, copies, steps, event: event.synchronize()}, "waits for each copy before it loads the"),
        ({"then": lambda gpu, copies, steps, event: copies.synchronize()}, "waits for each copy before it loads the"),
        (
            {"then": lambda gpu, copies, steps, event: gpu.synchronize()},
            "in your program, the host waits for the device in every step",
        ),
        # Near them: the event of another slot, and a host that waits for steps.
        (
            {"awaits": 1},
            "record an event after the first operation, and let a stream or the host wait for it before the second one",
        ),
        (
            {"then": lambda gpu, copies, steps, event: steps.synchronize()},
            "the result is right, but the program is slower than it could be",
        ),
    ],
)
def test_a_slip_of_a_schedule_is_named_by_the_program(judged, slip, told):
    outcome = judged("overlap_plan", feed=feeding(**slip))

    assert told in f"{outcome.what} {outcome.next}"


def test_without_a_slip_the_schedule_passes(judged):
    assert "passed" == judged("overlap_plan", feed=feeding()).state


def test_waiting_on_the_host_for_the_step_before_the_last_passes_where_two_slots_are_enough(judged):
    def with_wait_stream(gpu, batches, *, nbytes, slots, load, step):
        host = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
        inside = [gpu.empty(nbytes) for _ in range(slots)]
        streams, copied = [gpu.Stream() for _ in range(slots)], [gpu.Event() for _ in range(slots)]
        steps, done = gpu.Stream(), [gpu.Event() for _ in range(slots)]
        for batch in range(batches):
            slot = batch % slots
            if batch >= slots:
                copied[slot].synchronize()
                streams[slot].wait_event(done[slot])
            load(host[slot], batch)
            gpu.copy(inside[slot], host[slot], non_blocking=True, stream=streams[slot])
            copied[slot].record(streams[slot])
            steps.wait_stream(streams[slot])
            with gpu.stream(steps):
                step(inside[slot], batch)
                done[slot].record()
        gpu.synchronize()

    assert "passed" == judged("overlap_plan", feed=with_wait_stream).state


@pytest.mark.parametrize("seed", range(10))
def test_a_host_that_waits_for_the_step_of_a_slot_is_too_slow_whatever_the_seed(judged, seed):
    def host_waits(gpu, batches, *, nbytes, slots, load, step):
        host = [gpu.host_empty(nbytes, pin_memory=True) for _ in range(slots)]
        inside = [gpu.empty(nbytes) for _ in range(slots)]
        copied, done = ([gpu.Event() for _ in range(slots)] for _ in range(2))
        copies = gpu.Stream()
        for batch in range(batches):
            slot = batch % slots
            if batch >= slots:
                done[slot].synchronize()
            load(host[slot], batch)
            with gpu.stream(copies):
                gpu.copy(inside[slot], host[slot], non_blocking=True)
                copied[slot].record()
            gpu.current_stream().wait_event(copied[slot])
            step(inside[slot], batch)
            done[slot].record()
        gpu.synchronize()

    assert (
        "the result is right, but the program is slower than it could be"
        == judged("overlap_plan", seed=seed, feed=host_waits).what
    )


def test_work_of_ones_own_and_batches_out_of_order_are_refused(judged, solution):
    def backwards(gpu, batches, *, load, step, **how):
        last = batches - 1
        solution["feed"](gpu, batches, load=lambda b, i: load(b, last - i), step=lambda b, i: step(b, last - i), **how)

    def nothing(gpu, batches, **how):
        pass

    told = "your code does not call load() and step() once for each batch, in order"

    assert told == judged("overlap_plan", feed=backwards).what
    assert told == judged("overlap_plan", feed=nothing).what


def test_a_step_on_anothers_batch_is_refused(judged):
    def mixed_up(gpu, batches, *, nbytes, slots, load, step):
        host, inside = gpu.host_empty(nbytes, pin_memory=True), gpu.empty(nbytes)
        for batch in range(batches):
            load(host, batch)
            if batch % 2 == 0:
                gpu.copy(inside, host)
            step(inside, batch)
        gpu.synchronize()

    assert "in your program, a step works on the wrong batch" == judged("overlap_plan", feed=mixed_up).what


def test_results_read_too_early_are_a_race(judged, solution):
    def leaves_at_once(gpu, batches, **how):
        wait, gpu.synchronize = gpu.synchronize, lambda: None
        solution["feed"](gpu, batches, **how)
        gpu.synchronize = wait

    assert (
        "in your program, the results are read "
        "before the last step is done" == judged("overlap_plan", feed=leaves_at_once).what
    )


@pytest.mark.parametrize("seed", range(12))
def test_the_reference_comes_within_the_tolerance_and_not_below_the_ideal(solution, exercises, seed):
    from edl_labs.exercises.recorded_programs import replayed

    spec = exercises["overlap_plan"].spec
    for case in exercises["overlap_plan"].draw_cases(seed):
        got = spec.probe(type("Student", (), {"feed": staticmethod(solution["feed"])}), dict(case.given))
        spent_s = replayed(got["program"], overlap_plan.machine_of(case)).makespan_s

        assert overlap_plan.ideal_s(case) <= spent_s <= 1.04 * overlap_plan.ideal_s(case)


@pytest.mark.slow
def test_a_prefetcher_that_counts_with_a_semaphore_passes(judged):
    class Counted:
        def __init__(self, source, *, depth):
            self.things, self.room, self.over = queue.SimpleQueue(), threading.Semaphore(depth), False
            self.thread = threading.Thread(target=self.run, args=(source,))
            self.thread.start()

        def run(self, source):
            try:
                for item in source:
                    self.room.acquire()
                    if self.over:
                        return
                    self.things.put((item, None))
                self.things.put((None, StopIteration()))
            except BaseException as error:
                self.things.put((None, error))

        def __iter__(self):
            return self

        def __next__(self):
            item, error = self.things.get()
            if error is not None:
                raise error
            self.room.release()
            return item

        def close(self):
            self.over = True
            self.room.release()
            self.things.put((None, StopIteration()))  # a consumer that waits for an item is let go
            self.thread.join()

    assert "passed" == judged("prefetcher", Prefetcher=Counted).state


@pytest.mark.slow
def test_a_prefetcher_that_draws_everything_first_is_told_that_it_has_no_bound(judged):
    class Greedy:
        def __init__(self, source, *, depth):
            self.items = []
            try:
                self.items += [(item, None) for item in source]
            except Exception as error:
                self.items.append((None, error))

        def __iter__(self):
            for item, error in self.items:
                if error is not None:
                    raise error
                yield item

        def close(self):
            pass

    outcome = judged("prefetcher", Prefetcher=Greedy)

    assert 0 == outcome.points


@pytest.mark.slow
def test_lost_and_reordered_items_are_told_apart(judged, solution):
    class Loses(solution["Prefetcher"]):
        def __iter__(self):
            return (item for number, item in enumerate(super().__iter__()) if number % 3)

    class Sorts(solution["Prefetcher"]):
        def __iter__(self):
            pair = []
            for item in super().__iter__():
                pair.insert(0, item)
                if len(pair) == 2:
                    yield from pair
                    pair = []
            yield from pair

    assert judged("prefetcher", Prefetcher=Loses).what.startswith("items ")
    assert "your code changed the order of the items" == judged("prefetcher", Prefetcher=Sorts).what


@pytest.mark.slow
def test_no_thread_outlives_a_judgement(judged):
    judged("prefetcher")

    assert [] == [t.name for t in threading.enumerate() if t.name.startswith("consumer of the check")]
