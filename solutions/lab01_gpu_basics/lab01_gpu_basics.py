# %% [markdown]
# # GPU basics: two clocks in one machine
#
# A GPU is a second computer with its own queue, its own memory and its own clock. Most wrong measurements in deep
# learning come from forgetting one of the three.
#
# After this lab you can
#
# * say when a line of Python returns and when its work is done, and time both without fooling yourself;
# * name what is wrong with somebody else's timer;
# * compute a chip's peak from its clock, and refuse a result that is faster than light;
# * predict the steps in a matrix product's speed from tiles and waves;
# * say how long a transfer takes, and spot an error of a factor of eight or ten in a table.
#
# **About 198 minutes (estimated)**, in two sittings: the first ends with section 3. Practice carries no points. It
# takes another 55 minutes (estimated), and its sections can be done in any order. There you count the work that tiles
# waste, and overlap a transfer with computation.
#
# | exercise | section | minutes |
# |---|---|---|
# | `finish_times` | 2 | 31 |
# | `honest_timer` | 3 | 33 |
# | `broken_timers` | 4 | 33 |
# | `why_forward_only` | 5 | 26 |
# | `peak_from_clock` | 6 | 14 |
# | `faster_than_light` | 6 | 20 |
# | `wave_quantization` | 7 | 22 |
# | `petabyte` | 8 | 19 |
#
# | practice | `tile_quantization` | `transfer_overlap` |
# |---|---|---|
# | section | 9 | 10 |
# | minutes | 18 | 37 |
#
# No GPU is needed. If this machine has one, the cells that benefit from it use it; otherwise they show figures and name
# their source. In each section, *write your prediction down* before you run the next cell. If there is a box, enter a
# number, with or without its unit, and press Enter. Only then does the result appear next to it.
#
# `check("finish_times")` says what is wrong and shows the first wrong case, with what your code returned;
# `case("finish_times")` gives that case's inputs as Python values, so that you can try your code on them;
# `hint("finish_times")` gives you a hint.
#
# Lecture slides are cited by their deck: [001] course introduction, [002] software perspective, [003] performance and
# profiling.

# %% setup
try:
    from edl_labs import Progress, case, check, hint  # noqa: F401
    from edl_labs.ui.in_torch import in_torch
    from edl_labs.ui.requires_solution import requires_solution
    from edl_labs.ui.predictions import Instead, predict, reveal_prediction
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "edl_labs is not installed in this kernel; labs/README.md says how"
    ) from error

# %% parameters
launches = 1000
copy_mebibytes = 256

# %% given
import math

from edl_labs import units
from edl_labs.clock import clock_for
from edl_labs.device import best_device, describe
from edl_labs.virtual import VirtualGPU, VirtualMachine

# %%
Progress("lab01_gpu_basics")

# %% [markdown]
# ## 1. Three toasts
#
# Deck [002] opens with breakfast. A pan holds two slices of toast, and one side of a slice takes one minute. You want
# three slices, toasted on both sides. Two slices together take two minutes, and the third takes two more: four minutes.
#
# **Predict:** can it be done faster? How fast at best, and why not faster still?

# %%
predict("pan", "Three slices, toasted on both sides, take at least", unit="min")

# %%
slices, sides, places = 3, 2, 2
pairs = (slices + places - 1) // places
with reveal_prediction("pan") as truth:
    print(f"two slices at a time, both sides: {sides * pairs} min")
    print(f"a pan that is never half empty: {slices * sides / places:.0f} min")
    print("fry A and B, then A's other side with C, then B's and C's other sides")
    truth(60 * slices * sides / places)

# %% [markdown]
# If the pan is full every minute, no plan can be faster. In the four-minute plan it was half empty for two minutes, and
# *a half-empty pan costs a whole minute*.
#
# The pan is a GPU, the slices are your data. Keep two questions in mind for the rest of this lab: **is the pan ever
# empty?** (section 2: the device waits for the host; section 10, practice: it waits for data) and **is it ever half
# empty?** (section 7: the work does not divide evenly among the places).

# %% [markdown]
# ## 2. The host does not wait
#
# > **kernel**: a function that the GPU runs, with many threads at once. **launch**: the call that puts it into the
# > queue.
#
# Python runs on the *host*. `y = model(x)` does not compute `y`: it puts kernels into the device's queue and returns.
# Such a queue is called a *stream*: it runs its operations one after another, in order. Meanwhile the host continues
# until something makes it wait: a synchronisation, a blocking copy, or `y.item()`, which needs the number now.
#
# **Predict:** launching takes the host 5 µs, and the kernel runs for 200 µs. You launch it ten times. When does the
# host return from the tenth launch? When is the device done? What are both answers if the kernel runs for 2 µs?

# %%
predict("host_back", "With kernels of 200 µs, the host is free after", unit="µs")
predict("device_done", "With kernels of 200 µs, the device is done after", unit="µs")
predict("short_done", "With kernels of 2 µs, the device is done after", unit="µs")

# %% [markdown]
# Now write these rules as code. A program is a list of operations. Each is a pair, a name and a duration in seconds:
#
# | operation | the host | the device |
# |---|---|---|
# | `("launch", s)` | is busy for `launch_s`, then continues | runs it for `s`, once it is launched and its turn comes |
# | `("copy", s)` | is busy for `launch_s`, then continues | copies for `s`, in the same queue |
# | `("blocking copy", s)` | is busy for `launch_s`, then waits until the copy is done | copies for `s`, in this queue |
# | `("host", s)` | computes for `s` itself | is not affected |
# | `("sync", 0.0)` | waits until the device has finished everything in its queue | is not affected |
#
# `finish_times(program, launch_s=...)` returns `(host_s, device_s)`: when the host has finished the program, and when
# the device has finished its last operation (0.0 if it had none). The check calls your function for every prefix of a
# program, so it can say which operation goes wrong first.


# %% solve="finish_times"
def finish_times(program, *, launch_s):
    """(host_s, device_s): when the host and the device are done with `program`."""
    ### BEGIN SOLUTION
    host_s = device_s = 0.0
    for name, duration_s in program:
        if name == "host":
            host_s += duration_s
        elif name == "sync":
            host_s = max(host_s, device_s)
        else:
            host_s += launch_s
            device_s = max(host_s, device_s) + duration_s
            host_s = device_s if name == "blocking copy" else host_s
    return host_s, device_s
    ### END SOLUTION


