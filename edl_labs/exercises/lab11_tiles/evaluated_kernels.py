"""The judge's side: the source's kernels are evaluated on values that the student's process has never seen."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from edl_labs.errors import EdlError, Wrong
from edl_labs.exercises.lab11_tiles.launch_programs import Buffer, HostLaunch, LaunchProgram, read_launch_program
from edl_labs.units import counted
from edl_labs.virtual.tiles import LaunchRecord, TileError, evaluate, parse_kernels

FP32_ROUNDING = 2.0**-24  # half of the distance from 1 to the next fp32 number
FP16_ROUNDING = 2.0**-11  # half of the distance from 1 to the next fp16 number
FP16_TINY = 2.0**-25  # half of the smallest fp16 number
_MOST_CELL_LETTERS = 64_000  # the evaluator's own bound on a source
_MOST_CALL_LETTERS = 60  # of a load or store that a message shows: it stays on one line


@dataclass(frozen=True)
class KernelRun:
    """What the launches of a host function did: flat tensors afterwards, and what each launch moved."""

    kernels: str
    program: LaunchProgram
    inputs: Mapping[str, Any]
    tensors: dict[str, Any]
    launches: tuple[LaunchRecord, ...]
    read: dict[str, int]
    written: dict[str, int]
    written_once: dict[str, int]

    @property
    def live_bytes(self) -> int:
        """The largest sum of block values that a program needs at once."""
        return max((one.live_bytes for one in self.launches), default=0)

    def read_elements(self, name: str) -> int:
        """Elements of a tensor that all programs read together."""
        return self.read.get(name, 0)

    def written_elements(self, name: str) -> int:
        """Elements of a tensor that all programs wrote together."""
        return self.written.get(name, 0)

    @property
    def moved_elements_of_buffers(self) -> int:
        """Elements of allocated tensors that were read or written."""
        names = [one.name for one in self.program.allocated]
        return sum(self.read_elements(name) + self.written_elements(name) for name in names)

    def output(self, form: Any) -> Any:
        """What the host returned, in its shape; Wrong where it is of another size or type, or not all written."""
        name, elements = self.program.returned, math.prod(form.shape)
        made = next((one for one in self.program.allocated if one.name == name), None)
        if made is None:
            why, then = (
                f"it returned `{name}`, which is one of its inputs",
                "allocate the output, and return it",
            )
            raise Wrong("Your host function does not return a new tensor.", why=why, next=then)
        if (made.elements, made.dtype) != (elements, form.dtype):
            why = f"got {made.elements:,} {made.dtype} elements, expected {elements:,} {form.dtype} elements"
            then = "allocate one element for each result, in the requested dtype"
            raise Wrong("Your output has the wrong size or type.", why=why, next=then)
        self._require_written(name, elements)
        return self.tensors[name].reshape(form.shape)

    def _require_written(self, name: str, elements: int) -> None:
        written = self.written_once.get(name, 0)
        if written == elements:
            return
        programs, missing = max(1, sum(one.programs for one in self.launches)), elements - written
        why = f"{missing:,} of {elements:,} elements are not written by the grid of {counted(programs, 'program')}"
        places = self._untouched(name)
        if len(places) != missing:  # zeros, or values that cannot be told from memory that nobody wrote
            places = []
        each, rest = divmod(written, programs)
        if places and places[0] == written and not rest and each & (each - 1) == 0 and missing < each:
            then = "round the number of programs up: cdiv(n, BLOCK)"
            why = f"{why}, each of which writes {each:,} elements"
            raise Wrong("Your kernel never writes the end of the output: the grid is rounded down.", why=why, next=then)
        why = f"{why}; the first of them is element {places[0]:,}" if places else why
        then = (
            "which programs should write these elements? Check that the grid has these programs, and that the "
            "masks of their stores include these elements"
        )
        raise Wrong("Your kernel never writes some elements of the output.", why=why, next=then)

    def _untouched(self, name: str) -> list[int]:
        """Where a tensor still has what memory holds that nobody wrote; also where a kernel wrote just that."""
        import numpy as np

        values = self.tensors[name]
        is_empty = values == np.iinfo(values.dtype).min if values.dtype.kind == "i" else np.isnan(values)
        return [int(at) for at in np.flatnonzero(is_empty)]

    def reads_padding(self, forms: Mapping[str, Any], out: Any) -> bool:
        """Whether the output is without NaN once what lies between the rows of the inputs is 0."""
        import numpy as np

        stores = {name: np.nan_to_num(store, nan=0.0) for name, store in self.inputs.items()}
        again = _launched(self.kernels, self.program, stores)
        return not np.isnan(again.tensors[self.program.returned]).any()


def evaluated(got: Any, tensors: Mapping[str, tuple[Any, Any]]) -> KernelRun:
    """The launches in the evidence on these tensors (form and values by name); Wrong where they cannot run."""
    stores = {name: _stored(form, values) for name, (form, values) in tensors.items()}
    program = read_launch_program(got["program"], stores)
    names = [one.kernel for one in program.launches]
    kernels, ran = kernel_text(got["source"], names), kernel_text(got["ran"], names)
    _require_written(kernels)
    try:
        return _launched(kernels, program, stores)
    except TileError as error:
        raise _refused(error, program, kernels, is_other=_differ(kernels, ran)) from None


def kernel_text(cells: Iterable[str], names: Iterable[str]) -> str:
    """The kernels of these names, each as its last definition in the cells, with the kernels that they call."""
    defined = _defined(cells)
    wanted, found = list(dict.fromkeys(names)), dict[str, str]()
    while wanted:
        name = wanted.pop()
        if name in defined and name not in found:
            found[name], node = defined[name]
            wanted += [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    return "\n\n\n".join(found[name] for name in defined if name in found) + "\n"


def _defined(cells: Iterable[str]) -> dict[str, tuple[str, ast.FunctionDef]]:
    """Text and tree of each kernel that the cells define."""
    defined: dict[str, tuple[str, ast.FunctionDef]] = {}
    for cell in cells:
        try:
            body = ast.parse(cell).body if len(cell) <= _MOST_CELL_LETTERS else []
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue
        for node in body:
            if isinstance(node, ast.FunctionDef) and any(map(_is_jit, node.decorator_list)):
                first = min(one.lineno for one in node.decorator_list)
                defined[node.name] = "\n".join(cell.split("\n")[first - 1 : node.end_lineno]), node
    return defined


def _require_written(kernels: str) -> None:
    """Wrong where a kernel that is launched is still a stub."""
    for node in ast.parse(kernels).body:
        if isinstance(node, ast.FunctionDef) and any(isinstance(one, ast.Raise) for one in node.body):
            why = "its body raises NotImplementedError"
            raise Wrong(f"The kernel {node.name} is not written yet.", why=why, next="write its body, and run the cell")


def require_exact_dots(run: KernelRun) -> None:
    """Wrong where a product of fp32 blocks would be rounded to TF32 on a GPU."""
    lines = [line for one in run.launches for line in one.tf32_lines]
    if lines:
        then = 'write tl.dot(…, input_precision="ieee")'
        why = "by default, a GPU rounds the fp32 operands of tl.dot to 10 bits of mantissa"
        raise Wrong("Your kernel multiplies fp32 blocks in TF32.", why=why, next=then)


def require_no_races(run: KernelRun) -> None:
    """Wrong where the result depends on the order of programs or lanes."""
    for one in run.launches:
        for race in one.races:
            count = counted(race.elements, "element")
            place = f"{count} of {race.tensor}, starting with element {race.first_element:,}"
            why = f"in `{one.kernel}`, this happens at {place}"
            then = "assign each element of the output to one program, and store it once"
            raise Wrong("In your kernel, several programs or lanes access the same element.", why=why, next=then)


def _is_jit(decorator: ast.expr) -> bool:
    """Whether a decorator is `jit`, `triton.jit`, or a call of one."""
    node = decorator.func if isinstance(decorator, ast.Call) else decorator
    return (node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")) == "jit"


def _differ(kernels: str, ran: str) -> bool:
    """Whether the submitted kernels are others than those that ran, but for layout and comments."""
    try:
        wanted, theirs = (
            {n.name: ast.dump(n) for n in ast.parse(text).body if isinstance(n, ast.FunctionDef)}
            for text in (kernels, ran)
        )
    except SyntaxError:
        return True
    return any(wanted.get(name) != text for name, text in theirs.items())


def _stored(form: Any, values: Any) -> Any:
    """A tensor's storage as a flat array, with NaN in the padding between its rows."""
    import numpy as np

    store = np.full(form.stored_elements, np.nan, dtype=form.dtype)
    rows = store.reshape(form.shape[0], -1)
    rows[:, : math.prod(form.shape[1:])] = values.reshape(form.shape[0], -1)
    return store


