"""An honest notebook finds in the sandbox what it finds in Jupyter."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from edl_labs.course.sandbox import Level, level_problem
from edl_labs.course.sandbox.kernel import KernelDied, KernelPool, SandboxKernel, Violation
from edl_labs.errors import EdlError, UsageError
from tests.sampling import few


def printed(kernel: SandboxKernel, code: str, *, timeout_s: float = 60) -> str:
    result = kernel.run(code, timeout_s=timeout_s)
    assert result.ok, (result.error_name, result.error_value)
    return "".join(output["text"] for output in result.outputs if output["output_type"] == "stream")


def test_a_cell_gives_streams_and_result_and_count(kernel):
    kernel.run("x = 6 * 7", timeout_s=20)
    result = kernel.run("import sys; print('out'); print('err', file=sys.stderr); x", timeout_s=20)

    assert ("ok", 2) == (result.status, result.execution_count)
    assert ["stream", "stream", "execute_result"] == [output["output_type"] for output in result.outputs]
    assert {"text/plain": "42"} == result.outputs[2]["data"]


def test_an_error_is_the_cells_and_the_next_cell_runs(kernel):
    result = kernel.run("1 / 0", timeout_s=20)

    assert ("error", "ZeroDivisionError", "division by zero") == (result.status, result.error_name, result.error_value)
    assert "error" == result.outputs[0]["output_type"]
    assert kernel.run("1", timeout_s=20).ok


def test_output_of_c_code_is_seen(kernel):
    assert "from below" in printed(kernel, "import os; os.write(1, b'from below\\n'); import time; time.sleep(0.5)")


def test_input_is_a_clear_error_at_once(kernel):
    result = kernel.run("input('name? ')", timeout_s=20)

    assert ("error", "StdinNotImplementedError") == (result.status, result.error_name)


def test_leaving_python_is_an_error_of_that_cell_only(kernel):
    assert "error" == kernel.run("import sys; sys.exit(0)", timeout_s=20).status
    assert kernel.run("1", timeout_s=20).ok


def test_twenty_thousand_lines_are_honest(kernel):
    assert 20_000 == len(printed(kernel, "for number in range(20_000): print(number)").splitlines())


def test_printing_too_much_costs_the_output_and_nothing_else(kernel):
    kernel.run("x = 1", timeout_s=20)
    result = kernel.run("print('x' * (20 << 20))", timeout_s=60)

    assert (True, True) == (result.ok, result.truncated)
    assert "1" == kernel.run("x", timeout_s=20).outputs[0]["data"]["text/plain"]


def test_a_cell_over_its_time_is_interrupted_and_the_kernel_lives(kernel):
    kernel.run("x = 1", timeout_s=20)
    result = kernel.run("while True: pass", timeout_s=0.5)

    assert "timeout" == result.status
    assert "1" == kernel.run("x", timeout_s=20).outputs[0]["data"]["text/plain"]


def test_files_beside_the_notebook_are_there_and_importable(pool):
    with pool.kernel(files={"data/a.csv": b"1,2", "helper.py": b"answer = 42"}) as kernel:
        assert "1,2 42\n" == printed(kernel, "import helper; print(open('data/a.csv').read(), helper.answer)")


def test_a_file_beside_the_notebook_does_not_stand_in_for_the_standard_library(pool):
    with pool.kernel(files={"statistics.py": b"mean = None", "json.py": b"1/0"}) as kernel:
        assert "2\n" == printed(kernel, "import json, statistics; print(statistics.mean([1, 3]))")


@pytest.mark.parametrize("name", ["/etc/passwd", "../up", "a/../../b", "", "a\0b"])
def test_a_file_goes_nowhere_but_beside_the_notebook(pool, name):
    with pytest.raises(UsageError):
        pool.kernel(files={name: b""})


def test_random_numbers_repeat_with_the_seed_and_differ_without(pool):
    drawn = []
    for seed in (1, 1, 2):
        with pool.kernel(seed=seed) as kernel:
            drawn.append(printed(kernel, "import random, numpy; print(random.random(), numpy.random.rand())"))

    assert drawn[0] == drawn[1] != drawn[2]


def test_asking_what_kernel_it_is_draws_no_random_number(pool):
    drawn = []
    for asked in (0, 3):
        with pool.kernel(seed=1) as kernel:
            for _ in range(asked):
                kernel.greet(time.monotonic() + 10)
            drawn.append(printed(kernel, "import random; print(random.random())"))

    assert drawn[0] == drawn[1]


def test_kernels_of_one_pool_share_nothing(pool):
    with pool.kernel() as one, pool.kernel() as other:
        one.run(
            "import numpy; numpy.spoiled = True; open('f', 'w').write('x'); open('/tmp/f', 'w').write('x')",
            timeout_s=20,
        )

        assert "False [] False\n" == printed(
            other, "import numpy, os; print(hasattr(numpy, 'spoiled'), os.listdir(), os.path.exists('/tmp/f'))"
        )


def test_a_probe_gets_its_payload_and_the_students_names_and_leaves_nothing(kernel):
    kernel.run("def double(x): return 2 * x", timeout_s=20)
    names = "sorted(name for name in globals() if not name.startswith('_'))"
    before = kernel.run(names, timeout_s=20).outputs[0]["data"]
    answer = kernel.ask("answer(bytes([student['double'](payload[0])]))", b"\x15", timeout_s=20)
    result = kernel.run(names, timeout_s=20)

    assert b"\x2a" == answer
    assert (before, 3) == (result.outputs[0]["data"], result.execution_count)


def test_a_probe_carries_megabytes_both_ways(kernel):
    payload = bytes(range(256)) * (20 << 12)
    answer = kernel.answer("answer(payload[::-1])", payload, timeout_s=60, max_bytes=32 << 20)

    assert payload[::-1] == answer.data
    assert 0 < answer.elapsed_s < 60


def test_a_probe_sees_numpy_views_as_bytes(kernel):
    assert b"\1\0\2\0" == kernel.ask(
        "import numpy; answer(numpy.array([1, 2], dtype='int16'))", timeout_s=20, max_bytes=100
    )


PROBES = {
    "no answer": "1 / 0",
    "two answers": "answer(b'1'); answer(b'2')",
    "large answer": "answer(bytes(101))",
    "forged answer": "answer(b'1', nonce='0' * 32); answer(b'1')",
}


@pytest.mark.parametrize("kind", PROBES)
def test_an_answer_that_is_not_one_is_refused_and_the_kernel_lives(kernel, kind):
    with pytest.raises(Violation) as refused:
        kernel.ask(PROBES[kind], timeout_s=20, max_bytes=100)

    assert (kind, True) == (refused.value.kind, refused.value.alive)
    assert b"2" == kernel.ask("answer(b'2')", timeout_s=20)


def test_why_there_is_no_answer_is_told(kernel):
    with pytest.raises(Violation, match="ZeroDivisionError: division by zero"):
        kernel.ask("1 / 0", timeout_s=20)


def test_a_probe_over_its_time_is_refused_and_the_kernel_lives(kernel):
    with pytest.raises(Violation) as refused:
        kernel.ask("while True: pass", timeout_s=0.5)

    assert ("deadline", True) == (refused.value.kind, refused.value.alive)
    assert b"2" == kernel.ask("answer(b'2')", timeout_s=20)


def test_stats_count_the_kernels_own_time_and_memory(kernel):
    kernel.run("held = bytearray(b'x' * (100 << 20)); sum(range(10_000_000))", timeout_s=60)
    stats = kernel.stats()
    kernel.close()

    assert 100 << 20 <= stats.max_rss_bytes < 400 << 20
    assert stats.cpu_s > 0
    assert stats.max_rss_bytes <= kernel.stats().max_rss_bytes


def test_a_closed_kernel_says_so(kernel):
    kernel.close()

    with pytest.raises(KernelDied, match="ended earlier"):
        kernel.run("1", timeout_s=1)


def test_a_closed_pool_says_so():
    pool = KernelPool(level=Level.UNSAFE, preload=())
    pool.close()

    with pytest.raises(UsageError, match="closed"):
        pool.kernel()


def test_a_module_that_cannot_be_imported_is_named():
    with pytest.raises(UsageError, match="no_such_module_here"):
        KernelPool(level=Level.UNSAFE, preload=("no_such_module_here",))


TORCH_CELLS = {
    "backward": "import torch\nx = torch.ones(3, requires_grad=True); (x * 2).sum().backward(); print(x.grad.tolist())",
    "threads": "from concurrent.futures import ThreadPoolExecutor as T\nprint(list(T(4).map(abs, [-1, 2])))",
    "processes": "from concurrent.futures import ProcessPoolExecutor as P\nprint(list(P(2).map(abs, [-1, 2])))",
    "loader": "import torch\nfrom torch.utils.data import DataLoader\n"
    "print([b.sum().item() for b in DataLoader(torch.arange(8), 4, num_workers=2)])",
    "widget": "import ipywidgets\nslider = ipywidgets.IntSlider(); slider.value = 7; print(slider.value)",
    "edl_labs": "import edl_labs\nprint(edl_labs.__version__)",
}


@pytest.mark.parametrize("name", TORCH_CELLS)
def test_what_labs_do_works_inside(torch_pool, name):
    with torch_pool.kernel() as kernel:
        assert printed(kernel, TORCH_CELLS[name])


@pytest.mark.slow
def test_spawned_loader_workers_work_inside(torch_pool):
    cell = TORCH_CELLS["loader"].replace("num_workers=2", "num_workers=2, multiprocessing_context='spawn'")
    with torch_pool.kernel() as kernel:
        assert "[6, 22]\n" == printed(kernel, cell, timeout_s=120)


def test_a_figure_is_one_line_and_nothing_is_kept_of_it(torch_pool):
    with torch_pool.kernel() as kernel:
        result = kernel.run("import matplotlib.pyplot as plt\nplt.plot([1, 2]); plt.show()", timeout_s=60)
        unshown = kernel.run("figure, axes = plt.subplots(1, 2)", timeout_s=60)
        left = printed(kernel, "print(plt.get_fignums())", timeout_s=60)
        saved = printed(kernel, "figure.savefig('x.png'); print(open('x.png', 'rb').read(4))", timeout_s=60)

    assert {"text/plain": "<Figure size 640x480 with 1 Axes>"} == result.outputs[-1]["data"]
    assert {"text/plain": "<Figure size 640x480 with 2 Axes>"} == unshown.outputs[-1]["data"]
    assert ("[]\n", "b'\\x89PNG'\n") == (left, saved)


def test_cells_measure_briefly(torch_pool):
    with torch_pool.kernel() as kernel:
        cell = "from edl_labs.bench import measure\nprint(measure(sum, inputs=([1],), budget_s=9.0).budget_s)"

        assert "0.02\n" == printed(kernel, cell, timeout_s=60)


@pytest.mark.parametrize("level", few([Level.LANDLOCK, Level.UNSAFE], quick=1))
def test_lower_levels_run_and_bound_and_clean_up_too(level):
    if problem := level_problem(level):
        pytest.skip(f"no sandbox of level {level.value} here: {problem}")
    with KernelPool(level=level, preload=()) as pool, pool.kernel(files={"f": b"x"}) as kernel:
        place = Path(printed(kernel, "import os; print(os.getcwd())").strip())
        there = place.exists()
        assert "x\n" == printed(kernel, "print(open('f').read())")
        assert "timeout" == kernel.run("while True: pass", timeout_s=0.5).status
        kernel.close()

        assert (True, False) == (there, place.exists())


@pytest.mark.slow
def test_a_pool_whose_parent_process_died_makes_another(pool):
    before = pool._link._process
    before.kill()
    before.wait()
    with pytest.raises(EdlError, match="has ended"):
        pool.kernel()

    with pool.kernel() as kernel:
        assert kernel.run("1", timeout_s=60).ok
