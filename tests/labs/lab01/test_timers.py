"""honest_timer and broken_timers: other honest ways pass, what was read out of the model does not."""

from __future__ import annotations

import numpy as np
import pytest

from edl_labs.checks import plain_data
from edl_labs.exercises.lab01_gpu_basics.honest_timer import per_call_s
from edl_labs.exercises.lab01_gpu_basics.judge import faulty_timers as faults
from edl_labs.virtual import VirtualGPU, VirtualMachine
from tests.sampling import few

# Durations are whole nanoseconds, so that a link of one byte per nanosecond copies for as long as is asked.
_LINK, _ROOM = 1e9, 1_000_000_000


def modelled(program: list, *, launch_s: float) -> list[list[float]]:
    """When host and device are done after each beginning of a program, as a VirtualGPU has it."""
    gpu = VirtualGPU(VirtualMachine(launch_overhead_s=launch_s, copy_overhead_s=launch_s, link_byte_per_s=_LINK))
    host, inside = gpu.host_empty(_ROOM, pin_memory=True), gpu.empty(_ROOM)
    moments, issued = [(0.0, 0)], 0
    for op, spent_s in program:
        part = slice(0, round(spent_s * _LINK))
        if op == "launch":
            gpu.launch("kernel", duration_s=spent_s)
        elif op in ("copy", "blocking copy"):
            gpu.copy(inside[part], host[part], non_blocking=op == "copy")
        elif op == "host":
            gpu.host_work(spent_s)
        else:
            gpu.synchronize()
        issued += op not in ("host", "sync")
        moments.append((gpu.now_s(), issued))
    # One stream runs in order: the n-th end is that of the n-th operation issued.
    ends_s = [0.0, *sorted(span.end_s for span in gpu.timeline.spans if span.kind in ("kernel", "copy"))]
    return [[host_s, ends_s[count]] for host_s, count in moments]


def timed_run(fn, gpu, calls):
    gpu.synchronize()
    first_s = gpu.now_s()
    for _ in range(calls):
        fn()
    gpu.synchronize()
    return gpu.now_s() - first_s


def grown(fn, gpu):
    """Seconds and number of calls of a run that is long enough."""
    timed_run(fn, gpu, 2)
    calls = 8
    while (spent_s := timed_run(fn, gpu, calls)) < 80 * (gpu.clock.resolution_s + 4e-5):
        calls *= 2
    return spent_s, calls


@pytest.mark.parametrize("seed", range(3))
def test_finish_times_and_the_model_agree_on_drawn_programs(seed, solution, exercises):
    for case in exercises["finish_times"].draw_cases(seed):
        ours = [
            solution["finish_times"](case["program"][:n], launch_s=case["launch_s"])
            for n in range(len(case["program"]) + 1)
        ]

        assert np.allclose(modelled(case["program"], launch_s=case["launch_s"]), ours, rtol=1e-9, atol=1e-13)


@pytest.mark.parametrize(("launch_s", "kernel_s"), [(5e-6, 40e-6), (9e-6, 5e-6), (4e-6, 4e-6)])
def test_the_steady_state_is_the_slower_of_launch_and_kernel(launch_s, kernel_s):
    gpu = VirtualGPU(VirtualMachine(launch_overhead_s=launch_s))
    spent_s = [timed_run(lambda: gpu.launch("kernel", duration_s=kernel_s), gpu, calls) for calls in (100, 300)]

    assert per_call_s(launch_s=launch_s, kernel_s=kernel_s) == pytest.approx((spent_s[1] - spent_s[0]) / 200)


def test_events_are_an_honest_way_to_time(judged):
    def with_events(fn, gpu):
        fn()
        start, end = gpu.Event(enable_timing=True), gpu.Event(enable_timing=True)
        start.record()
        for _ in range(150):
            fn()
        end.record()
        end.synchronize()
        return 1e-3 * start.elapsed_time(end) / 150

    assert "passed" == judged("honest_timer", time_device=with_events).state


def test_the_difference_of_two_runs_is_an_honest_number(judged):
    def slope(fn, gpu):
        spent_s, calls = grown(fn, gpu)
        return (timed_run(fn, gpu, 3 * calls) - spent_s) / (2 * calls)

    assert "passed" == judged("honest_timer", time_device=slope).state


def test_the_median_of_several_runs_is_an_honest_number(judged):
    def median(fn, gpu):
        _, calls = grown(fn, gpu)
        return sorted(timed_run(fn, gpu, calls) / calls for _ in range(3))[1]

    assert "passed" == judged("honest_timer", time_device=median).state


def test_milliseconds_are_told_so(judged):
    def in_milliseconds(fn, gpu):
        spent_s, calls = grown(fn, gpu)
        return 1e3 * spent_s / calls

    outcome = judged("honest_timer", time_device=in_milliseconds)

    assert "the number is in milliseconds" == outcome.what