# %% check="finish_times"
check("finish_times")

# %% [markdown]
# Now compare your predictions with what your own function returns.

# %%
asked = ("host_back", "device_done", "short_done")
with requires_solution("finish_times"), reveal_prediction(*asked) as truth:
    long = finish_times([("launch", 200e-6)] * 10, launch_s=5e-6)
    short = finish_times([("launch", 2e-6)] * 10, launch_s=5e-6)
    for name, times in (("200 µs", long), ("2 µs", short)):
        host, device = map(units.seconds, times)
        print(f"modelled, kernels of {name}: host {host}, device {device}")
    print("for long kernels, a timer that does not wait is forty times too fast")
    truth(host_back=long[0], device_done=long[1], short_done=short[1])

# %% [markdown]
# A timer that reads its clock as soon as the launches return measures launches, however long the kernel runs. With
# short kernels its result is nearly right, but it measures Python: the device is idle for more than half of the time.

# %% [markdown]
# Now a real kernel: a product of two 2048 × 2048 matrices, launched many times. **Predict** before you run it: what
# time per call does a loop report if it reads the clock at once, and what time if it waits for the device first? (If
# you have no CUDA GPU, you see a recording of kernels of 200 µs on an NVIDIA H200. There, a launch from Python takes
# longer than the 5 µs above.)

# %%
predict(
    "at_once",
    "If you read the clock right after many launches, a call seems to take",
    unit="µs",
)
predict("drained", "After waiting for the device, a call takes", unit="µs")


# %%
def on_this_gpu(calls):
    """Seconds per matrix product on this machine's
    GPU, without and with waiting for the device."""
    import torch

    clock, a = clock_for("cuda"), torch.randn(2048, 2048, device="cuda")
    a @ a
    clock.synchronize()
    start_s = clock.now_s()
    for _ in range(calls):
        a @ a
    at_once_s = clock.now_s() - start_s
    clock.synchronize()
    return at_once_s / calls, (clock.now_s() - start_s) / calls


# %%
from edl_labs.hardware import recordings

if best_device() == "cuda":
    where = f"measured on {describe().device_name}"
    per_call_s = {launches: on_this_gpu(launches)}
else:
    recording = recordings.find("async_launch")
    where, (at_once, drained) = recording.title, recording.series
    runs = zip(recording.x, at_once.values, drained.values, strict=True)
    per_call_s = {count: (early / count, late / count) for count, early, late in runs}

# %%
with reveal_prediction("at_once", "drained") as truth:
    print(where)
    for count, (at_once_s, drained_s) in per_call_s.items():
        print(
            f"{count:>4} launches: read at once {units.seconds(at_once_s)} per call, "
            f"after waiting {units.seconds(drained_s)} per call"
        )
    truth(at_once=at_once_s, drained=drained_s)

# %% [markdown]
# The first number is what Python and the driver need for a call; once the queue is full, the host also waits for room
# in it. Only the second number measures the product. Deck [003] shows a training loop with three calls of `time.time()`
# around loading and training, and no synchronisation. On a GPU, its "training time" is a number of the first kind. The
# device's time appears in whichever line happens to wait.

# %% [markdown]
# ## 3. A timer that does not lie
#
# From here on you drive a `VirtualGPU`: a model of a host and a GPU with its own exact clock. Its names are those of
# `torch.cuda` (`Stream`, `Event`, `synchronize`, …), and the same code always takes the same time, on any computer. Its
# kernels compute nothing; you state how long each of them takes. First, does it agree with your `finish_times`?


# %%
def on_the_model(program):
    """When host and device of a VirtualGPU are done with a program."""
    gpu = VirtualGPU(VirtualMachine(launch_overhead_s=5e-6))
    for operation, s in program:
        if operation == "launch":
            gpu.launch("kernel", duration_s=s)
        elif operation == "host":
            gpu.host_work(s)
        else:
            gpu.synchronize()
    kernels = [span for span in gpu.timeline.spans if span.kind == "kernel"]
    return gpu.now_s(), max(kernel.end_s for kernel in kernels)


# %%
program = [("launch", 40e-6), ("host", 3e-6), ("launch", 40e-6)]
program += [("sync", 0.0), ("launch", 2e-6)]
with requires_solution("finish_times"):
    print("yours:", *map(units.seconds, finish_times(program, launch_s=5e-6)))
    print("model:", *map(units.seconds, on_the_model(program)))

# %% [markdown]
# Drag the sliders (in JupyterLab; a printed page shows three settings instead). The program copies 16 MB to the device
# in chunks, runs a kernel on each chunk, and copies the result back, all in one stream. **Predict:** what limits the
# speed when kernels are long, when they are short, and when chunks are small? The picture has a row for the host and,
# below it, one each for copies in, kernels and copies out. Is there any setting at which two of these three lower rows
# are busy at the same time?

# %%
predict("small_chunks", "With small chunks, the slowest is")
predict(
    "rows_at_once", "Two lower rows are busy at once", choices=("somewhere", "nowhere")
)

# %%
from edl_labs.ui.timeline_widget import TimelineExplorer

TimelineExplorer("A100", total_bytes=16_000_000)

# %%
with reveal_prediction("small_chunks", "rows_at_once") as truth:
    print("In one stream the rows take turns at every setting, so their times add up.")
    print(
        "With small chunks the host, which issues all calls, is slower than the rows."
    )
    truth(rows_at_once="nowhere")

# %% [markdown]
# In section 10 (practice) you keep the rows busy at the same time.
#
# Now write the timer. `time_device(fn, gpu)` returns the seconds that one call of `fn` takes **in the steady state**,
# when it is called over and over: the launch or the kernel, whichever is slower. You have `gpu.clock`, which is like
# every clock in this course: `clock.now_s()` reads it, `clock.synchronize()` waits for the device, `clock.resolution_s`
# is its step, and `clock.read_cost_s` is the time that a reading takes. The machine starts cold: nothing has run on it
# yet.
#
# The result must be accurate to within 3 %, for kernels from 5 µs to 5 ms, on clocks with steps from 1 ns to 0.1 ms.
# Apart from setting up and loading, your timer may use one second of the machine's time, or twenty times what a careful
# timer needs, if that is more. It may synchronise 40 times, or once for every four calls, if that is more. The check
# replays your program on its own VirtualGPU: **your result must follow from two of your clock readings**. **Predict:**
# with a clock that steps every 0.1 ms, how many calls of 5 µs must run between two readings?

