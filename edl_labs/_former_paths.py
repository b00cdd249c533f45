"""Where modules and names used to be: released notebooks, other courses and deployed configurations import them there.

One line a path. An import of a former path, or of anything below it, gives the module of today: the same object, so
that nothing exists twice.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

# former dotted path → today's; a folder's line holds for everything below it that has no line of its own
MODULES = {
    "edl_labs.authoring": "edl_labs.course.lab",
    "edl_labs.bench.blocked": "edl_labs.bench.timing.paired_rounds",
    "edl_labs.bench.blocks": "edl_labs.bench.timing.blocks",
    "edl_labs.bench.cold": "edl_labs.bench.timing.cache_flush",
    "edl_labs.bench.comparing": "edl_labs.bench._compare",
    "edl_labs.bench.comparison": "edl_labs.bench.results",
    "edl_labs.bench.feed": "edl_labs.bench.timing.blocks",
    "edl_labs.bench.graph": "edl_labs.bench.timing.cuda_graph",
    "edl_labs.bench.interrupts": "edl_labs.bench.timing.processor_state",
    "edl_labs.bench.measurement": "edl_labs.bench.results",
    "edl_labs.bench.measuring": "edl_labs.bench._measure",
    "edl_labs.bench.mistakes": "edl_labs.bench.detectors",
    "edl_labs.bench.mistakes.host": "edl_labs.bench.detectors.waiting",
    "edl_labs.bench.mistakes.inputs": "edl_labs.bench.detectors.inputs_and_results",
    "edl_labs.bench.mistakes.light": "edl_labs.bench.detectors.machine_limits",
    "edl_labs.bench.mistakes.session": "edl_labs.bench.detectors.detection",
    "edl_labs.bench.mistakes.texts": "edl_labs.bench.detectors.detection",
    "edl_labs.bench.outputs": "edl_labs.bench.equal_outputs",
    "edl_labs.bench.pick": "edl_labs.bench.timing.reachable_objects",
    "edl_labs.bench.reach": "edl_labs.bench.timing.reachable_objects",
    "edl_labs.bench.rounds": "edl_labs.bench.timing.paired_rounds",
    "edl_labs.bench.sampling": "edl_labs.bench.timing.warmup",
    "edl_labs.bench.selfchecking": "edl_labs.bench._selfcheck",
    "edl_labs.bench.show": "edl_labs.ui.timing_reports",
    "edl_labs.bench.stamp": "edl_labs.device",
    "edl_labs.bench.state": "edl_labs.bench.timing.processor_state",
    "edl_labs.bench.sweeping": "edl_labs.bench._sweep",
    "edl_labs.bench.text": "edl_labs.units",
    "edl_labs.bench.timer": "edl_labs.bench._timer",
    "edl_labs.bench.values": "edl_labs.bench.results",
    "edl_labs.bench.warmup": "edl_labs.bench.timing.warmup",
    "edl_labs.checks.exercise": "edl_labs.checks._exercise",
    "edl_labs.checks.judge": "edl_labs.checks._judge",
    "edl_labs.checks.notebook": "edl_labs.checks._check",
    "edl_labs.checks.plain": "edl_labs.checks.plain_data",
    "edl_labs.checks.public": "edl_labs.checks.lab_facts",
    "edl_labs.checks.quiet": "edl_labs.checks.caught_output",
    "edl_labs.checks.structure": "edl_labs.checks.evidence_form",
    "edl_labs.checks.student": "edl_labs.checks.evidence",
    "edl_labs.checks.worker": "edl_labs.checks.probe_process",
    "edl_labs.course.grade.assignment": "edl_labs.course.assignment",
    "edl_labs.course.grade.cluster.spread": "edl_labs.course.grade.cluster.grading_units",
    "edl_labs.course.grade.cluster.unit": "edl_labs.course.grade.cluster.grading_units",
    "edl_labs.course.grade.course_folder": "edl_labs.course.course_folder",
    "edl_labs.course.grade.graded_class": "edl_labs.course.grade.classrun",
    "edl_labs.course.grade.quick_imports": "edl_labs.course.course_folder",
    "edl_labs.course.lab.course": "edl_labs.course.course_folder",
    "edl_labs.course.lab.imports": "edl_labs.course.lab.rules",
    "edl_labs.course.lab.lab": "edl_labs.course.lab.parsed_lab",
    "edl_labs.course.lab.markers": "edl_labs.course.lab.source",
    "edl_labs.course.lab.notebook": "edl_labs.course.lab.source_notebook",
    "edl_labs.course.lab.proof": "edl_labs.course.lab.prove",
    "edl_labs.course.lab.release": "edl_labs.course.lab.source_notebook",
    "edl_labs.course.lab.table": "edl_labs.course.lab.build",
    "edl_labs.course.lab.templates": "edl_labs.course.lab.scaffold",
    "edl_labs.course.lab.toml_lines": "edl_labs.course.lab.lab_toml",
    "edl_labs.course.marks.policy": "edl_labs.course.policy",
    "edl_labs.course.run.engine": "edl_labs.course.run.watched_kernel",
    "edl_labs.course.run.integrity": "edl_labs.course.run.checkfile",
    "edl_labs.course.run.junit": "edl_labs.course.run.run_report",
    "edl_labs.course.run.notebook_job": "edl_labs.course.run.watched_kernel",
    "edl_labs.course.run.notebooks": "edl_labs.course.run.notebook_file",
    "edl_labs.course.run.plan": "edl_labs.course.run.run_plan",
    "edl_labs.course.run.safe_text": "edl_labs.course.run.run_report",
    "edl_labs.course.run.session": "edl_labs.course.run.watched_kernel",
    "edl_labs.course.run.stamp": "edl_labs.course.run.execute",
    "edl_labs.course.run.start": "edl_labs.course.start",
    "edl_labs.course.run.text": "edl_labs.course.run.run_report",
    "edl_labs.course.run.values": "edl_labs.course.run.run_report",
    "edl_labs.exercises._lab01_programs": "edl_labs.exercises.recorded_programs",
    "edl_labs.grading": "edl_labs.course.grade",
    "edl_labs.grading.kernel": "edl_labs.course.sandbox.kernel",
    "edl_labs.grading.kernel.messages": "edl_labs.course.sandbox.kernel.cell_outputs",
    "edl_labs.grading.kernel.outputs": "edl_labs.course.sandbox.kernel.cell_outputs",
    "edl_labs.grading.kernel.zygote": "edl_labs.course.sandbox.zygote",
    "edl_labs.grading.report": "edl_labs.course.grade.classrun",
    "edl_labs.grading.sandbox": "edl_labs.course.sandbox",
    "edl_labs.grading.term": "edl_labs.course.marks",
    "edl_labs.grading.term.book": "edl_labs.course.marks.student_marks",
    "edl_labs.grading.term.dates": "edl_labs.course.policy",
    "edl_labs.grading.term.exporter": "edl_labs.course.marks.nbgrader_plugins",
    "edl_labs.grading.term.glance": "edl_labs.course.marks.class_report",
    "edl_labs.grading.term.late": "edl_labs.course.marks.nbgrader_plugins",
    "edl_labs.grading.term.naming": "edl_labs.course.marks.lms.learning_system",
    "edl_labs.grading.term.similar": "edl_labs.course.marks.similarity",
    "edl_labs.hardware.accelerator": "edl_labs.hardware._accelerator",
    "edl_labs.hardware.experiments": "edl_labs.virtual.gpu.experiments",
    "edl_labs.hardware.peak": "edl_labs.hardware.peaks",
    "edl_labs.hardware.real_gpu": "edl_labs.virtual.gpu.experiments",
    "edl_labs.hardware.record": "edl_labs.virtual.gpu.experiments",
    "edl_labs.hardware.table": "edl_labs.hardware._accelerator",
    "edl_labs.numerics.activations": "edl_labs.numerics._saved_activations",
    "edl_labs.numerics.aligning": "edl_labs.numerics._alignment",
    "edl_labs.numerics.amp": "edl_labs.numerics._amp_report",
    "edl_labs.numerics.autocast": "edl_labs.numerics._autocast_table",
    "edl_labs.numerics.format_class": "edl_labs.numerics._float_format",
    "edl_labs.numerics.formats": "edl_labs.numerics._float_format",
    "edl_labs.numerics.memory": "edl_labs.numerics._bytes_per_parameter",
    "edl_labs.numerics.prediction": "edl_labs.numerics._predict_amp",
    "edl_labs.numerics.rates": "edl_labs.numerics._rates_here",
    "edl_labs.numerics.tf32_setting": "edl_labs.numerics._rates_here",
    "edl_labs.numerics.tracing": "edl_labs.numerics.autocast_trace",
    "edl_labs.numerics.underflow": "edl_labs.numerics._underflow_report",
    "edl_labs.pipeline._pack": "edl_labs.pipeline._frontier",
    "edl_labs.pipeline.broken": "edl_labs.pipeline.errors",
    "edl_labs.pipeline.checked": "edl_labs.pipeline.batching",
    "edl_labs.pipeline.data": "edl_labs.pipeline.synthetic_data",
    "edl_labs.pipeline.decoder_ranks": "edl_labs.pipeline._rank_decoders",
    "edl_labs.pipeline.fault": "edl_labs.pipeline",
    "edl_labs.pipeline.formats": "edl_labs.pipeline.stores",
    "edl_labs.pipeline.frontier_points": "edl_labs.pipeline._frontier",
    "edl_labs.pipeline.images": "edl_labs.pipeline._measure_ladder",
    "edl_labs.pipeline.jpeg_decoders": "edl_labs.pipeline.jpeg",
    "edl_labs.pipeline.limits": "edl_labs.pipeline._within",
    "edl_labs.pipeline.loader": "edl_labs.pipeline",
    "edl_labs.pipeline.mock": "edl_labs.pipeline.fault_runs",
    "edl_labs.pipeline.packing": "edl_labs.pipeline._frontier",
    "edl_labs.pipeline.prediction": "edl_labs.pipeline.loader_model",
    "edl_labs.pipeline.randomness": "edl_labs.pipeline._frontier",
    "edl_labs.pipeline.stage_ladder": "edl_labs.pipeline._measure_ladder",
    "edl_labs.pipeline.waste_meter": "edl_labs.pipeline.batching",
    "edl_labs.plots.bench": "edl_labs.plots.timings",
    "edl_labs.plots.layers": "edl_labs.plots.trace_pictures",
    "edl_labs.plots.nested_pictures": "edl_labs.plots.trace_pictures",
    "edl_labs.plots.numerics": "edl_labs.plots.number_formats",
    "edl_labs.plots.pipeline": "edl_labs.plots.data_pipelines",
    "edl_labs.plots.roofline": "edl_labs.plots.roofs",
    "edl_labs.plots.timeline": "edl_labs.plots.timeline_picture",
    "edl_labs.plots.trace": "edl_labs.plots.trace_pictures",
    "edl_labs.roofline.arithmetic": "edl_labs.roofline.operators.other_flops",
    "edl_labs.roofline.bounds": "edl_labs.roofline._bound",
    "edl_labs.roofline.card": "edl_labs.roofline.machine_ceilings",
    "edl_labs.roofline.contractions": "edl_labs.roofline.operators.contractions",
    "edl_labs.roofline.counting": "edl_labs.roofline._count",
    "edl_labs.roofline.kernels": "edl_labs.roofline.microbenchmarks.kernels",
    "edl_labs.roofline.levels": "edl_labs.roofline.microbenchmarks.fastest_kernels",
    "edl_labs.roofline.machine": "edl_labs.roofline.machine_ceilings",
    "edl_labs.roofline.measuring": "edl_labs.roofline._ceilings",
    "edl_labs.roofline.points": "edl_labs.roofline._place",
    "edl_labs.roofline.reckoning": "edl_labs.roofline.operators.counted_call",
    "edl_labs.roofline.recording": "edl_labs.roofline.operators.recorder",
    "edl_labs.roofline.remembered": "edl_labs.roofline._ceilings",
    "edl_labs.roofline.rounds": "edl_labs.roofline.microbenchmarks.kernels",
    "edl_labs.roofline.running": "edl_labs.roofline.operators.recorded_run",
    "edl_labs.roofline.traffic": "edl_labs.roofline.operators.counted_call",
    "edl_labs.running": "edl_labs.course.run",
    "edl_labs.running.maths": "edl_labs.course.pages.notebook_page",
    "edl_labs.running.page": "edl_labs.course.pages.notebook_page",
    "edl_labs.trace._ablate": "edl_labs.trace._what_if",
    "edl_labs.trace._side_by_side": "edl_labs.trace.samplers",
    "edl_labs.trace.ablate": "edl_labs.trace._what_if",
    "edl_labs.trace.ablated": "edl_labs.trace.traced_gpu",
    "edl_labs.trace.antipatterns": "edl_labs.trace._antipatterns",
    "edl_labs.trace.attribute": "edl_labs.trace._attribute",
    "edl_labs.trace.attribution_rule": "edl_labs.trace._attribute",
    "edl_labs.trace.blame": "edl_labs.trace.analysed_trace",
    "edl_labs.trace.charging": "edl_labs.trace._attribute",
    "edl_labs.trace.classify": "edl_labs.trace.chrome_events",
    "edl_labs.trace.corpus.spec": "edl_labs.trace.corpus.labelled",
    "edl_labs.trace.device": "edl_labs.trace.device_work",
    "edl_labs.trace.diagnose": "edl_labs.trace._diagnose",
    "edl_labs.trace.events": "edl_labs.trace.chrome_events",
    "edl_labs.trace.gpu_without_cause": "edl_labs.trace.traced_gpu",
    "edl_labs.trace.graph": "edl_labs.trace.dependency_graph",
    "edl_labs.trace.host": "edl_labs.trace.host_stretches",
    "edl_labs.trace.live": "edl_labs.trace.traced_gpu",
    "edl_labs.trace.nesting": "edl_labs.trace.trace_table",
    "edl_labs.trace.quiet": "edl_labs.trace.loops",
    "edl_labs.trace.reader": "edl_labs.trace._read_trace",
    "edl_labs.trace.recording": "edl_labs.trace.loop_recordings",
    "edl_labs.trace.report": "edl_labs.trace._diagnose",
    "edl_labs.trace.side_by_side": "edl_labs.trace.samplers",
    "edl_labs.trace.simulate": "edl_labs.trace._what_if",
    "edl_labs.trace.table": "edl_labs.trace.trace_table",
    "edl_labs.trace.torch_loop": "edl_labs.trace.loops",
    "edl_labs.trace.what_if": "edl_labs.trace._what_if",
    "edl_labs.ui.format_explorer": "edl_labs.ui.number_format_widgets",
    "edl_labs.ui.outcome": "edl_labs.checks.outcome_display",
    "edl_labs.ui.progress": "edl_labs.checks.outcome_display",
    "edl_labs.ui.still": "edl_labs.ui.live_or_still",
    "edl_labs.ui.underflow_slider": "edl_labs.ui.number_format_widgets",
    "edl_labs.virtual.buffers": "edl_labs.virtual.gpu.buffers",
    "edl_labs.virtual.cache": "edl_labs.virtual.gpu.engine",
    "edl_labs.virtual.clock": "edl_labs.virtual.host_clock",
    "edl_labs.virtual.core": "edl_labs.virtual.gpu.core",
    "edl_labs.virtual.dataflow": "edl_labs.virtual.gpu.dataflow",
    "edl_labs.virtual.engine": "edl_labs.virtual.gpu.engine",
    "edl_labs.virtual.events": "edl_labs.virtual.loader.discrete_events",
    "edl_labs.virtual.gpu.real_gpu": "edl_labs.virtual.gpu.experiments",
    "edl_labs.virtual.layers": "edl_labs.virtual.training",
    "edl_labs.virtual.loader_engine": "edl_labs.virtual.loader.loader_engine",
    "edl_labs.virtual.loader_machine": "edl_labs.virtual.loader.loader_machine",
    "edl_labs.virtual.machine": "edl_labs.virtual.gpu.machine",
    "edl_labs.virtual.pricing": "edl_labs.virtual.gpu.machine",
    "edl_labs.virtual.program": "edl_labs.virtual.gpu.operations",
    "edl_labs.virtual.races": "edl_labs.virtual.gpu.races",
    "edl_labs.virtual.readings": "edl_labs.virtual.recorded",
    "edl_labs.virtual.replay": "edl_labs.virtual.gpu._replay",
    "edl_labs.virtual.storage": "edl_labs.virtual.loader.discrete_events",
    "edl_labs.virtual.streams": "edl_labs.virtual.gpu.streams",
    "edl_labs.virtual.workers": "edl_labs.virtual.loader.workers",
    "edl_labs.virtual.workers_replay": "edl_labs.virtual.loader._replay_workers",
}
# former module → name it had and its module of today does not have → where the object is today
NAMES = {
    "edl_labs.bench.show": {
        "comparison_text": "edl_labs.bench.results.comparison_text",
        "measurement_text": "edl_labs.bench.results.measurement_text",
    },
    "edl_labs.checks.exercise": {
        "exercises_folder": "edl_labs.checks.lab_exercises.exercises_folder",
        "find": "edl_labs.checks.lab_exercises.find",
        "lab_names": "edl_labs.checks.lab_exercises.lab_names",
        "load_lab": "edl_labs.checks.lab_exercises.load_lab",
    },
    "edl_labs.checks.quiet": {"quiet": "edl_labs.checks.caught_output.caught_output"},
    "edl_labs.checks.worker": {"WorkerDied": "edl_labs.checks.probe_process.ProbeDied"},
    "edl_labs.course.grade.student_names": {"EscapedNames": "edl_labs.course.marks.nbgrader_plugins.EscapedNames"},
    "edl_labs.roofline.counting": {"short_dtype": "edl_labs.roofline.operators.counted_call.short_dtype"},
    "edl_labs.trace.diagnose": {"VERDICTS": "edl_labs.trace.causes.VERDICTS"},
    "edl_labs.trace.host": {"CAUSES": "edl_labs.trace.causes.CAUSES"},
}


def today(path: str) -> str:
    """The dotted path that a former one, or one below it, has today; the path itself where it never moved.

    >>> today("edl_labs.grading.term.late"), today("edl_labs.clock")
    ('edl_labs.course.marks.nbgrader_plugins', 'edl_labs.clock')
    """
    known, rest = path, ""
    while known:
        if known in MODULES:
            moved = MODULES[known] + rest
            return moved if moved == path else today(moved)
        known, _, last = known.rpartition(".")
        rest = f".{last}{rest}"
    return path


class _Former:
    """Finds a former path and loads it as the module of today; without importlib.abc, which takes long to import."""

    def find_spec(self, path: str, where: Sequence[str] | None = None, target: Any = None) -> ModuleSpec | None:
        if not path.startswith("edl_labs.") or today(path) == path:
            return None
        _keep_facade_names(path)
        return ModuleSpec(path, self, origin=today(path))  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = import_module(today(spec.name))
        spec.loader_state = (module.__spec__, module.__name__)
        if spec.name in NAMES:
            vars(module).setdefault("__getattr__", partial(former_name, module.__name__))
        return module

    def exec_module(self, module: ModuleType) -> None:
        """The module has run under its own name; importing has only put a former spec in place of its own."""
        former = module.__spec__
        if former is not None and former.loader is self:
            module.__spec__, module.__name__ = former.loader_state


class _Facade(ModuleType):
    """A package whose public functions stay what they are when a former module of the same name is imported."""

    def __setattr__(self, name: str, value: Any) -> None:
        kept = self.__dict__.get(name)
        if not (isinstance(value, ModuleType) and kept is not None and not isinstance(kept, ModuleType)):
            super().__setattr__(name, value)


def _keep_facade_names(path: str) -> None:
    parent, _, name = path.rpartition(".")
    package = sys.modules.get(parent)
    if type(package) is ModuleType and name in getattr(package, "__all__", ()):
        getattr(package, name)
        package.__class__ = _Facade


def former_name(module: str, name: str) -> Any:
    """What a name that a module of today had under a former path is today; AttributeError where there is none."""
    for path, names in NAMES.items():
        if name in names and today(path) == module:
            home, _, now = names[name].rpartition(".")
            return getattr(import_module(home), now)
    raise AttributeError(f"module {module!r} has no attribute {name!r}")


def install() -> None:
    """Let imports of former paths find the modules of today."""
    if not any(isinstance(finder, _Former) for finder in sys.meta_path):
        # First, since the parts of a moved package would else be found, and loaded again, in its folder of today.
        sys.meta_path.insert(0, _Former())
