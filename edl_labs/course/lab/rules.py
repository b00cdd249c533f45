"""The rules for a lab's cells: which are required, in which order, what each may contain, and what it may import."""

from __future__ import annotations

import ast
import sys
from functools import lru_cache
from pathlib import Path

from edl_labs.course.lab.source import BEGIN, END, Cell
from edl_labs.errors import did_you_mean

MAX_CELL_LINES = 15  # house style: a cell fits on a projected screen together with its output
_DEFINITIONS = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def check_cells(cells: list[Cell]) -> None:
    """SourceError at the first cell that breaks a rule."""
    _check_opening(cells)
    _check_names(cells)
    _check_grade_ids(cells)
    for cell in cells:
        if cell.kind == "code":
            check_imports(cell)
        if cell.role in _CHECKS:
            _CHECKS[cell.role](cell)


def warnings(cells: list[Cell]) -> list[str]:
    """One line for each cell that is longer than the house style allows; solve cells may be as long as they need."""
    long = [(c, c.source.count("\n") + 1) for c in cells if c.kind == "code" and c.role not in ("solve", "given")]
    return [
        f"{c.file}:{c.line}: the cell has {count} lines; it should have at most {MAX_CELL_LINES}"
        for c, count in long
        if count > MAX_CELL_LINES
    ]


def defined_names(cell: Cell) -> list[str]:
    """The functions and classes that a code cell defines, in order."""
    return [node.name for node in cell.tree.body if isinstance(node, _DEFINITIONS)]


def bound_names(code: str) -> set[str]:
    """The names that `code` binds at its top level by def, class, import or assignment."""
    return {name for node in ast.parse(code).body for name in defined(node)}


def parameter_values(cell: Cell) -> dict[str, ast.expr]:
    """The names that the parameters cell assigns, with the expressions they get."""
    found: dict[str, ast.expr] = {}
    for node in cell.tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        name = targets[0].id if len(targets) == 1 and isinstance(targets[0], ast.Name) else None
        if not isinstance(node, (ast.Assign, ast.AnnAssign)) or name is None or value is None:
            raise cell.error(
                "the parameters cell contains something other than assignments",
                line=cell.first + node.lineno - 1,
                why=f"the line is {ast.unparse(node).splitlines()[0]!r}",
                next="keep only lines `name = value` here; move the rest to the next cell",
            )
        if name in found:
            raise cell.error(f"the parameter {name} is assigned twice", line=cell.first + node.lineno - 1)
        found[name] = value
    return found


def _check_opening(cells: list[Cell]) -> None:
    title = cells[0]
    if title.kind != "markdown" or not title.source.startswith("# "):
        raise title.error(
            "the first cell is not the lab's title",
            why="cell 1 is prose: the title, the learning outcomes, and how many minutes the lab takes",
            next='start the file with "# %% [markdown]" and "# # Title"',
        )
    for index, role in ((1, "setup"), (2, "parameters")):
        having = [c for c in cells if c.role == role]
        if not having:
            at = cells[min(index, len(cells) - 1)]
            raise at.error(f"the lab has no {role} cell", next=f"mark cell {index + 1} with # %% {role}")
        if len(having) > 1:
            raise having[1].error(
                f"there is a second {role} cell", next=f"merge it with the cell at line {having[0].line}"
            )
        if cells.index(having[0]) != index:
            raise having[0].error(
                f"the {role} cell is not cell {index + 1}", next=f"move it so that it becomes cell {index + 1}"
            )


def _check_names(cells: list[Cell]) -> None:
    seen: dict[tuple[str, str], Cell] = {}
    for cell in cells:
        if not cell.name or not cell.role:
            continue
        clash = seen.get((cell.role, cell.name))
        if clash is None and cell.role in ("solve", "explain"):
            clash = seen.get(("explain" if cell.role == "solve" else "solve", cell.name))
        if clash is not None:
            raise cell.error(
                f"there is a second {cell.role} cell for {cell.name}"
                if clash.role == cell.role
                else f"{cell.name} is both a solve and an explain exercise",
                why=f"the first is at line {clash.line}",
                next="give each exercise its own name",
            )
        if cell.role == "check" and ("solve", cell.name) not in seen:
            raise _check_without_solve(cell, cells)
        seen[cell.role, cell.name] = cell
    for (role, name), cell in seen.items():
        if role == "solve" and ("check", name) not in seen:
            raise cell.error(f"the solve cell of {name} has no check cell", next=f'add # %% check="{name}" below it')


