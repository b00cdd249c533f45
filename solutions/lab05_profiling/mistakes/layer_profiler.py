# %% mistake="does_not_wait_for_kernels"
# told: your hooks read the clock before the device had finished a module's work
class LayerProfiler:
    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        self.rows, self.events, self.running, self.handles = {}, [], [], []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self.watch(name or "model", module)
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

    def watch(self, name, module):
        columns = (
            "forward_self_s",
            "forward_total_s",
            "backward_self_s",
            "backward_total_s",
        )
        self.rows[name] = {"calls": 0, **dict.fromkeys(columns, 0.0)}
        self.handles += [
            module.register_forward_pre_hook(lambda *_: self.begin()),
            module.register_forward_hook(lambda *_: self.end(name, "forward")),
            module.register_full_backward_pre_hook(lambda *_: self.begin()),
            module.register_full_backward_hook(lambda *_: self.end(name, "backward")),
        ]

    def read(self):
        return self.clock.now_s()

    def begin(self):
        self.running.append([self.read(), 0.0])

    def end(self, name, phase):
        start, inside = self.running.pop()
        total = self.read() - start
        if self.running:
            self.running[-1][1] += total
        row = self.rows[name]
        row["calls"] += phase == "forward"
        row[phase + "_self_s"] += total - inside
        row[phase + "_total_s"] += total
        self.events.append(
            {
                "name": name,
                "cat": phase,
                "ph": "X",
                "ts": start * 1e6,
                "dur": total * 1e6,
                "pid": 1,
                "tid": 1,
            }
        )

    def table(self):
        return self.rows

    def trace(self):
        return {"traceEvents": self.events}


# %% mistake="hooks_left_behind"
# told: your profiler still reads the clock after it was closed
class LayerProfiler:
    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        self.rows, self.events, self.running, self.handles = {}, [], [], []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self.watch(name or "model", module)
        return self

    def __exit__(self, *error):
        self.handles.clear()

    def watch(self, name, module):
        columns = (
            "forward_self_s",
            "forward_total_s",
            "backward_self_s",
            "backward_total_s",
        )
        self.rows[name] = {"calls": 0, **dict.fromkeys(columns, 0.0)}
        self.handles += [
            module.register_forward_pre_hook(lambda *_: self.begin()),
            module.register_forward_hook(lambda *_: self.end(name, "forward")),
            module.register_full_backward_pre_hook(lambda *_: self.begin()),
            module.register_full_backward_hook(lambda *_: self.end(name, "backward")),
        ]

    def read(self):
        self.clock.synchronize()
        return self.clock.now_s()

    def begin(self):
        self.running.append([self.read(), 0.0])

    def end(self, name, phase):
        start, inside = self.running.pop()
        total = self.read() - start
        if self.running:
            self.running[-1][1] += total
        row = self.rows[name]
        row["calls"] += phase == "forward"
        row[phase + "_self_s"] += total - inside
        row[phase + "_total_s"] += total
        self.events.append(
            {
                "name": name,
                "cat": phase,
                "ph": "X",
                "ts": start * 1e6,
                "dur": total * 1e6,
                "pid": 1,
                "tid": 1,
            }
        )

    def table(self):
        return self.rows

    def trace(self):
        return {"traceEvents": self.events}


# %% mistake="last_call_only"
# told: a module's row in your table contains only one of its calls
class LayerProfiler:
    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        self.rows, self.events, self.running, self.handles = {}, [], [], []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self.watch(name or "model", module)
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

    def watch(self, name, module):
        columns = (
            "forward_self_s",
            "forward_total_s",
            "backward_self_s",
            "backward_total_s",
        )
        self.rows[name] = {"calls": 0, **dict.fromkeys(columns, 0.0)}
        self.handles += [
            module.register_forward_pre_hook(lambda *_: self.begin()),
            module.register_forward_hook(lambda *_: self.end(name, "forward")),
            module.register_full_backward_pre_hook(lambda *_: self.begin()),
            module.register_full_backward_hook(lambda *_: self.end(name, "backward")),
        ]

    def read(self):
        self.clock.synchronize()
        return self.clock.now_s()

    def begin(self):
        self.running.append([self.read(), 0.0])

    def end(self, name, phase):
        start, inside = self.running.pop()
        total = self.read() - start
        if self.running:
            self.running[-1][1] += total
        row = self.rows[name]
        row["calls"] += phase == "forward"
        row[phase + "_self_s"] = total - inside
        row[phase + "_total_s"] = total
        self.events.append(
            {
                "name": name,
                "cat": phase,
                "ph": "X",
                "ts": start * 1e6,
                "dur": total * 1e6,
                "pid": 1,
                "tid": 1,
            }
        )

    def table(self):
        return self.rows

    def trace(self):
        return {"traceEvents": self.events}


