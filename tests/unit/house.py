"""What the package's modules import, read from their text: the material of the tests of its structure."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "edl_labs"
SMALL = 60  # lines under which a module with one user is a part of that user
# Found by name or by a table, not by import: one file a plug-in is what lets people add one.
PLUG_INS = (
    "edl_labs.course.marks.lms.",
    "edl_labs.bench.detectors.",
    "edl_labs.exercises.",
)
# Folders whose files share their names on purpose: a reader who knows one virtual machine finds everything in the next.
PARALLEL_FOLDERS = ("edl_labs.virtual.",)
PARALLEL_STEMS = ("machine", "program", "engine", "replay")


@dataclass(frozen=True)
class Module:
    """One file of the package: its dotted name, its text's lines, and the modules that it imports anywhere."""

    name: str
    path: Path
    lines: int
    imports: frozenset[str]
    """Early, late (inside functions) and for types alone."""

    @property
    def stem(self) -> str:
        """The file's name, or the folder's, without underscores around it."""
        return (self.path.parent.name if self.is_folder else self.path.stem).strip("_")

    @property
    def is_folder(self) -> bool:
        return self.path.name == "__init__.py"


def read_package(root: Path, package: str = PACKAGE) -> dict[str, Module]:
    """The modules below `root/package` by dotted name."""
    paths = {_dotted(path.relative_to(root)): path for path in sorted((root / package).rglob("*.py"))}
    return {name: _module(name, path, paths) for name, path in paths.items()}


def repeated_stems(modules: dict[str, Module], exempt: frozenset[str]) -> dict[str, list[str]]:
    """Stems that several modules or folders have, with those modules."""
    found = defaultdict(list)
    for module in modules.values():
        if module.path.name != "__main__.py" and module.stem not in exempt and not _is_parallel(module):
            found[module.stem].append(module.name)
    return {stem: names for stem, names in sorted(found.items()) if len(names) > 1}


def single_user_modules(modules: dict[str, Module]) -> dict[str, str]:
    """Small modules that exactly one other module imports, with that module."""
    users = defaultdict(set)
    for module in modules.values():
        for name in module.imports:
            users[name].add(module.name)
    return {
        name: next(iter(users[name]))
        for name, module in modules.items()
        if module.lines < SMALL
        and len(users[name]) == 1
        and not (module.is_folder or _is_plug_in(module) or _is_parallel(module))
    }


def cycles(modules: dict[str, Module]) -> list[frozenset[str]]:
    """Groups of modules that import each other, late and typing imports included (Tarjan's components)."""
    return [group for group in _components({m.name: m.imports for m in modules.values()}) if len(group) > 1]


def mutual_parts(modules: dict[str, Module]) -> list[frozenset[str]]:
    """Groups of neighbours in one folder, files or folders, that import each other through whatever they hold."""
    edges: dict[str, set[str]] = defaultdict(set)
    for module in modules.values():
        for other in module.imports:
            ours, theirs = _neighbours(module.name, other)
            if ours and theirs:
                edges[ours].add(theirs)
                edges[theirs] |= set()
    found = _components({name: frozenset(others) for name, others in sorted(edges.items())})
    return [group for group in found if len(group) > 1]


def _neighbours(one: str, other: str) -> tuple[str, str]:
    """What of two modules lies side by side in the folder that holds both; "" where one of them is that folder."""
    ours, theirs = one.split("."), other.split(".")
    shared = next((i for i, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), None)
    return ("", "") if shared is None else (".".join(ours[: shared + 1]), ".".join(theirs[: shared + 1]))


def _is_parallel(module: Module) -> bool:
    return module.name.startswith(PARALLEL_FOLDERS) and module.stem in PARALLEL_STEMS


def _is_plug_in(module: Module) -> bool:
    return module.path.name == "__main__.py" or module.name.startswith(PLUG_INS)


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _module(name: str, path: Path, known: dict[str, Path]) -> Module:
    text = path.read_text(encoding="utf-8")
    imports = {_nearest(target, known) for target in _targets(ast.parse(text), name, path)} - {"", name}
    return Module(name, path, text.count("\n"), frozenset(imports))


def _targets(tree: ast.Module, name: str, path: Path) -> Iterator[str]:
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - max(0, node.level - 1)] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _nearest(target: str, known: dict[str, Path]) -> str:
    """The module that an import of `target` reaches: itself, or the nearest above that is a module."""
    while target and target not in known:
        target = target.rpartition(".")[0]
    return target


def _components(edges: dict[str, frozenset[str]]) -> Iterator[frozenset[str]]:
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []

    def visit(name: str) -> Iterator[frozenset[str]]:
        order[name] = low[name] = len(order)
        stack.append(name)
        for other in sorted(edges[name]):
            if other not in order:
                yield from visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], order[other])
        if low[name] == order[name]:
            at = stack.index(name)
            yield frozenset(stack[at:])
            del stack[at:]

    for name in edges:
        if name not in order:
            yield from visit(name)


def unexplained_constants(path: Path) -> list[str]:
    """Module-level numbers in capitals without a word on where they come from (a comment or a docstring)."""
    text = path.read_text(encoding="utf-8")
    lines, body = text.split("\n"), ast.parse(text).body
    found = []
    for node, following in zip(body, [*body[1:], None], strict=True):
        if _is_tuning_constant(node) and not _is_explained(node, following, lines):
            found.append(f"{path.name}:{node.lineno} {lines[node.lineno - 1]}")
    return found


def _is_tuning_constant(node: ast.stmt) -> bool:
    if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
        return False
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    names = [part.id for target in targets for part in ast.walk(target) if isinstance(part, ast.Name)]
    in_capitals = bool(names) and all(name.strip("_").isupper() for name in names)
    return in_capitals and [name.strip("_") for name in names] != ["SCHEMA"] and _is_numeric(node.value)


def _is_numeric(value: ast.expr) -> bool:
    if isinstance(value, ast.Constant):
        return isinstance(value.value, int | float) and not isinstance(value.value, bool)
    if isinstance(value, ast.UnaryOp):
        return _is_numeric(value.operand)
    if isinstance(value, ast.BinOp):
        return _is_numeric(value.left) and _is_numeric(value.right)
    return isinstance(value, ast.Tuple | ast.List) and bool(value.elts) and all(map(_is_numeric, value.elts))


def _is_explained(node: ast.stmt, following: ast.stmt | None, lines: list[str]) -> bool:
    own = lines[node.lineno - 1 : node.end_lineno]
    above = lines[node.lineno - 2].lstrip() if node.lineno > 1 else ""
    documented = isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
    return any("#" in line for line in own) or above.startswith("#") or documented