# %%
predict("calls_needed", "Between two readings, there must be at least", unit="calls")


# %% solve="honest_timer"
def time_device(fn, gpu):
    """Seconds per call of `fn` on `gpu`, in the steady state."""
    ### BEGIN SOLUTION
    clock = gpu.clock

    def run_s(calls):
        began_s = clock.now_s()
        for _ in range(calls):
            fn()
        clock.synchronize()
        return clock.now_s() - began_s

    calls = 1
    # The first call makes a context and loads the kernel. Each run leaves the device
    # drained for the next.
    run_s(calls)
    ends_s = run_s(calls)  # what is paid once is at most a run of one call
    while 0.02 * (elapsed_s := run_s(calls)) < clock.resolution_s + ends_s:
        calls += calls
    return elapsed_s / calls
    ### END SOLUTION


# %% check="honest_timer"
check("honest_timer")

# %%
with reveal_prediction("calls_needed") as truth:
    tick_s, call_s, allowed = 1e-4, 5e-6, 0.03
    run_s = tick_s / allowed
    print(
        f"one step, {units.seconds(tick_s)}, is {allowed:.0%} of {units.seconds(run_s)}"
    )
    print("after ten calls, the clock would have shown 0 or 10 µs per call")
    truth(run_s / call_s)

# %% [markdown]
# Your timer needs only a clock, so it runs unchanged on a real one:

# %%
from types import SimpleNamespace

with requires_solution("honest_timer"):
    if best_device() == "cuda":
        import torch

        x = torch.randn(1 << 20, device="cuda")
        real = SimpleNamespace(clock=clock_for("cuda"))
        relu_s = time_device(lambda: torch.relu(x), real)
        print("measured here: relu of a million numbers:", units.seconds(relu_s))
    else:
        print("No CUDA GPU here: see the model below instead.")

# %%
with requires_solution("honest_timer"):
    gpu = VirtualGPU("H200")
    relu_s = time_device(lambda: gpu.launch("relu", moved_bytes=2 * 4 << 20), gpu)
    print(
        "modelled H200: relu of a million numbers:", units.seconds(relu_s), "per call"
    )

# %% [markdown]
# Moving eight megabytes at 4.8 TB/s would take 1.7 µs, but each call takes as long as its launch. A faster GPU does not
# speed up a kernel this small. Remember this when a profile shows thousands of them.
#
# Your timer gives one number and does not say how certain it is. `measure(fn)`, which the later labs use, makes many
# runs and gives an interval; `compare` runs two functions alternately, so that other work on the machine slows both
# equally, and it gives a verdict. `measure` and `compare` work with any clock; here they use this processor's clock.
# **Predict:** which adds the numbers from 0 to 999 faster, a loop or `sum`, and by what factor?

# %%
predict("sum_gain", "`sum` is faster than the loop by a factor of", unit="times")

# %%
from edl_labs import compare, measure


def loop():
    total = 0
    for number in range(1000):
        total += number
    return total


# %%
with requires_solution("honest_timer"):
    this_processor = SimpleNamespace(clock=clock_for("cpu"))
    loop_s = time_device(loop, this_processor)
    print("your timer:", units.seconds(loop_s), "per call")
    print(measure(loop, budget_s=0.1, name="measure"))

# %%
with reveal_prediction("sum_gain") as truth:
    found = compare({"loop": loop, "sum": lambda: sum(range(1000))}, budget_s=0.1)
    print(found)
    is_known = found.verdict != "inconclusive"
    known = Instead(2.0, "as on a quiet laptop")
    truth(found.speedup if is_known else known)

# %% [markdown]
# Run the cell with your timer again: do the two intervals of `measure` overlap? In the second run, the number of your
# own timer may be outside both intervals.
#
# Deck [001] names two more timers: `timeit`, with the remark "mind the synchronization", and `torch.utils.benchmark`.
# **Predict:** which of the two would wait for a GPU?

# %%
predict(
    "waits",
    "The timers that wait for a GPU:",
    choices=("both", "timeit", "torch", "none"),
)

# %%
import timeit

from torch.utils.benchmark import Timer

with requires_solution("honest_timer"):
    best_s = min(timeit.repeat(loop, number=1000, repeat=5)) / 1000
    print("timeit, the best of five:", units.seconds(best_s), "per call")
    timer = Timer("loop()", globals={"loop": loop})
    print(
        "torch.utils.benchmark, median:",
        units.seconds(timer.blocked_autorange(min_run_time=0.1).median),
        "per call",
    )

# %%
with reveal_prediction("waits") as truth:
    print("timeit does not know about devices; torch's Timer waits around each block")
    truth("torch")

# %% [markdown]
# Both tools time one function at a time. If other work on the machine starts in between, it becomes part of the
# measured difference. The deck says that "randomization" is often necessary: `compare` uses a random order.

# %% [markdown]
# ## 4. Six ways to lie
#
# You get a timer's report, but not its code. The timer has one of six faults, or none:
#
# | fault | what the timer does |
# |---|---|
# | `"no sync"` | reads the clock without waiting for the device |
# | `"sync per call"` | waits after every call |
# | `"cold first call"` | never warms up |
# | `"wrong stream"` | waits for a stream other than the one its kernels run in |
# | `"cache-warm"` | uses the same data in every call, so they come from the L2 cache (40 MB on an A100) |
# | `"clock too coarse"` | has a clock whose step is longer than a call (a fault even if long runs are right) |
# | `"none"` | has no fault |
#
# A report is a dict: `calls` (the run lengths 1, 4, 16 and 64) and `seconds_per_call` (what the timer said for each),
# `true_seconds_per_call` (for data that are not in the cache; always longer than a launch), `launch_s`,
# `clock_resolution_s`, and `timeline`. The timeline shows a run of four calls, from the timer's first reading on. It is
# a list of spans, in no particular order, with `row` ("host", "stream 0", …), `kind` ("call", "work" and "wait" on the
# host; "kernel", "copy"), `name`, `start_s` and `end_s`. On the host, a launch has the kernel's name; other names are
# `"read clock"`, `"stream.synchronize"`, and one that begins with `"load"`. A real timeline also contains work that is
# not timed. A loader's `"copy"` runs in a stream of its own, at the same time as the timed `"kernel"`s. After the
# timer's last `"read clock"`, the script checks its results with kernels named `"check"`. With the next cell you can
# generate reports of your own:


