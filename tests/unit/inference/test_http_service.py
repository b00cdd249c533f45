"""A server on loopback: whose answer goes to whom, who is refused, and what becomes of errors; and its counts."""

from __future__ import annotations

import math
import threading
import time
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from edl_labs.errors import EdlError
from edl_labs.inference import http_service
from edl_labs.inference.http_load import load_over_http
from edl_labs.inference.http_service import HttpService, missing_for_http, served
from edl_labs.inference.service_counts import Histogram, ServiceCounts
from edl_labs.virtual.server import BatchLimits

MISSING = missing_for_http()
needs_http = pytest.mark.skipif(bool(MISSING), reason=f"no server here: {MISSING}")


async def answer(service, asked):
    if len(service.queue) >= service.limits.max_queue:
        return 503, {"error": "full"}
    return await service.reply_to(service.enqueue(asked))


async def health(service, asked):
    return 200, "ok"


async def metrics(service, asked):
    return 200, service.counts.as_text(len(service.queue))


async def batches(service):
    while True:
        for one in list(service.queue):
            if service.now_s() - one.arrival_s > service.limits.timeout_s:
                service.reply(one.number, 503, {"error": "timed out"})
        if service.queue:
            await service.run([one.number for one in service.queue[: service.limits.max_batch]])
        else:
            await service.arrival()


ROUTES = {"POST /predict": answer, "GET /health": health, "GET /metrics": metrics}


def doubled(asked):
    return [{"doubled": 2 * one["number"]} for one in asked]


def service_of(model=doubled, **limits):
    return HttpService(model, BatchLimits(**{"max_batch": 8, "max_queue": 100, "timeout_s": 60.0, **limits}))


@needs_http
def test_each_client_gets_the_answer_to_its_own_request():
    service = service_of()
    with served(service, ROUTES, batches) as url:
        loaded = load_over_http(f"{url}/predict", [{"number": n} for n in range(50)], [0.0] * 50)

    assert [{"doubled": 2 * n} for n in range(50)] == list(loaded.bodies)
    assert {"answered"} == {one.outcome for one in loaded.calls}
    assert 50 == sum(service.counts.batch_sizes)
    assert max(service.counts.batch_sizes) <= 8


@needs_http
def test_requests_that_come_while_the_model_runs_share_the_next_batch():
    held = threading.Event()

    def waits(asked):
        held.wait(20)
        return doubled(asked)

    service = service_of(waits)
    with served(service, ROUTES, batches) as url:
        threading.Thread(target=lambda: released_when(lambda: len(service.queue) == 5, held)).start()
        load_over_http(f"{url}/predict", [{"number": n} for n in range(6)], [0.0] + [0.2] * 5, limit_s=30)

    assert [1, 5] == service.counts.batch_sizes


def waits_for(service, at_least_s):
    return bool(service.queue) and service.now_s() - service.queue[0].arrival_s > at_least_s


def released_when(seen, held):
    """Let the model go on when something is seen, or after ten seconds."""
    for _ in range(1000):
        if seen():
            break
        time.sleep(0.01)
    held.set()


@needs_http
def test_refused_and_given_up_requests_get_503_and_say_which():
    held = threading.Event()

    def waits(asked):
        held.wait(20)
        return doubled(asked)

    service = service_of(waits, max_queue=2, timeout_s=1.0)
    with served(service, ROUTES, batches) as url:
        threading.Thread(target=lambda: released_when(lambda: waits_for(service, 1.2), held)).start()
        loaded = load_over_http(f"{url}/predict", [{"number": n} for n in range(6)], [0.0] + [0.5] * 5, limit_s=30)
        page = urlopen(f"{url}/metrics").read().decode()

    assert sorted(["answered", "timed out", "timed out", "full", "full", "full"]) == sorted(
        one.outcome for one in loaded.calls
    )
    assert 'requests_total{status="503"} 5\n' in page
    assert "queue_length 0\n" in page