def _check_grade_ids(cells: list[Cell]) -> None:
    """nbgrader's ids are made from names: `check_NAME` for a check cell, `NAME_question` for a question."""
    taken = {f"check_{c.name}": c for c in cells if c.role == "solve"}
    taken |= {f"{c.name}_question": c for c in cells if c.role == "explain"}
    for cell in cells:
        if cell.role in ("solve", "explain") and str(cell.name) in taken:
            other = taken[str(cell.name)]
            why = f"a cell of {other.name}, at line {other.line}, would have the same nbgrader id"
            raise cell.error(f"{cell.name} cannot be an exercise's name here", why=why, next="choose another name")


def _check_without_solve(cell: Cell, cells: list[Cell]) -> Exception:
    name = str(cell.name)
    later = [c.line for c in cells if c.role == "solve" and c.name == name]
    if later:
        return cell.error(
            f"the check cell of {name} comes before its solve cell",
            why=f"the solve cell is at line {later[0]}",
            next="move the check cell below it",
        )
    near = did_you_mean(name, [str(c.name) for c in cells if c.role == "solve"])
    return cell.error(f"the check cell of {name} has no solve cell", next=near or f'add # %% solve="{name}" above it')


def _check_setup(cell: Cell) -> None:
    guards = [node for node in cell.tree.body if isinstance(node, ast.Try)]
    caught = {ast.unparse(h.type) for node in guards for h in node.handlers if h.type is not None}
    if not caught & {"ImportError", "ModuleNotFoundError"}:
        raise cell.error(
            "the setup cell imports edl_labs outside `try`",
            why="if edl_labs is not installed, students would see a traceback",
            next="import it inside `try`, and explain in `except ImportError` how to install it",
        )


def _check_solve(cell: Cell) -> None:
    _check_regions(cell)
    inside = {number for number, _ in cell.solution_lines}
    for node in cell.tree.body:
        line = cell.first + node.lineno - 1
        harmless = isinstance(node, (*_DEFINITIONS, ast.Import, ast.ImportFrom)) or _is_docstring(node)
        if not harmless and not (_is_constant(node) and line not in inside):
            raise cell.error(
                "a solve cell may only define functions, classes and constants",
                line=line,
                why=f"the line is {ast.unparse(node).splitlines()[0]!r}",
                next="let a function compute the answer for each case; write the names of given constants in CAPITALS",
            )
    if not defined_names(cell):
        raise cell.error(
            "a solve cell defines no function or class",
            next="define the function or class that the exercise's probe calls",
        )
    _check_stub(cell)


def _check_regions(cell: Cell) -> None:
    opened = None
    regions = 0
    for number, text in enumerate(cell.source.split("\n"), start=cell.first):
        if text.strip() == BEGIN:
            if opened is not None:
                raise cell.error(
                    f"{BEGIN} is inside another solution region",
                    line=number,
                    why=f"that region begins at line {opened}",
                )
            opened, regions = number, regions + 1
        elif text.strip() == END:
            if opened is None:
                raise cell.error(
                    f"{END} has no {BEGIN} before it", line=number, next=f"write {BEGIN} above the solution"
                )
            opened = None
    if opened is not None:
        raise cell.error(f"{BEGIN} has no {END} after it", line=opened, next=f"write {END} below the solution")
    if not regions:
        raise cell.error(
            "a solve cell has no solution region",
            why="students would not get any part of the cell",
            next=f"write {BEGIN} and {END} around what students write",
        )


def _check_stub(cell: Cell) -> None:
    stub = Cell(cell.role, cell.name, cell.kind, cell.stub, cell.line, cell.first, cell.file)
    try:
        names = defined_names(stub)
    except Exception as error:
        raise cell.error(
            "the stub that students get is not valid Python",
            why=str(error).split("\n")[0].rpartition(": ")[2],
            next=f"put {BEGIN} and {END} inside the function, at its body's indent",
        ) from None
    if names != defined_names(cell):
        lost = [n for n in defined_names(cell) if n not in names]
        raise cell.error(
            f"the stub does not define {', '.join(lost)}",
            why="students would not know which names they must define",
            next=f"put {BEGIN} below the line with def or class",
        )