def _launched(kernels: str, program: LaunchProgram, stores: Mapping[str, Any]) -> KernelRun:
    tensors = {name: store.copy() for name, store in stores.items()}
    for one in program.allocated:
        tensors[one.name] = _new_tensor(one)
    module = parse_kernels(kernels)
    run = KernelRun(kernels, program, stores, tensors, (), {}, {}, {})
    launches = tuple(_launch(module, kernels, one, run) for one in program.launches)
    return KernelRun(kernels, program, stores, tensors, launches, run.read, run.written, run.written_once)


def _launch(module: Any, kernels: str, launch: HostLaunch, run: KernelRun) -> LaunchRecord:
    given = _given(_parameters(kernels, launch.kernel), launch)
    of = {name: value["tensor"] for name, value in given.items() if isinstance(value, dict)}
    arguments = {name: run.tensors[of[name]] if name in of else value for name, value in given.items()}
    try:
        record = evaluate(module, launch.kernel, launch.grid, arguments)
    except TileError as error:
        error.tensors = of  # type: ignore[attr-defined]
        raise
    for name, tensor in of.items():
        run.read[tensor] = run.read.get(tensor, 0) + record.read.get(name, 0)
        run.written[tensor] = run.written.get(tensor, 0) + record.written.get(name, 0)
        run.written_once[tensor] = max(run.written_once.get(tensor, 0), record.written_once.get(name, 0))
    return record


