# exercise: guards
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
