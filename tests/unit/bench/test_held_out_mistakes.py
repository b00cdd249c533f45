"""Mistakes that no detector was written for: nine in ten are named, and none is taken for something else alone."""

from __future__ import annotations

import collections
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import held_out_snippets
import pytest
from held_out_mistakes import DESCRIPTIONS
from scripted_clock import ScriptedClock

from edl_labs.bench import measure
from edl_labs.bench.detectors import KINDS

NAMED_OF_ALL = 0.9
CHILD_S = 280  # below pytest's own limit, which would end without a word; a quiet machine takes ten
# These need as many calls as a measurement makes: values grow from call to call.
GROWING = {"power_iteration", "learning_rate_too_high", "numpy_state"}


def kinds_named(name):
    options = getattr(held_out_snippets, name)()
    restore, fn, clock = options.pop("restore", lambda: None), options.pop("fn"), ScriptedClock(cost_s=1e-7)

    def timed(*args):
        clock.t += 1e-4 if name in GROWING else 0.005
        return fn(*args)

    timed.__wrapped__ = fn
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ResourceWarning)
            return [item.kind for item in measure(timed, clock=clock, **options).warnings]
    finally:
        restore()


def all_named():
    return {name: kinds_named(name) for _, name, _ in DESCRIPTIONS}


@pytest.fixture(scope="module")
def named():
    """What was named in a process of its own: the snippets set profilers, threads and modes, and so did other tests.

    In a process that had run thousands of tests, CPython 3.11 was seen to stay in the list of `cprofile_in_the_call`.
    """
    code = "import json, test_held_out_mistakes as tests; print(json.dumps(tests.all_named()))"
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    env = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=CHILD_S, check=False
    )
    assert 0 == done.returncode, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.slow
def test_nine_in_ten_are_named(named):
    missed = [(kind, name, named[name]) for kind, name, _ in DESCRIPTIONS if kind not in named[name]]

    assert len(missed) <= (1 - NAMED_OF_ALL) * len(DESCRIPTIONS), missed


@pytest.mark.slow
def test_none_is_called_by_another_name(named):
    other = {name: named[name] for kind, name, _ in DESCRIPTIONS if set(named[name]) - {kind}}

    assert {} == other


def test_every_description_has_its_code_and_every_new_kind_two_or_more():
    counts = collections.Counter(kind for kind, _, _ in DESCRIPTIONS)

    assert counts.keys() <= set(KINDS)
    assert min(counts.values()) >= 2
    assert all(callable(getattr(held_out_snippets, name, None)) for _, name, _ in DESCRIPTIONS)