def _given(names: list[str], launch: HostLaunch) -> dict[str, Any]:
    """The arguments of a launch by the names of the kernel's parameters."""
    if names and len(launch.arguments) > len(names):
        what = (
            f"`{launch.kernel}` has {counted(len(names), 'parameter')}, but the host passes "
            f"{counted(len(launch.arguments), 'argument')}."
        )
        raise TileError(what, why="each argument needs a parameter", next="pass fewer arguments, or add parameters")
    given = dict(zip(names, launch.arguments, strict=False))
    twice = sorted(given.keys() & launch.named.keys())
    if twice:
        what = f"`{twice[0]}` is passed twice."
        raise TileError(what, why="it is passed both by position and by name", next="pass it only once")
    return given | dict(launch.named)


def _new_tensor(buffer: Buffer) -> Any:
    """Memory as the host gets it: zeros, or nothing that can be relied on."""
    import numpy as np

    garbage = np.iinfo(buffer.dtype).min if buffer.dtype.startswith("int") else np.nan
    return np.full(buffer.elements, 0 if buffer.zeros else garbage, dtype=buffer.dtype)


def _parameters(kernels: str, name: str) -> list[str]:
    """The parameters of a kernel, in order; none where it is not there."""
    functions = (n for n in ast.parse(kernels).body if isinstance(n, ast.FunctionDef) and n.name == name)
    return next(([one.arg for one in function.args.args] for function in functions), [])


def _accesses_without_mask(kernels: str) -> list[str]:
    """The loads and stores that have no mask, as text."""
    calls = [node for node in ast.walk(ast.parse(kernels)) if isinstance(node, ast.Call)]
    named = [(getattr(call.func, "attr", getattr(call.func, "id", "")), call) for call in calls]
    before_mask = {"load": 1, "store": 2}  # positional arguments: the address, and what is stored
    return [
        ast.unparse(call)
        for name, call in named
        if name in before_mask
        and len(call.args) <= before_mask[name]
        and not any(keyword.arg == "mask" for keyword in call.keywords)
    ]


def _refused(error: EdlError, program: LaunchProgram, kernels: str, *, is_other: bool) -> Wrong:
    """What the evaluator refused, in the words of the exercise."""
    other = "; the kernel that ran is not the one in the notebook" if is_other else ""
    kind, of = getattr(error, "kind", ""), getattr(error, "tensors", {})
    tensor = of.get(getattr(error, "tensor", ""), "")
    tensor = "the output" if tensor == program.returned else f"`{tensor}`"
    if kind in ("read", "write"):
        verb = "reads" if kind == "read" else "writes"
        why = f"program {error.program} accesses element {error.element:,}; there are {error.size:,} elements{other}"  # type: ignore[attr-defined]
        then = (
            "compute by hand which elements this program accesses: check where its block begins, the strides "
            "and the mask"
        )
        if open_ones := _accesses_without_mask(kernels):
            why = f"{why}; `{open_ones[0][:_MOST_CALL_LETTERS]}` has no mask"
            then = "mask the lanes past the end, in each load and in each store"
        return Wrong(f"Your kernel {verb} past the end of {tensor}.", why=why, next=then)
    if kind == "undefined":
        then = "pass `other` to the load, or give the store the same mask"
        why = f"lanes that the mask of a load excludes have no value{other}"
        return Wrong(f"Your kernel stores an undefined value in {tensor}.", why=why, next=then)
    why = error.why or "the launch stopped here, so there is no output to compare"
    return Wrong(f"The kernel cannot run: {error.what}", why=f"{why}{other}", next=error.next)
