# %% mistake="guards_all_sizes_free"
# told: your code makes all sizes free when one of them changes
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
# told: your code reports a break for a call that fits an existing version
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
# told: your code counts a line even if the bool on which that line depends is false
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
# told: your code reports a break at an `if` on a value that a guard fixes
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
# told: your code makes a bool free, as if it were a number
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
# told: your code does not report a break at .item()
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
# told: your code stops using the existing versions at the limit
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
# told: your code tries only the newest version
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
# told: your code does not guard the dtype
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
# told: your code does not guard the layout
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
# told: your code makes more than 8 versions
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
# told: your code does not guard the number of dimensions
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
# told: your code never makes a number free
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
# told: your code treats a size of 1 like any other size
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
# told: in your code, a new version replaces an earlier one
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
# told: your code makes a size free in its first version
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
# told: your code never makes a size free
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
# told: your code did not use a version that fits
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
# told: your code lets a free size accept only values between the sizes seen before
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
# told: your code also makes a number free in existing versions
# %% replace
self.versions.append({name: self._guard(name, args[name]) for name in args})
# %% by
made = {name: self._guard(name, args[name]) for name in args}
free = [name for name in made if made[name] == (None, [None])]
self.versions = [{**one, **{n: made[n] for n in free}} for one in self.versions]
self.versions.append(made)
