"""What a cell's statements may alter, over the whole notebook: names that share objects, and what has no name.

Names that one statement brings together may share objects from then on, and so may what the functions that it calls
use, and theirs. Settings of modules, of the process and of generators of random numbers have pseudo-names.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from edl_labs.course.grade.call_effects import (
    DRAWS,
    PROCESS,
    NamedCall,
    effects,
    is_module,
    of_handed_on,
    of_import,
)
from edl_labs.course.grade.cell_steps import Step

_DEEP = 100  # characters of a module's name, above which it grows in a circle
Placed = tuple[frozenset[str], Iterable[Step]]  # a cell's own names, and its statements


@dataclass
class SharedState:
    """Which names may stand for, hold or reach the same objects in all of a notebook's `cells`, by their numbers.

    A name of many cells is a node; what one cell calls so and makes anew is a node of its own, which the first reaches.
    """

    cells: dict[int, Placed]
    tables: frozenset[str] = frozenset()
    """Names of tables that all of the code only reads."""
    _edges: dict[str, set[str]] = field(default_factory=dict)
    _group: dict[str, str] = field(default_factory=dict)
    _versions: dict[str, set[str]] = field(default_factory=dict)
    _effects: dict[tuple[int, bool], set[str]] = field(default_factory=dict)
    """What has no name of each statement, once the modules and folders are known."""
    _names_modules: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._steps = {i: [s.placed(i, own) for s in steps] for i, (own, steps) in self.cells.items()}
        self._all = [step for steps in self._steps.values() for step in steps]
        for index, (own, _) in self.cells.items():
            for name in own:
                self._versions.setdefault(name, set()).add(f"{name}@{index}")
        bound = {name for step in self._all for name in step.binds - step.imported}
        self._imported = {name for step in self._all for name in step.imported} - bound
        self._imported |= {name for name, of in self._versions.items() if of <= self._imported and name not in bound}
        self._modules = self._known_modules()
        self._folders = self._known_folders()
        for name, versions in self._versions.items():
            self._edges.setdefault(name, set()).update(versions)
        for step in self._all:
            # What a call made may do so again when it is used: a file writes, a loader draws.
            holds = step.loads | step.binds | step.later | self._unnamed(step) | self._unnamed(step, later=True)
            for name in step.binds - step.imported:
                self._edges.setdefault(name, set()).update(holds)
        self._fixed = self._unalterable()
        for step in self._all:
            if step.runs:
                self._join(self._reached(step) - {DRAWS, PROCESS})

    def altered(self, index: int, live: Iterable[str]) -> set[str]:
        """The groups of names whose objects a cell may alter that takes `live` names from others."""
        unnamed = {effect for step in self._steps[index] for effect in self._unnamed(step)}
        return {self._find(name) for name in self._closure({*live, *unnamed}) - self._fixed}

    def needed(self, names: Iterable[str]) -> set[str]:
        """The groups of names that code which uses `names` may see when it is probed.

        A probe begins with generators and modes of its own (`fresh_global_state`).
        """
        return {self._find(name) for name in (*(self._closure(names) - {DRAWS}), PROCESS) if name not in self._fixed}

    def asked(self, index: int) -> frozenset[str]:
        """Pseudo-names of what a cell asks, or alters, as it runs, that has no name."""
        steps = self._steps[index]
        return frozenset(name for step in steps if step.runs for name in self._reached(step) & {DRAWS, PROCESS})

    def _reached(self, step: Step) -> set[str]:
        return self._closure(step.loads | step.binds | self._unnamed(step)) - self._fixed

    def _closure(self, names: Iterable[str]) -> set[str]:
        found, todo = set(names), list(names)
        while todo:
            more = self._edges.get(todo.pop(), set()) - found
            found |= more
            todo += more
        return found

    def _join(self, names: set[str]) -> None:
        groups = sorted(map(self._find, names))
        for group in groups[1:]:
            self._group[self._find(group)] = self._find(groups[0])

    def _find(self, name: str) -> str:
        while name in self._group and self._group[name] != name:
            name = self._group[name]
        return name

    def _known_modules(self) -> dict[str, set[str]]:
        """The modules, or what was imported of them, that each name may stand for, or for a part of."""
        found: dict[str, set[str]] = {}
        for step in self._all:
            for name, module in step.imports:
                found.setdefault(name, set()).add(module)
        pairs = [pair for step in self._all for pair in step.aliases if pair[0] not in self._imported]
        pairs += [(name, version) for name, versions in self._versions.items() for version in versions]
        while True:
            before = sum(map(len, found.values()))
            for name, source in pairs:
                root, dot, rest = source.partition(".")
                of = found.get(root, ())
                if of:
                    found.setdefault(name, set()).update(f"{m}{dot}{rest}" if len(m) < _DEEP else m for m in of)
            if before == sum(map(len, found.values())):
                return found

    def _known_folders(self) -> set[str]:
        """Names that stand for temporary folders, or for paths in them, wherever they are bound."""
        pairs = [pair for step in self._all for pair in step.folders]
        pairs += [(name, version) for name, versions in self._versions.items() for version in versions]
        found = {name for name, _ in pairs}
        found -= {name for step in self._all for name in step.binds if name not in dict(step.folders)}
        while True:
            more = {name for name, base in pairs if name in found and base and base not in found}
            if not more:
                return found
            found -= more

    def _unalterable(self) -> set[str]:
        """Names that only stand for what nobody can alter: at every place that binds them."""
        made: dict[str, set[str]] = {name: set(versions) for name, versions in self._versions.items()}
        made |= {name: set() for step in self._all for name in step.binds if name.partition("@")[0] in self.tables}
        # Who assigns in a module alters what has no name, and that is told of the step.
        stored = {name for step in self._all for name in step.stores - self._imported} | self._patched()
        stored |= {name for step in self._all for name in self._escaped(step)}
        loose = stored | {version for name in stored for version in self._versions.get(name, ())}
        for step in self._all:
            fixed = dict(step.fixed)
            for name in step.binds:
                if name.partition("@")[0] in self.tables:
                    continue
                made.setdefault(name, set()).update(fixed.get(name, ()))
                if name not in fixed:
                    loose.add(name)
        while True:
            more = {name for name, on in made.items() if name not in loose and on & loose}
            if not more:
                return (made.keys() | self._free(made)) - loose
            loose |= more

    def _patched(self) -> set[str]:
        """Names of objects whose attributes may be set: all that may share objects with a name with such attributes."""
        found = {name for step in self._all for name in step.patches} - {""}
        if not found:
            return set()
        bound = {name for step in self._all for name in step.binds} | set(self._versions)
        if "type" in found:  # of an instance's class
            found |= {call.root for step in self._all for call in step.calls}
        for step in self._all:
            if step.patches - bound - {""}:  # a function's own names stand for what it is given, by whoever reaches it
                calls = (s for s in self._all if not step.binds or self._closure(s.loads | s.binds) & step.binds)
                found |= {name.partition(".")[0] for call in calls for name in call.given}
        kept: dict[str, set[str]] = {}
        for step in self._all:
            for name in step.binds:
                kept.setdefault(name, set()).update(self._kept(step))
        together: list[tuple[set[str], set[str]]] = []
        for step in self._all:
            held = self._kept(step)
            if step.runs:
                held = held.union(*(kept.get(name, ()) for name in self._closure(step.loads | step.binds)))
            on = {call.root for call in step.calls if call.rest}
            together.append((held | step.binds | step.stores | on, held))
        while more := {name for names, held in together if names & found for name in held} - found:
            found |= more
        # Python's own types, and what the tables are, have no attributes to set.
        return {n for n in found - self._imported if n in bound and n.partition("@")[0] not in self.tables}

    def _escaped(self, step: Step) -> set[str]:
        """Modules that may become known otherwise than by a name given to them, which is followed."""
        return {name.partition(".")[0] for name in step.kept - step.named if self._is_module(name)}

    def _kept(self, step: Step) -> set[str]:
        """Names whose objects may become known by other names, or be parts of others, by a statement."""
        return {name.partition(".")[0] for name in step.kept} - self._imported

    def _free(self, made: dict[str, set[str]]) -> set[str]:
        """Names that no cell binds: Python's own."""
        return {name for step in self._all for name in step.loads | step.later if name not in made}

    def _unnamed(self, step: Step, *, later: bool = False) -> set[str]:
        """What a statement may alter that has no name; with `later`, what using what it made may."""
        key = (id(step), later)
        if key not in self._effects:
            self._effects[key] = self._unnamed_effects(step, later=later)
        return self._effects[key]

    def _unnamed_effects(self, step: Step, *, later: bool) -> set[str]:
        stores, calls = (step.lazy_stores, step.lazy_calls) if later else (step.stores, step.calls)
        found = {PROCESS for name in stores if name in self._modules}
        found |= {effect for _, module in step.imports for effect in of_import(module)}
        if (
            ("open" in step.loads and step.opens)
            or self._escaped(step)
            or any(self._is_module(name) for name in step.given)
        ):
            found.add(PROCESS)
        found |= {effect for name in step.given for full in self._imported_as(name) for effect in of_handed_on(full)}
        for call in calls:
            found |= effects(call, self._modules.get(call.root, ()), in_folder=self._is_inside(call))
        return found

    def _is_inside(self, call: NamedCall) -> bool:
        return bool(call.given & self._folders) or call.root in self._folders

    def _is_module(self, name: str) -> bool:
        if name not in self._names_modules:
            plain = name.partition("@")[0]
            self._names_modules[name] = any(is_module(full, plain) for full in self._imported_as(name))
        return self._names_modules[name]

    def _imported_as(self, name: str) -> set[str]:
        """What a name, or a dotted text that begins with one, may stand for of what was imported."""
        root, dot, rest = name.partition(".")
        return {f"{module}{dot}{rest}" for module in self._modules.get(root, ())}