def test_a_right_number_after_a_measurement_of_something_else_earns_nothing(judged):
    def private(fn, gpu):
        timed_run(fn, gpu, 1)
        return max(gpu.machine.launch_overhead_s, gpu.program[-3]["duration_s"])

    assert 0 == judged("honest_timer", time_device=private).points


def test_a_kernel_of_the_timers_own_earns_nothing(judged):
    def own_kernel(fn, gpu):
        fn()
        call_s = max(gpu.machine.launch_overhead_s, gpu.program[-1]["duration_s"])
        calls = max(2, round(80 * (gpu.clock.resolution_s + 4e-5) / call_s))
        return timed_run(lambda: gpu.launch("mine", duration_s=call_s), gpu, calls) / calls

    assert "your timer launched a kernel of its own" == judged("honest_timer", time_device=own_kernel).what


def test_waiting_as_long_as_the_answer_asks_for_earns_nothing(judged):
    def padded(fn, gpu):
        fn()
        call_s = max(gpu.machine.launch_overhead_s, gpu.program[-1]["duration_s"])
        gpu.synchronize()
        first_s = gpu.now_s()
        fn()
        gpu.host_work(50 * (gpu.clock.resolution_s + call_s))
        gpu.synchronize()
        return (gpu.now_s() - first_s) / 50

    assert "your timer did work of its own" == judged("honest_timer", time_device=padded).what


def test_events_in_a_stream_without_the_calls_explain_nothing(judged):
    def elsewhere(fn, gpu):
        fn()
        side, start, end = gpu.Stream(), gpu.Event(enable_timing=True), gpu.Event(enable_timing=True)
        start.record(side)
        for _ in range(150):
            fn()
        gpu.synchronize()
        end.record(side)
        gpu.synchronize()
        return 1e-3 * start.elapsed_time(end) / 150

    assert 0 == judged("honest_timer", time_device=elsewhere).points


def test_a_lying_clock_is_found_out_by_the_replay(judged):
    def patched(fn, gpu):
        fn()
        call_s = max(gpu.machine.launch_overhead_s, gpu.program[-1]["duration_s"])
        readings = iter([1.0, 1.0 + 1000 * call_s])
        gpu.core.read_clock = lambda: next(readings)
        return timed_run(fn, gpu, 1000) / 1000

    outcome = judged("honest_timer", time_device=patched)

    assert "the recorded program differs from what this machine would have done" == outcome.what


@pytest.mark.parametrize("junk", ["[]", "", "[[1,2]]", "{}", '[{"op":"now","value":NaN}]', "[" * 100_000, "null"])
def test_a_record_that_is_none_is_told_and_nothing_breaks(junk, exercises):
    exercise = exercises["honest_timer"]
    case = exercise.draw_cases(1)[0]

    from edl_labs.checks import judge

    records = [{"value": {"seconds_per_call": 1e-5, "program": junk}}]
    outcome = judge(exercise, [case], records, [{"seconds_per_call": 1e-5, "program": "[]"}], points=1)

    assert 0 == outcome.points
    assert outcome.what != "the result could not be compared"


@pytest.mark.parametrize("fault", faults.FAULTS)
def test_each_fault_is_named_by_the_solution_on_many_machines(fault, solution):
    rng = np.random.default_rng(7)

    for stream in (0, 1) * 5:
        report = faults.report(fault, faults.draw_machine(rng, fault if stream else ""), stream=stream, rng=rng)

        assert fault == solution["name_fault"](plain_data.plain_copy(report))


def test_two_faults_report_alike_at_one_number_of_calls_at_most():
    rng = np.random.default_rng(3)

    assert [] == [pair for _ in range(10) for pair in faults.look_alikes(faults.draw_machine(rng))]


@pytest.mark.parametrize("fault", faults.FAULTS)
def test_no_two_faults_are_alike_where_one_of_them_hides_either(fault):
    rng = np.random.default_rng(4)

    assert [] == [pair for _ in range(3) for pair in faults.look_alikes(faults.draw_machine(rng, fault))]


def structure(report):
    """All of a timeline but its times, in no order."""
    return sorted((span["row"], span["kind"], span["name"]) for span in report["timeline"])


def test_the_structure_of_a_timeline_is_the_same_whatever_the_fault():
    rng = np.random.default_rng(5)
    plain = [structure(faults.report(fault, faults.draw_machine(rng))) for fault in faults.FAULTS]
    odd = [structure(faults.report(f, faults.draw_machine(rng, f), stream=1)) for f in faults.FAULTS for _ in range(8)]

    assert [plain[0]] * 7 == plain
    assert [odd[0]] * 56 == odd