def _is_constant(node: ast.stmt) -> bool:
    """Whether `node` assigns names in capitals alone: something given, not something to find out."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)):
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    return all(isinstance(target, ast.Name) and target.id.isupper() for target in targets)


def _is_docstring(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _check_check(cell: Cell) -> None:
    if cell.source != f'check("{cell.name}")':
        raise cell.error(
            f'the check cell of {cell.name} contains something other than check("{cell.name}")',
            line=cell.first,
            why="nbgrader takes the result of this cell as the score",
            next=f'write only check("{cell.name}") here, and move the rest to another cell',
        )


def _check_parameters(cell: Cell) -> None:
    parameter_values(cell)


_CHECKS = {"setup": _check_setup, "parameters": _check_parameters, "solve": _check_solve, "check": _check_check}


PUBLIC_MODULES = (
    *("bench", "checks", "clock", "device", "errors", "graph", "hardware", "inference", "numerics", "pipeline"),
    *("plots", "predict", "roofline", "stats", "trace", "ui", "units", "virtual"),
)
# Of these a lab may import what the package itself exports: their modules are the engine's insides.
_CLOSED = ("checks",)
STUDENT_PACKAGES = ("IPython", "ipywidgets", "matplotlib", "numpy", "torch", "torchvision", "tqdm")
_PACKAGE = Path(__file__).resolve().parents[2]


def check_imports(cell: Cell) -> None:
    """SourceError at the first import of `cell` that a student's notebook may not make."""
    for node in ast.walk(cell.tree):
        for path, line in _imported(node):
            problem = _problem(path)
            if problem:
                raise cell.error(
                    f"the lab imports {path}",
                    line=cell.first + line - 1,
                    why=problem,
                    next="import a public name of edl_labs, or define it in the lab",
                )


def _imported(node: ast.AST) -> list[tuple[str, int]]:
    """Dotted paths that a node imports or reaches through `edl_labs.`, each with its line in the cell."""
    if isinstance(node, ast.Import):
        return [(alias.name, node.lineno) for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        module = "." * node.level + (node.module or "")
        return [(f"{module}.{alias.name}", node.lineno) for alias in node.names]
    if isinstance(node, ast.Attribute):
        path = _dotted(node)
        return [(path, node.lineno)] if path.startswith("edl_labs.") else []
    if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
        name, value = _dotted(node.func), node.args[0].value
        if name.rpartition(".")[2] in ("import_module", "__import__") and isinstance(value, str):
            return [(value, node.lineno)]
    return []


def _dotted(node: ast.AST) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(parts)]) if isinstance(node, ast.Name) else ""


def _problem(path: str) -> str:
    """Why `path` may not be imported, or nothing."""
    top, *rest = path.split(".")
    if path.startswith("."):
        return "a notebook does not belong to a package"
    if path == "__future__.annotations":
        return ""
    if any(part.startswith("_") for part in (top, *rest)):
        return "names that start with an underscore are private"
    if top == "edl_labs":
        return _problem_of_ours(rest)
    if top in STUDENT_PACKAGES or top in sys.stdlib_module_names:
        return "a lab must name everything that it imports" if rest[-1:] == ["*"] else ""
    return f"{top} may not be installed in students' kernels"


def _problem_of_ours(rest: list[str]) -> str:
    import edl_labs

    if rest[-1:] == ["*"]:
        return "a lab must name everything that it imports"
    if not rest or rest[0] in edl_labs.__all__:
        return ""
    if rest[0] not in PUBLIC_MODULES:
        return f"edl_labs.{rest[0]} is not public: import from edl_labs itself or from {', '.join(PUBLIC_MODULES)}"
    if rest[0] in _CLOSED and len(rest) > 1:
        exported = _names(_PACKAGE / rest[0]) or frozenset()
        return "" if rest[1:] == [n for n in rest[1:2] if n in exported] else f"edl_labs.{rest[0]} exports no such name"
    return _problem_of_module(rest)


def _problem_of_module(rest: list[str]) -> str:
    place = _PACKAGE
    for depth, part in enumerate(rest):
        if (place / part).is_dir():
            place = place / part
        elif (place / f"{part}.py").is_file():
            place = place / f"{part}.py"
        else:
            names = _names(place)
            known = names is None or part in names or depth < len(rest) - 1
            return "" if known else f"edl_labs.{'.'.join(rest[:depth])} has no public name {part}"
    return ""


@lru_cache(maxsize=64)
def _names(place: Path) -> frozenset[str] | None:
    """The public names of a module as its text says, None where only running it would tell."""
    path = place / "__init__.py" if place.is_dir() else place
    if not path.is_file():
        return frozenset()
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        names |= defined(node)
    if "__getattr__" in names:
        return None
    return frozenset(n for n in names if not n.startswith("_"))


def defined(node: ast.stmt) -> set[str]:
    """The names that one statement binds."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    if isinstance(node, ast.Assign):
        return {n.id for target in node.targets for n in ast.walk(target) if isinstance(n, ast.Name)}
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return {node.target.id}
    return set()