# %% given
def report_of(timer, machine, *, true_s):
    """What `timer(gpu, calls)` reports on fresh GPUs,
    in the form that name_fault receives."""
    gpus = {calls: VirtualGPU(machine) for calls in (1, 4, 16, 64)}
    said = {calls: timer(gpu, calls) for calls, gpu in gpus.items()}
    return {
        "calls": list(said),
        "seconds_per_call": list(said.values()),
        "true_seconds_per_call": true_s,
        "launch_s": machine.launch_overhead_s,
        "clock_resolution_s": machine.clock_resolution_s,
        "timeline": [vars(span) for span in gpus[4].timeline.spans],
    }


# %%
def hasty(gpu, calls):
    """A timer with a fault. Which?"""
    start_s = gpu.now_s()
    for _ in range(calls):
        gpu.launch("kernel", duration_s=80e-6)
    return (gpu.now_s() - start_s) / calls


# %%
machine = VirtualMachine(
    launch_overhead_s=5e-6, module_load_s=9e-4, clock_read_cost_s=1e-7
)
example = report_of(hasty, machine, true_s=80e-6)
for calls, said_s in zip(example["calls"], example["seconds_per_call"], strict=True):
    print(f"modelled, {calls:>3} calls: {units.seconds(said_s)} per call")
for span in example["timeline"]:
    print(
        f"{span['row']:>9} {span['kind']:>7} {span['name']:<12}",
        units.seconds(span["start_s"]),
    )

# %% [markdown]
# This is what a wait for the wrong stream looks like. Nothing runs in that stream, so the wait is over at once, and the
# clock is read while three of the four kernels have not even begun. (A wait that is over at once, or a free clock
# reading, leaves no span. In graded reports, readings take time and every synchronisation has a `"wait"`.)

# %%
from edl_labs.plots import style
from edl_labs.plots.timeline_picture import draw_timeline

warm = VirtualMachine(launch_overhead_s=5e-6, module_load_s=0.0).warm()
two_streams = VirtualGPU(warm)
other_stream, begin_s = two_streams.Stream(), two_streams.now_s()
for _ in range(4):
    two_streams.launch("kernel", duration_s=80e-6)
other_stream.synchronize()
told_a_call = units.seconds((two_streams.now_s() - begin_s) / 4)  # modelled

# %%
figure, axes = style.subplots(figsize=(9, 2.2))
title = f"4 calls of 80 µs; reported: {told_a_call} per call (modelled)"
axes = draw_timeline(axes, two_streams.timeline, title=title)

# %% [markdown]
# (`hasty` has two faults at once; the reports that you get have one at most.) For each fault, ask how the reported time
# changes with the number of calls. Two faults may give the same time per call for one number of calls, but never for
# two. **Predict:** with which single fault does each longer run report less time per call, but never less than the true
# time?

# %%
faults = ("no sync", "sync per call", "cold first call", "wrong stream", "cache-warm")
predict("falls", "The reported time falls towards the true time with", choices=faults)

# %% [markdown]
# Write `name_fault(report)`, which returns one of the seven names. Guessing earns nothing: marks are corrected for
# chance. The check below has a simple report of each fault. Most graded reports come from more unusual machines, so
# look for the cause of the fault, not for a report that looks similar.


# %% solve="broken_timers"
def name_fault(report):
    """The fault of the timer that made `report`, one of the seven names."""
    ### BEGIN SOLUTION
    true_s, spans = report["true_seconds_per_call"], report["timeline"]
    read_s = max(span["start_s"] for span in spans if span["name"] == "read clock")
    before = [span for span in spans if span["start_s"] < read_s]
    waits = [span for span in before if span["kind"] == "wait"]
    if report["clock_resolution_s"] > true_s:
        return "clock too coarse"
    if not waits:
        return "no sync"
    if any(span["name"] == "kernel" and span["end_s"] > read_s for span in spans):
        return "wrong stream"
    if len(waits) == 4:  # one a call
        return "sync per call"
    if min(report["seconds_per_call"]) < true_s:
        return "cache-warm"
    is_cold = any(span["name"].startswith("load") for span in before)
    return "cold first call" if is_cold else "none"
    ### END SOLUTION


# %% check="broken_timers"
check("broken_timers")

# %%
with reveal_prediction("falls") as truth:
    print("in a longer run, the first call's cost is shared by more calls")
    truth("cold first call")

# %% [markdown]
# Three faults make code look *faster* than it is: a missing wait, a wait for the wrong stream, and a warm cache. Those
# are the ones that get published.

# %% [markdown]
# ## 5. What does a measured speed-up mean?
#
# Deck [001] times one convolution (64 filters of 3×3, batch 32, 64 channels, 64×64 pixels, FP32) with and without
# `torch.backends.cudnn.benchmark = True`:
#
# | | off | on | speed-up |
# |---|---|---|---|
# | forward | 1430 µs | 840 µs | 1.70 |
# | forward + backward | 2870 µs | 2260 µs | 1.27 |
#
# **Predict:** how much faster did the backward pass get? Write a number down before you subtract.

# %%
predict("backward_gain", "The backward pass became faster by a factor of", unit="times")

# %%
off_us, on_us = 2870 - 1430, 2260 - 840
with reveal_prediction("backward_gain") as truth:
    gain = off_us / on_us
    print(f"backward only: {off_us} µs -> {on_us} µs, a speed-up of {gain:.3f}")
    truth(gain)

