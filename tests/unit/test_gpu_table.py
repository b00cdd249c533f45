"""The table that ends `make test-gpu`."""

from __future__ import annotations

from types import SimpleNamespace

from tests.gpu.conftest import table


def report(nodeid, reason=""):
    return SimpleNamespace(nodeid=nodeid, longrepr=("file", 1, f"Skipped: {reason}"))


def test_each_subject_has_its_outcomes_and_the_reason_of_what_was_skipped():
    bench, cluster = "tests/gpu/test_bench_gpu.py", "tests/gpu/test_cluster_gpu.py"
    stats = {
        "passed": [report(f"{bench}::a"), report(f"{bench}::b[1]"), report("tests/unit/test_units.py::c")],
        "failed": [report(f"{bench}::c")],
        "skipped": [report(cluster, "needs two GPUs"), report(f"{cluster}::b", "needs two GPUs")],
    }

    assert ["bench                2 passed, 1 failed", "cluster              2 skipped; needs two GPUs"] == table(stats)


def test_a_run_without_tests_of_a_gpu_has_no_table():
    assert [] == table({"passed": [report("tests/unit/test_units.py::c")]})