def test_the_order_of_a_timeline_tells_nothing(exercises):
    # How often each kind of span comes first: as often as it is in a timeline, whatever the fault.
    cases = [case for seed in range(4) for case in exercises["broken_timers"].draw_cases(seed)]
    orders = {tuple((span["kind"], span["name"]) for span in case["timeline"]) for case in cases}

    assert len(cases) == len(orders)


def features(report):
    """Ways to write a report as numbers, of which none asks when anything happened."""
    true_s, said_s = report["true_seconds_per_call"], np.array(report["seconds_per_call"])
    machine_s = [true_s, report["launch_s"], report["clock_resolution_s"]]
    spent_s = [
        sum(span["end_s"] - span["start_s"] for span in report["timeline"] if span["kind"] == kind)
        for kind in ("call", "work", "wait", "kernel")
    ]
    raw = np.concatenate([said_s, machine_s])
    calls = np.concatenate([said_s, machine_s[1:]]) / true_s
    curve = np.log(np.maximum(said_s / true_s, 1e-3))
    return {
        "as it stands": raw,
        "logarithms": np.log(np.maximum(raw, 1e-9)),
        "in calls": calls,
        "in calls, logarithms": np.log(np.maximum(calls, 1e-3)),
        "in calls, at most two": np.minimum(calls, 2),
        "beside the launch": np.log(np.maximum([*calls, said_s[-1] / report["launch_s"]], 1e-3)),
        "curve": curve,
        "curve and clock": np.array([*curve, np.log(calls[-1])]),
        "above or below": np.sign(np.array([*(said_s - true_s), calls[-1] - 1])),
        "times by kind": np.log(np.array(spent_s) / true_s),
        "order": np.array(
            [sum(map(ord, f"{s['row']}{s['kind']}{s['name']}")) for s in report["timeline"]], dtype=float
        ),
    }


def nearest(labelled, way):
    """A function of a report's features: the label of the one that is nearest when each number varies by one."""
    points = np.array([features(report)[way] for report, _ in labelled])
    mean, spread = points.mean(axis=0), points.std(axis=0) + 1e-12
    points = (points - mean) / spread

    def named(numbers):
        distances = ((points - (numbers[way] - mean) / spread) ** 2).sum(axis=1)
        return labelled[int(distances.argmin())][1]

    return named


@pytest.mark.slow  # 200 draws: a minute of work
@pytest.mark.timeout(1500)  # on a machine that others keep busy too
def test_the_nearest_public_report_does_not_tell_the_fault(exercises, solution):
    exercise = exercises["broken_timers"]
    public = [case for case in exercise.draw_cases(1) if exercise.spec.is_public(case)]
    labelled = [(case, solution["name_fault"](case)) for case in public]
    ways = {way: nearest(labelled, way) for way in features(public[0])}
    earned = {way: [] for way in ways}
    for seed in range(1000, 1200):
        cases = exercise.draw_cases(seed)
        right, numbers = [solution["name_fault"](case) for case in cases], [features(case) for case in cases]
        for way, guess in ways.items():
            found = [float(guess(one) == fault) for one, fault in zip(numbers, right, strict=True)]
            earned[way].append(exercise.spec.combine(found))

    assert set(faults.FAULTS) == {fault for _, fault in labelled}
    # Once in a hundred times, as luck may: two of 200 draws, and three standard deviations more.
    assert [] == [way for way, shares in earned.items() if sum(share > 0 for share in shares) > 6]
    assert 0.001 > max(np.mean(shares) for shares in earned.values())


def test_look_alikes_are_found_where_there_are_some():
    machine = faults.draw_machine(np.random.default_rng(3)).replace(module_load_s=0.0)

    assert ("cold first call", "none") in faults.look_alikes(machine)


def test_a_case_does_not_name_its_fault(exercises):
    case = exercises["broken_timers"].draw_cases(2)[0]

    assert not set(faults.FAULTS) & set(map(str, plain_data.to_json(dict(case))["d"][0]))
    assert "fault" not in str(plain_data.to_json(dict(case)))


@pytest.mark.parametrize("answer", few(faults.FAULTS, quick=2))
def test_a_constant_answer_earns_nothing(judged, answer):
    assert 0 == judged("broken_timers", name_fault=lambda report: answer).points


def test_six_of_seven_faults_earn_what_is_left_beyond_luck(judged, solution):
    def blind(report):
        found = solution["name_fault"](report)
        return "no sync" if found == "wrong stream" else found

    outcome = judged("broken_timers", name_fault=blind)

    assert ("partly", pytest.approx(10 / 14, abs=1e-3)) == (outcome.state, outcome.points)
    assert "your code overlooks a wait for another stream" == outcome.what


def test_a_name_that_is_none_of_the_seven_is_told(judged):
    assert "'gremlins' is not one of the seven answers" == judged("broken_timers", name_fault=lambda r: "gremlins").what