# %% mistake="self_time_with_children"
# told: a self time in your table includes the time of the modules inside
class LayerProfiler:
    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        self.rows, self.events, self.running, self.handles = {}, [], [], []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self.watch(name or "model", module)
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

    def watch(self, name, module):
        columns = (
            "forward_self_s",
            "forward_total_s",
            "backward_self_s",
            "backward_total_s",
        )
        self.rows[name] = {"calls": 0, **dict.fromkeys(columns, 0.0)}
        self.handles += [
            module.register_forward_pre_hook(lambda *_: self.begin()),
            module.register_forward_hook(lambda *_: self.end(name, "forward")),
            module.register_full_backward_pre_hook(lambda *_: self.begin()),
            module.register_full_backward_hook(lambda *_: self.end(name, "backward")),
        ]

    def read(self):
        self.clock.synchronize()
        return self.clock.now_s()

    def begin(self):
        self.running.append([self.read(), 0.0])

    def end(self, name, phase):
        start, inside = self.running.pop()
        total = self.read() - start
        if self.running:
            self.running[-1][1] += total
        row = self.rows[name]
        row["calls"] += phase == "forward"
        row[phase + "_self_s"] += total
        row[phase + "_total_s"] += total
        self.events.append(
            {
                "name": name,
                "cat": phase,
                "ph": "X",
                "ts": start * 1e6,
                "dur": total * 1e6,
                "pid": 1,
                "tid": 1,
            }
        )

    def table(self):
        return self.rows

    def trace(self):
        return {"traceEvents": self.events}


# %% mistake="trace_in_seconds"
# told: an event of your trace has the wrong `ts` or `dur`
class LayerProfiler:
    def __init__(self, model, clock):
        self.model, self.clock = model, clock
        self.rows, self.events, self.running, self.handles = {}, [], [], []

    def __enter__(self):
        for name, module in self.model.named_modules():
            self.watch(name or "model", module)
        return self

    def __exit__(self, *error):
        for handle in self.handles:
            handle.remove()

    def watch(self, name, module):
        columns = (
            "forward_self_s",
            "forward_total_s",
            "backward_self_s",
            "backward_total_s",
        )
        self.rows[name] = {"calls": 0, **dict.fromkeys(columns, 0.0)}
        self.handles += [
            module.register_forward_pre_hook(lambda *_: self.begin()),
            module.register_forward_hook(lambda *_: self.end(name, "forward")),
            module.register_full_backward_pre_hook(lambda *_: self.begin()),
            module.register_full_backward_hook(lambda *_: self.end(name, "backward")),
        ]

    def read(self):
        self.clock.synchronize()
        return self.clock.now_s()

    def begin(self):
        self.running.append([self.read(), 0.0])

    def end(self, name, phase):
        start, inside = self.running.pop()
        total = self.read() - start
        if self.running:
            self.running[-1][1] += total
        row = self.rows[name]
        row["calls"] += phase == "forward"
        row[phase + "_self_s"] += total - inside
        row[phase + "_total_s"] += total
        self.events.append(
            {
                "name": name,
                "cat": phase,
                "ph": "X",
                "ts": start,
                "dur": total,
                "pid": 1,
                "tid": 1,
            }
        )

    def table(self):
        return self.rows

    def trace(self):
        return {"traceEvents": self.events}