# %% [markdown] explain="why_forward_only"
# **Explain (read by your instructor).** The setting tries several algorithms and keeps the fastest. From these two
# rows, what can you conclude about the backward pass, how sure can you be, and what would you measure next before you
# advise a colleague to switch the setting on? Four to eight sentences. Name at least one reason why the subtraction
# itself may mislead.

# %% [markdown]
# ## 6. The speed of light
#
# > **SM** (streaming multiprocessor): one of the units that a GPU is made of; it runs blocks of threads. **tensor
# > core**: the part of an SM that multiplies small matrices of low-precision numbers. **FLOP**: one addition or
# > multiplication.
#
# Deck [001] shows two chips side by side. A CPU spends most of its area on a few large cores, with caches and
# prediction that make one thread fast. A GPU spends it on many small arithmetic units: each thread is slow, and while
# one group of threads (a *warp*) waits for memory, an SM runs another group. Memory grew too: a Voodoo2 of 1998 had 12
# MB, a GB200 has 186 GB, 15 500 times as much.
#
# Before asking *how fast is my code?* ask *how fast can it be?* No kernel can take less than either of two times: the
# bytes that it must move divided by the memory's bandwidth, and the operations that it must do divided by the chip's
# peak. A peak can be computed. Deck [002] lists how many multiply-adds one SM does per clock:
#
# | | fp64 | fp32 | tf32 | fp16 | int8 | int4 | int1 |
# |---|---|---|---|---|---|---|---|
# | Volta, CUDA cores | 32 | 64 | | 128 | 256 | | |
# | Volta, tensor cores | | | | 512 | | | |
# | Turing, CUDA cores | 2 | 64 | | 128 | 256 | | |
# | Turing, tensor cores | | | | 512 | 1024 | 2048 | 8192 |
# | A100, CUDA cores | 32 | 64 | | 256 | 256 | | |
# | A100, tensor cores | 64 | | 512 | 1024 | 2048 | 4096 | 16384 |
# | A100, tensor cores, sparse | | | 1024 | 2048 | 4096 | 8192 | |
#
# **Predict:** an A100 has 108 SMs at 1.41 GHz. What is its FP16 peak?

# %%
predict("a100_peak", "According to the table, an A100's FP16 peak is", unit="TFLOP/s")

# %% [markdown]
# Write `peak_flop_per_s(row, dtype, sm_count=..., clock_mhz=...)`. A `row` is one architecture, `{"cuda": {"fp32": 64,
# ...}, "tensor": {"fp16": 512, ...}}`; both keys are always present, but a unit may be empty (`{}`). Use the faster
# unit that has the dtype, and return 0.0 if neither has it. `nvidia-smi` prints clocks in MHz, so that is what you get;
# return FLOP/s.


# %% solve="peak_from_clock"
def peak_flop_per_s(row, dtype, *, sm_count, clock_mhz):
    """Peak FLOP/s for `dtype` on the faster unit of `row`; 0.0 when no unit has it."""
    ### BEGIN SOLUTION
    fma_per_clock = max(unit.get(dtype, 0) for unit in row.values())
    return float(sm_count * fma_per_clock * 2 * clock_mhz * 1e6)
    ### END SOLUTION


# %% check="peak_from_clock"
check("peak_from_clock")

# %%
a100_row = {"cuda": {"fp32": 64, "fp16": 256}, "tensor": {"fp16": 1024}}
with requires_solution("peak_from_clock"), reveal_prediction("a100_peak") as truth:
    peak = peak_flop_per_s(a100_row, "fp16", sm_count=108, clock_mhz=1410)
    print(
        units.flop_rate(peak, digits=4),
        "from its clock; the datasheet says 312 TFLOP/s",
    )
    truth(peak)

# %% [markdown]
# The table also shows what tensor cores gained when they were introduced: 512 against 64 on Volta is 8×, and 1024
# against 64 on the A100 is 16× (FP16 on tensor cores against FP32 on CUDA cores). That is the source of the "8–16×" in
# advertisements. A kernel becomes that much faster on the same chip only if its multiply-adds limited it.
#
# Now the bound. **Predict:** a friend reports that adding two vectors of 256 MB each (FP32, into a third) took 0.3 ms
# on an A100 with 2039 GB/s. Do you believe it?

# %%
predict("vectors", "Adding them takes at least", unit="ms")

# %%
with reveal_prediction("vectors") as truth:
    moved_bytes, bandwidth = 3 * 256e6, 2039e9
    print("two vectors are read and one is written: 768 MB at 2039 GB/s")
    truth(moved_bytes / bandwidth)

# %% [markdown]
# A result above this *speed of light* is always an error. Some work was not done, or the timer did not wait for it, or
# the data were in a cache.
#
# Write `fraction_of_light(time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s)`. Memory and arithmetic
# work at the same time, so the shortest possible time is the **larger** of the two bounds. Raise `ValueError` (with a
# helpful message) when `time_s` is below it, or is not positive; a time exactly at the bound is allowed. Otherwise
# return the fraction of the speed of light, from 0 (no bytes and no operations) to 1: a kernel at 0.5 can become twice
# as fast, one at 0.8 only 1.25 times as fast.


# %% solve="faster_than_light"
def fraction_of_light(
    time_s, *, moved_bytes, flop, bandwidth_byte_per_s, peak_flop_per_s
):
    """The shortest possible time over `time_s`; ValueError if that is impossible."""
    ### BEGIN SOLUTION
    bound_s = max(moved_bytes / bandwidth_byte_per_s, flop / peak_flop_per_s)
    if time_s < bound_s or time_s <= 0:
        why = (
            f"{time_s:.3g} s is impossible: the machine needs at least {bound_s:.3g} s"
        )
        raise ValueError(why)
    return bound_s / time_s
    ### END SOLUTION


# %% check="faster_than_light"
check("faster_than_light")

# %% [markdown]
# ## 7. Tiles and waves: the half-empty pan
#
# A matrix product is cut into *tiles* of the output, and each tile is one thread block on one SM. The work is rounded
# up twice. **Tile quantization:** a matrix that is not a multiple of the tile still gets whole tiles. **Wave
# quantization:** the SMs take one tile each (let us assume one at a time); when there are more tiles than SMs, the rest
# waits for a second *wave*, and a last wave of one tile takes as long as a full one.
#
# In deck [002]'s picture, tiles are 128 × 128, and an output of 256 × 256 needs four. **Predict:** how many does 257 ×
# 256 need, and how much of their work is wasted?

