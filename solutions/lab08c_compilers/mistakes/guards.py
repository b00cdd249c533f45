# %% mistake="guards_all_sizes_free"
# told: only the sizes that changed are free
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            if None in known:
                known = [None] * len(known)
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_break_at_every_call"
# told: a break is met while compiling
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            broken = any(self.breaks(line, args) for line in self.lines)
            return "break" if broken else "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_condition_ignored"
# told: a line under a bool counts only where that bool is true
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_every_if"
# told: an if on what a guard holds fixed does not end the graph
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if ")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_flag_is_a_number"
# told: a bool is no number here
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_item_stays"
# told: an .item() ends the graph
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = ("float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_limit_first"
# told: you stop using the existing versions at the limit
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if len(self.versions) == 8:
            return "eager"
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_newest_version"
# told: every version is asked
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions[-1:]):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_no_dtype"
# told: a version is for one dtype
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_no_layout"
# told: each version works for only one layout
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_no_limit"
# told: a function keeps 8 versions
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_no_rank"
# told: a version is for one number of dimensions
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=False):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_numbers_by_value"
# told: a number that changes is free from its second version on
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        if isinstance(value, (int, float)):
            return fixed, values
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_one_is_a_size"
# told: size 1 has versions of its own
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 1
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_one_version_a_kind"
# told: a new version leaves the others where they are
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        made = {name: self.guard(name, args[name]) for name in args}
        kind = (made["x"][0], args["verbose"])
        self.versions = [
            one for one in self.versions if (one["x"][0], one["verbose"][0]) != kind
        ]
        self.versions.append(made)
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_sizes_free_at_once"
# told: the first version of a size is for its value
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if least == 2:
                known = [*known[:at], None, *known[at + 1 :]]
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_sizes_never_free"
# told: a size that changes is free from its second version on
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.versions.append({name: self.guard(name, args[name]) for name in args})
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        if isinstance(value, torch.Tensor):
            return fixed, values
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_two_mistakes"
# told: a version that fits was not used
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        made = {name: self.guard(name, args[name]) for name in args}
        kind = (made["x"][0], args["verbose"])
        self.versions = [
            one for one in self.versions if (one["x"][0], one["verbose"][0]) != kind
        ]
        self.versions.append(made)
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        for name, (fixed, known) in version.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for guard, value in zip(known, values, strict=True):
                if guard != value and (guard is not None or value < least):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        if name != "x":
            known = values
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_within_the_range"
# told: a free size can take any value of 2 or more
import torch


class Cache:
    """The versions of one compiled function."""

    def __init__(self, lines):
        self.lines, self.versions, self.seen = lines, [], {}
        self.shapes = []

    def call(self, args):
        """What happens at a call: "hit", "recompile", "break" or "eager"."""
        if any(self.fits(version, args) for version in self.versions):
            return "hit"
        if len(self.versions) == 8:
            return "eager"
        self.shapes.append(args["x"].shape)
        made = {name: self.guard(name, args[name]) for name in args}
        shapes = [one for one in self.shapes if len(one) == args["x"].ndim]
        self.versions.append(
            (made, [(min(seen), max(seen)) for seen in zip(*shapes, strict=True)])
        )
        breaks = any(self.breaks(line, args) for line in self.lines)
        return "break" if breaks else "recompile"

    def breaks(self, line, args):
        if line["only_if"] and not args[line["only_if"]]:
            return False
        ends = (".item()", "float(", "print(", "if y.sum()")
        return any(text in line["code"] for text in ends)

    def facts(self, value):
        """What is always compared, what may become free, and the least free value."""
        if isinstance(value, torch.Tensor):
            return (value.dtype, value.ndim, value.is_contiguous()), [*value.shape], 2
        if isinstance(value, bool):
            return value, [], None
        return None, [value], float("-inf")

    def fits(self, version, args):
        made, ranges = version
        for name, (fixed, known) in made.items():
            now, values, least = self.facts(args[name])
            if now != fixed:
                return False
            for at, (guard, value) in enumerate(zip(known, values, strict=True)):
                if guard != value and (guard is not None or value < least):
                    return False
                if (
                    name == "x"
                    and guard is None
                    and not ranges[at][0] <= value <= ranges[at][1]
                ):
                    return False
        return True

    def guard(self, name, value):
        """The guard of a new version; None stands for a free value."""
        fixed, values, least = self.facts(value)
        before = self.seen.get(name, values)
        if before == "any rank" or len(before) != len(values):
            self.seen[name], known = "any rank", [None] * len(values)
        else:
            pairs = zip(before, values, strict=True)
            known = [new if old == new else None for old, new in pairs]
            self.seen[name] = known
        for at, value in enumerate(values):
            if value < least:
                known = [*known[:at], value, *known[at + 1 :]]
        return fixed, known


# %% mistake="guards_old_versions_freed"
# told: existing versions keep the numbers for which they were made
# %% replace
self.versions.append({name: self._guard(name, args[name]) for name in args})
# %% by
made = {name: self._guard(name, args[name]) for name in args}
free = [name for name in made if made[name] == (None, [None])]
self.versions = [{**one, **{n: made[n] for n in free}} for one in self.versions]
self.versions.append(made)
