"""Clocks that only move when a test moves them, and noise that comes from a seed: no real time in these tests."""

from __future__ import annotations

import math

import numpy as np

from edl_labs.clock import HostClock


class ScriptedClock(HostClock):
    """A host clock on scripted time; each reading costs `cost_s`, and readings are rounded down to `step_s`."""

    name = "scripted"
    modelled = True

    def __init__(self, *, cost_s=0.0, step_s=1e-12):
        self.t = 0.0
        self.cost_s, self.step_s = cost_s, step_s
        self.reads = 0

    @property
    def resolution_s(self):
        return self.step_s

    @property
    def read_cost_s(self):
        return self.cost_s

    def now_s(self):
        self.reads += 1
        self.t += self.cost_s
        return self.t if self.step_s <= 1e-12 else math.floor(self.t / self.step_s) * self.step_s


class DeviceClock(ScriptedClock):
    """A device behind a queue: a call takes `launch_s` of the host, its work runs later, `synchronize` waits."""

    name = "scripted device"

    def __init__(self, *, launch_s=2e-6, sync_s=5e-6, **options):
        super().__init__(**options)
        self.launch_s, self.sync_s, self.free_at = launch_s, sync_s, 0.0

    def queue(self, work_s):
        self.t += self.launch_s
        self.free_at = max(self.free_at, self.t) + work_s

    def synchronize(self):
        self.t = max(self.t, self.free_at) + self.sync_s


def payload(clock, cost_s, *, noise=None, result=None):
    """A function whose call takes `cost_s` times what `noise(t)` says at that time."""

    def call():
        clock.t += cost_s if noise is None else cost_s * noise(clock.t)
        return result

    return call


def ticked(clock, cost_s, *, every_s=1e-3, tick_s=25e-6):
    """A function whose call takes `cost_s`, and `tick_s` more for each timer tick that falls into it."""

    def call():
        ticks = math.floor((clock.t + cost_s) / every_s) - math.floor(clock.t / every_s)
        clock.t += cost_s + ticks * tick_s

    return call


class Noise:
    """A factor on every cost, as a function of time: one of the shapes that real machines show, from a seed."""

    SHAPES = ("drift", "bursts", "bimodal", "heavy", "mixed")

    def __init__(self, shape, seed, *, until_s=1.0, step_s=2e-4):
        self.rng = np.random.default_rng(seed)
        self._step_s = step_s
        count = int(until_s / step_s) + 2
        self._slow = np.ones(count)
        if shape in ("drift", "mixed"):
            walk = np.cumsum(self.rng.standard_normal(count)) / math.sqrt(count)
            self._slow *= np.exp(0.1 * np.linspace(0, 1, count) * self.rng.choice([-1, 1]) + 0.03 * walk)
        if shape in ("bursts", "mixed"):
            self._slow *= 1 + self._telegraph(count, on=0.02, off=0.2) * self.rng.exponential(0.6, count)
        if shape in ("bimodal", "mixed"):
            self._slow *= np.where(self._telegraph(count, on=0.01, off=0.015) > 0, 1.3, 1.0)
        self._values = iter(())
        self._shape = shape

    def _telegraph(self, count, *, on, off):
        draws, state, out = self.rng.random(count), 0, np.zeros(count)
        for i in range(count):
            state = int(draws[i] > off) if state else int(draws[i] < on)
            out[i] = state
        return out

    def __call__(self, t):
        slow = self._slow[min(int(t / self._step_s), len(self._slow) - 1)]
        fast = next(self._values, None)
        if fast is None:
            if self._shape in ("heavy", "mixed"):
                drawn = np.clip(1 + 0.01 * self.rng.standard_t(1.3, 512), 0.2, 50.0)
            else:
                drawn = 1 + 0.02 * np.abs(self.rng.standard_normal(512))
            self._values = iter(drawn.tolist())
            fast = next(self._values)
        return slow * fast