# %%
predict("one_row_more", "A 257 × 256 output needs", unit="tiles")
predict("tile_waste", "The share of their work that is wasted is", unit="%")

# %%
from edl_labs.plots import quantization

with reveal_prediction("one_row_more", "tile_waste") as truth:
    figure, (left, right) = style.subplots(1, 2, figsize=(9, 3.6))
    left = quantization.tile_grid(left, 256, 256, tile_m=128, tile_n=128)
    right = quantization.tile_grid(right, 257, 256, tile_m=128, tile_n=128)
    print("50 % more work, for 0.4 % more output")
    truth(one_row_more=6, tile_waste=1 - 257 * 256 / (6 * 128 * 128))

# %% [markdown]
# A leftover row and a leftover column cannot share a tile. The number of tiles along each side is rounded up first, and
# only then are the two numbers multiplied.
#
# Now the waves. An A100 has 108 SMs, and 108 tiles take one wave. **Predict:** how efficient are 109 tiles? 120? 216?
# Sketch the efficiency against the number of tiles before you compute it.

# %%
predict("tiles_109", "With 109 tiles the efficiency is", unit="%")
predict("tiles_120", "With 120 tiles it is", unit="%")

# %% [markdown]
# Write two functions:
#
# * `wave_report(tiles, sm_count=...)` → `(waves, efficiency, spare)`: the number of waves, the share of their places
#   that hold a tile, and how many more tiles these waves have room for;
# * `best_width(m, bound=..., tile_m=..., tile_n=..., sm_count=...)` → a whole number `n` from 1 to `bound`. The layer's
#   output is m × n and you may choose n. Return the n with the highest efficiency after both roundings: wanted elements
#   divided by all elements that the waves could have computed. If several are equally good, any of them is right.


