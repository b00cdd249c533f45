"""Names of accelerators, taken apart: what torch, nvidia-smi and people write, and whether two names can mean one card.

Drivers print vendor, family, model, form, memory and slice in changing order and spelling: "Tesla V100-SXM2-16GB",
"NVIDIA A100 80GB PCIe", "NVIDIA H100 80GB HBM3 MIG 1g.10gb". A name is a model, which is what is left when all else is
taken away, and what it says besides.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_LISTED = re.compile(r"^gpu \d+:")  # as `nvidia-smi -L` numbers its lines
_ASIDE = re.compile(r"\([^)]*\)")
_VENDOR = re.compile(r"^(nvidia|amd)\s+")
_FAMILY = re.compile(r"^(tesla|geforce|instinct)\s+")
_GAP = re.compile(r"(?<=\d)\s+(?=gi?b\b)")  # "80 GB" is one word
_GLUED = re.compile(r"\brtx(?=\d)")
_FORM = re.compile(r"^(sxm\d?|pcie|nvl|oam)$")
_SIZE = re.compile(r"^(\d+)(?:gi?b|g)$")
_KIND = re.compile(r"^(hbm\d?e?|gddr\d?x?)$")
_POWER = re.compile(r"^\d+w$")  # a limit that somebody set: the card is the same
_SLICE = re.compile(r"(?:\bmig[\s-]+)?\b(\d+g\.\d+gb)(?:\+\w[\w.]*|-me)?$")


@dataclass(frozen=True)
class DeviceName:
    """What a name says: all its words, those of the model, form ('sxm4', 'pcie'), memory in GB, its kind, MIG profile.

    What it does not say is "" or 0.
    """

    words: tuple[str, ...]
    model: tuple[str, ...]
    form: str = ""
    memory_gb: int = 0
    memory_kind: str = ""
    mig_profile: str = ""

    def fits(self, other: DeviceName) -> bool:
        """Whether this name can mean the card that `other` describes in full: one model, no contradiction."""
        return (
            self.model == other.model
            and other.form.startswith(self.form if other.form else "")
            and self.memory_gb in (0, other.memory_gb)
            and self.memory_kind in ("", other.memory_kind)
        )


def taken_apart(text: str) -> DeviceName:
    """What the name of a device says.

    >>> name = taken_apart("NVIDIA H100 80GB HBM3 MIG 1g.10gb")
    >>> name.model, name.memory_gb, name.memory_kind, name.mig_profile
    (('h100',), 80, 'hbm3', '1g.10gb')
    >>> taken_apart("Tesla P100-PCIE-16GB").form
    'pcie'
    """
    plain = _ASIDE.sub(" ", _LISTED.sub("", " ".join(text.casefold().split()))).strip()
    found = _SLICE.search(plain)
    plain = plain[: found.start()].strip(" -") if found else plain
    plain = _GLUED.sub("rtx ", _GAP.sub("", _FAMILY.sub("", _VENDOR.sub("", plain, count=1), count=1)))
    said: dict[str, str] = {}
    model, words = [], []
    for word in re.split(r"[\s_/,-]+", plain):
        kind = _kind_of(word)
        if kind in ("", "power"):
            continue
        words.append(word)
        if kind == "model" or kind in said:
            model.append(word)
        else:
            said[kind] = word
    size = _SIZE.match(said.get("size", ""))
    return DeviceName(
        tuple(words),
        tuple(model),
        said.get("form", ""),
        int(size[1]) if size else 0,
        said.get("kind", ""),
        found[1] if found else "",
    )


def _kind_of(word: str) -> str:
    """What a word of a name says; '' where it says nothing."""
    # nvidia-smi's table cuts long names: "NVIDIA RTX 6000 Ada Gene..."
    if word in ("", "rtx", "gpu") or ("generation".startswith(word.rstrip(".")) and len(word) > 2):
        return ""
    patterns = {"form": _FORM, "size": _SIZE, "kind": _KIND, "power": _POWER}
    return next((kind for kind, pattern in patterns.items() if pattern.match(word)), "model")