@needs_http
@pytest.mark.parametrize("part", ["model", "task", "handler"])
def test_what_a_part_raises_ends_every_wait_and_comes_out_of_the_block(part):
    def broken(*_):
        raise KeyError("mine")

    async def broken_task(service):
        broken()

    async def broken_handler(service, asked):
        broken()

    service = service_of(broken if part == "model" else doubled)
    routes = {**ROUTES, "POST /predict": broken_handler} if part == "handler" else ROUTES
    task, loads = broken_task if part == "task" else batches, []
    with pytest.raises(KeyError, match="mine"), served(service, routes, task) as url:
        loads.append(load_over_http(f"{url}/predict", [{"number": 1}] * 3, [0.0] * 3, limit_s=60))

    assert {("unanswered", True)} == {(one.outcome, one.end_s < 60) for one in loads[0].calls}  # none for the limit


@needs_http
def test_a_task_that_ends_is_an_error():
    async def ends(service):
        return

    with pytest.raises(RuntimeError, match="has ended"), served(service_of(), ROUTES, ends) as url:
        urlopen(f"{url}/health")  # status 500, which the error explains


@needs_http
def test_a_body_that_is_no_json_is_the_clients_error_and_the_server_goes_on():
    with served(service_of(), ROUTES, batches) as url:
        with pytest.raises(HTTPError, match="400"):
            urlopen(f"{url}/predict", data=b"{")

        assert b"ok" == urlopen(f"{url}/health").read()


@needs_http
def test_at_the_limit_of_a_load_nothing_is_waited_for():
    async def nothing(service):
        await service.arrival()
        await service.arrival(until_s=service.now_s() + 1000)

    with served(service_of(), ROUTES, nothing) as url:
        loaded = load_over_http(f"{url}/predict", [{"number": 1}], [0.0], limit_s=0.5)

    assert [("unanswered", math.inf)] == [(one.outcome, one.end_s) for one in loaded.calls]


@needs_http
def test_the_port_is_free_again_and_no_thread_is_left():
    with served(service_of(), ROUTES, batches) as url:
        pass

    assert [] == [one for one in threading.enumerate() if one.name.startswith("edl_labs http")]
    with pytest.raises(OSError, match="refused"):
        urlopen(f"{url}/health")


@pytest.mark.parametrize("count", [0, 2001])
def test_a_load_is_bounded(count):
    with pytest.raises(EdlError, match="1 to 2,000"):
        load_over_http("http://127.0.0.1:1/", [{}] * count, [0.0] * count)


def test_a_run_for_marks_says_so_and_starts_nothing(monkeypatch):
    monkeypatch.setenv("EDL_LABS_QUICK", "1")

    assert "this is a quick run" == missing_for_http()
    with pytest.raises(EdlError, match="no server can run here"), served(service_of(), ROUTES, batches):
        pass


def test_without_the_package_or_the_socket_the_reason_is_said(monkeypatch):
    monkeypatch.setattr(http_service.importlib.util, "find_spec", lambda name: None)
    assert "edl-labs[serve]" in missing_for_http()
    monkeypatch.setattr(http_service.importlib.util, "find_spec", lambda name: object())

    def refused(*_, **__):
        raise PermissionError

    monkeypatch.setattr(http_service.socket, "create_server", refused)
    assert "no connection to 127.0.0.1 (PermissionError)" == missing_for_http()


def test_a_histogram_knows_a_quantile_up_to_a_bound():
    times = Histogram((0.01, 0.1, 1.0))
    for value in [0.01] * 98 + [0.5] * 2:
        times.add(value)

    assert [98, 98, 100] == times.at_most
    assert (0.01, 1.0) == (times.quantile_bound(0.98), times.quantile_bound(0.99))


def test_counts_of_batches_have_a_bound_for_each_doubling_and_the_largest():
    assert [(1,), (1, 2, 4, 6), (1, 2, 4, 8, 16)] == [ServiceCounts(most).batch_size.bounds for most in (1, 6, 16)]