# %% solve="wave_quantization"
def wave_report(tiles, *, sm_count):
    """(waves, efficiency, spare) for `tiles` tiles on `sm_count` SMs."""
    ### BEGIN SOLUTION
    waves = -(-tiles // sm_count)
    return waves, tiles / (waves * sm_count), waves * sm_count - tiles
    ### END SOLUTION


def best_width(m, *, bound, tile_m, tile_n, sm_count):
    """The n from 1 to `bound` whose m × n output uses the machine best."""

    ### BEGIN SOLUTION
    def columns_a_wave(n):
        tiles = -(-m // tile_m) * -(-n // tile_n)
        # All else in the share of wanted elements is the same for every n.
        return n / wave_report(tiles, sm_count=sm_count)[0]

    return max(range(1, bound + 1), key=columns_a_wave)
    ### END SOLUTION


# %% check="wave_quantization"
check("wave_quantization")

# %%
with (
    requires_solution("wave_quantization"),
    reveal_prediction("tiles_109", "tiles_120") as truth,
):
    tiles = list(range(1, 451))
    busy = [wave_report(count, sm_count=108)[1] for count in tiles]
    figure, axes = style.subplots(figsize=(9, 3.4))
    look = {"xlabel": "tiles", "title": "Waves on 108 SMs (computed)"}
    axes = quantization.sawtooth(
        axes, tiles, busy, **look, marks=(108, 109, 120, 216, 217)
    )
    truth(tiles_109=busy[108], tiles_120=busy[119])

# %% [markdown]
# One tile too many costs a whole wave, and the first tooth that never falls below 90 % begins with tile 973.
#
# The next picture shows both roundings, for a layer with 2048 rows of output and tiles of 256 × 128. **Predict:** the
# tiles are 128 wide; how many teeth will there be up to n = 4096?

# %%
predict("teeth", "The number of whole teeth up to n = 4096 is", unit="teeth")

# %%
with requires_solution("wave_quantization"):
    widths, shape = range(1, 4097), {"tile_m": 256, "tile_n": 128}
    covering = [8 * math.ceil(n / 128) for n in widths]  # 2048 rows are 8 tiles high
    waves = [wave_report(count, sm_count=108)[0] for count in covering]
    useful = [
        2048 * n / (w * 108 * 256 * 128) for n, w in zip(widths, waves, strict=True)
    ]

# %%
with requires_solution("wave_quantization"), reveal_prediction("teeth") as truth:
    figure, axes = style.subplots(figsize=(9, 3.4))
    look = {"xlabel": "n", "title": "2048 × n on 108 SMs (computed)"}
    best = best_width(2048, bound=4096, sm_count=108, **shape)
    axes = quantization.sawtooth(axes, widths, useful, **look, marks=(best,))
    print("there are not 4096 / 128 teeth: a third one only begins")
    truth(waves[-1] - 1)

# %% [markdown]
# Time is counted in whole waves. A half-empty tile costs nothing as long as its wave has empty places anyway. So tiles
# only decide where a wave ends. A real library picks another tile size, or splits the sum over K, when a tooth is deep;
# a measured curve is flatter, but it still has teeth. (Why not always use small tiles? For each step of its sum, a tile
# of 256 × 128 loads 384 numbers for 32 768 multiply-adds, and a tile of 64 × 64 loads 128 numbers for 4096. Larger
# tiles reuse more of what they load.)

# %% [markdown]
# ## 8. Moving a petabyte
#
# Deck [003] asks how long one petabyte takes over common links:
#
# | link | speed | 1 PB |
# |---|---|---|
# | processor, 40 PCIe lanes | 30 GB/s | 9 hours |
# | NVLINK | 40 GB/s | 7 hours |
# | PCIe ×8 (GPU) | 5 GB/s | 2 days |
# | SATA interface | 6 GB/s | 2 days |
# | 56 Gbps InfiniBand | 6.8 GB/s | 2 days |
# | 10 Gbps Ethernet | 1 GB/s | 2 weeks |
#
# **Predict:** one row is wrong by a factor of ten. Which, and how do you know without a datasheet?

# %%
rows = ("processor", "NVLINK", "PCIe ×8", "SATA", "InfiniBand", "Ethernet")
predict("wrong_row", "The row that is wrong is", choices=rows)

# %% [markdown]
# Write `transfer_s(size, rate, efficiency=1.0)`: the seconds that a size like `"1.5 TiB"` takes at a rate like `"10
# Gbit/s"`. The unit is `B` or `bit`, with no prefix, or with k, M, G, T, P (powers of 1000) or Ki, Mi, Gi, Ti, Pi
# (powers of 1024). `efficiency` is the share of the line's bits that carry data: SATA sends 10 bits for every 8 bits of
# data, PCIe 3 to 5 send 130 for every 128.

# %% given
FACTOR = {"": 1}
FACTOR |= {prefix: 1000**power for power, prefix in enumerate("kMGTP", 1)}
FACTOR |= {f"{prefix}i": 1024**power for power, prefix in enumerate("KMGTP", 1)}


# %% solve="petabyte"
def transfer_s(size, rate, *, efficiency=1.0):
    """Seconds to send `size` over a link of this `rate` and `efficiency`."""

    ### BEGIN SOLUTION
    def in_bytes(text):
        number, unit = text.removesuffix("/s").split()
        if unit.endswith("bit"):
            return float(number) * FACTOR[unit.removesuffix("bit")] / 8
        return float(number) * FACTOR[unit.removesuffix("B")]

    return in_bytes(size) / (in_bytes(rate) * efficiency)
    ### END SOLUTION


# %% check="petabyte"
check("petabyte")

# %%
with requires_solution("petabyte"), reveal_prediction("wrong_row") as truth:
    for rate, efficiency in (("6 GB/s", 1.0), ("6 Gbit/s", 8 / 10)):
        days = transfer_s("1 PB", rate, efficiency=efficiency) / 86400
        print(f"1 PB over SATA, read as {rate}: {days:.1f} days")
    print("who would need InfiniBand if a hard disk's cable were nearly as fast?")
    truth("SATA")

# %% [markdown]
# One letter, **b** for bits or **B** for bytes, is a factor of eight; the rest of the factor of ten is the line code,
# which sends 10 bits for 8 bits of data. And 1 PiB is 12.6 % more than 1 PB: at this size, the choice of prefix costs
# days.

# %% [markdown]
# ## 9. Practice: the tiles of one matrix
#
# Sections 9 and 10 are practice: they are checked like all the others, but carry no points.
#
# Section 7 needed only the number of tiles. Its two pictures showed more: how much of the tiles' work is thrown away,
# and which tiles hang over an edge.
#
# Write `tile_report(m, n, tile_m=..., tile_n=...)` → `(tiles, wasted, ragged)`: how many tiles an m × n output needs,
# what share of the elements that they compute is thrown away (0.0 if nothing is), and how many of the tiles hang over
# an edge, so that part of their work is thrown away.


# %% solve="tile_quantization"
def tile_report(m, n, *, tile_m, tile_n):
    """(tiles, wasted, ragged) of an m × n output that is cut into tiles."""
    ### BEGIN SOLUTION
    tiles = -(-m // tile_m) * -(-n // tile_n)
    return (
        tiles,
        1 - m * n / (tiles * tile_m * tile_n),
        tiles - (m // tile_m) * (n // tile_n),
    )
    ### END SOLUTION


# %% check="tile_quantization"
check("tile_quantization")

# %% [markdown]
# ## 10. Practice: hide the transfer
#
# The link that matters most in training is the one between host and device. According to deck [001], PCIe 4.0 ×16 has a
# peak of 32 GB/s, transfers are often the bottleneck, and copies from pinned (page-locked) memory are much faster.
# Ordinary memory is *pageable*: the system may move it, so the driver first copies the data, piece by piece, into a
# pinned buffer of its own, and the host is busy during that copy. **Predict:** by what factor is a pinned copy faster?

# %%
predict("pinned_gain", "A large pinned copy is faster by a factor of", unit="times")


# %%
def measured_rate(mebibytes, *, pinned):
    """Bytes per second from host memory to this machine's GPU."""
    import torch

    source = torch.ones(mebibytes << 20, dtype=torch.uint8)
    source = source.pin_memory() if pinned else source
    target = source.to("cuda")
    copied = measure(
        lambda: target.copy_(source, non_blocking=True),
        clock=clock_for("cuda"),
        budget_s=0.2,
    )
    return source.numel() / copied.median_s


# %%
if best_device() == "cuda":
    copies = f"measured on {describe().device_name}"
    copied = copy_mebibytes << 20
    rates = {copied: [measured_rate(copy_mebibytes, pinned=p) for p in (False, True)]}
else:
    recorded = recordings.find("pinned_copies")
    copies, ways = recorded.title, ("pageable", "pinned")
    rows = zip(recorded.x, *map(recorded.values, ways), strict=True)
    rates = {nbytes: [nbytes / time_s for time_s in row] for nbytes, *row in rows}

# %%
with reveal_prediction("pinned_gain") as truth:
    print(copies)
    for nbytes, (slow, fast) in rates.items():
        told = f"pageable {units.byte_rate(slow):>9}, pinned {units.byte_rate(fast):>9}"
        print(f"{units.byte_count(nbytes):>8}: {told}")
    slow, fast = rates[max(rates)]
    truth(fast / slow)

# %% [markdown]
# A pinned copy may also be *asynchronous*: with `non_blocking=True` the host continues, and the copy engine works at
# the same time as the kernels. The modelled GPU has one copy engine for each direction, as most data-centre GPUs do
# (`asyncEngineCount` of the device's properties says how many yours has). So three things can happen at once: a copy
# in, a kernel, and a copy out. They cannot work on the same bytes: each part must arrive before the kernel can use it.
# That is why the data are cut into *chunks*: while the kernel works on one part, the next part is copied in and the
# previous part is copied out.
#
# Write `run_overlapped(gpu, nbytes, load=..., kernel=...)`. It copies `nbytes` bytes to the device, runs the kernel on
# them, copies them back, and returns the host buffer that holds the result, *ready to be read*.
#
# * `gpu.host_empty(nbytes, pin_memory=...)` and `gpu.empty(nbytes)` allocate memory on the host and on the device;
#   `buffer[start:stop]` is a slice of it.
# * `load(gpu, buffer)` immediately fills a host buffer with the input.
# * `gpu.copy(dst, src, non_blocking=...)` copies in the current stream; `with gpu.stream(s):` makes `s = gpu.Stream()`
#   the current one.
# * `kernel(gpu, dst, src)` launches the kernel in the current stream; `dst` and `src` are parts of equal size on the
#   device, and may be the same part.
# * `gpu.synchronize()`, `event = gpu.Event()`, `event.record()`, `stream.wait_event(event)` work as in torch.
#
# Your time must be within 5 % of the best known schedule, for 2 MB to 300 MB of data. The check replays your program
# and follows every byte. If an operation comes late enough only by chance, without waiting for what it needs, there is
# a race, and the answer earns nothing. **Predict:** how many chunks are best? What does one more chunk cost, and what
# does it save? (You may rehearse: `VirtualGPU(gpu.machine)` is a fresh machine of the same kind, and its time does not
# count.)

# %%
predict("chunks", "For 32 MB on an A100, the best number of chunks is", unit="chunks")


# %% solve="transfer_overlap"
def run_overlapped(gpu, nbytes, *, load, kernel):
    """The host buffer with the result, after copies and kernels that overlap."""

    ### BEGIN SOLUTION
    def run(machine, chunks):
        source, result = (machine.host_empty(nbytes, pin_memory=True) for _ in range(2))
        inside, streams = machine.empty(nbytes), [machine.Stream() for _ in range(3)]
        load(machine, source)
        step = -(-nbytes // chunks)
        for turn, start in enumerate(range(0, nbytes, step)):
            part = slice(start, min(start + step, nbytes))
            with machine.stream(streams[turn % len(streams)]):
                machine.copy(inside[part], source[part], non_blocking=True)
                kernel(machine, inside[part], inside[part])
                machine.copy(result[part], inside[part], non_blocking=True)
        machine.synchronize()
        return result

    def rehearsed_s(chunks):
        scratch = VirtualGPU(gpu.machine)
        run(scratch, chunks)
        return scratch.now_s()

    return run(gpu, min((round(1.4**power) for power in range(15)), key=rehearsed_s))
    ### END SOLUTION


# %% check="transfer_overlap"
check("transfer_overlap")

# %% [markdown]
# The next cells show the program before and after on a modelled A100, for 32 MB and a kernel that takes as long as a
# pinned copy.


# %%
def load(gpu, buffer):
    gpu.host_work(0.0, writes=buffer)


def kernel(gpu, dst, src):
    gpu.launch(
        "scale",
        duration_s=3e-6 + src.nbytes / 27e9,
        reads=src,
        writes=dst,
        elementwise=True,
    )


# %%
def one_after_another(gpu, nbytes, *, load, kernel):
    buffer, inside = gpu.host_empty(nbytes), gpu.empty(nbytes)
    load(gpu, buffer)
    gpu.copy(inside, buffer)
    kernel(gpu, inside, inside)
    gpu.copy(buffer, inside)
    return buffer


# %%
with requires_solution("transfer_overlap"):
    lines = {}
    for schedule in (one_after_another, run_overlapped):
        gpu = VirtualGPU(VirtualMachine.of("A100").warm())
        schedule(gpu, 32_000_000, load=load, kernel=kernel)
        lines[schedule.__name__] = gpu.timeline
    longest_s = max(line.makespan_s for line in lines.values())
    figure, rows = style.subplots(2, 1, figsize=(9, 5))
    for axes, (name, line) in zip(rows, lines.items(), strict=True):
        hidden = units.percent(line.hidden_copy_fraction, digits=2)
        title = f"{name} (modelled A100): {units.seconds(line.makespan_s)}, "
        title += f"{hidden} of the copying hidden"
        axes = draw_timeline(axes, line, end_s=longest_s, title=title)

# %%
with requires_solution("transfer_overlap"), reveal_prediction("chunks") as truth:
    print("one more chunk costs three calls, and shortens the two ends")
    truth(sum(one.kind == "kernel" for one in lines["run_overlapped"].spans))

# %% [markdown]
# With pinned memory, but still one operation after another, the program would take 3.6 ms. This first step brings 72 %
# of the total saving, and running three engines at once brings the rest. Expressed as factors, which multiply, the two
# gains are equal: 2.6 each. So say whether you mean a share or a factor. Look at the ends: the first copy in and the
# last copy out overlap with nothing, and each takes as long as one chunk. Smaller chunks make them shorter, until the
# host, which must issue three calls for each chunk, becomes slower than any of the engines.
#
# Kernels, too, can run at the same time: deck [001] draws a serial and a concurrent model. In one stream, three kernels
# of 36 blocks take three waves, one after another on a third of 108 SMs; in three streams, their 108 blocks fill one
# wave. A kernel that fills the chip on its own gains nothing from a second stream.

# %% [markdown]
# **The same in torch.** `gpu.host_empty(n, pin_memory=True)` is `torch.empty(n, pin_memory=True)`, `gpu.empty(n)` is
# `torch.empty(n, device="cuda")`, and `gpu.copy(dst, src, non_blocking=True)` is `dst.copy_(src, non_blocking=True)`.
# `Stream`, `stream` and `synchronize` have the same names in `torch.cuda`.


# %%
def overlap_in_torch():
    """Copies 32 MB in, doubles it, copies it out: in one piece, or in eight."""
    import torch

    source, result = (torch.ones(8_000_000, pin_memory=True) for _ in range(2))
    inside = torch.empty(8_000_000, device="cuda")
    streams = [torch.cuda.Stream() for _ in range(3)]

    def run(pieces):
        parts = zip(*(x.chunk(pieces) for x in (source, inside, result)), strict=True)
        for turn, (x, y, z) in enumerate(parts):
            with torch.cuda.stream(streams[turn % 3]):
                z.copy_(y.copy_(x, non_blocking=True).mul_(2), non_blocking=True)

    return {"one piece": lambda: run(1), "eight pieces": lambda: run(8)}


# %%
in_torch(
    overlap_in_torch,
    told="modelled A100: one after another 9.2 ms, overlapping 1.37 ms",
)

# %% [markdown]
# ## Where you are

# %%
Progress("lab01_gpu_basics")
