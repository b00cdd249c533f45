"""Synthetic data, offline: images with natural statistics, token sequences, table rows; cached with a checksum."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import UsageError
from edl_labs.pipeline.batching import positive
from edl_labs.pipeline.errors import disk_errors, needed

if TYPE_CHECKING:
    import numpy as np

_VERSION = 1  # of what the generators draw: a cache of another version is left alone


@dataclass(frozen=True)
class DataSet:
    """Samples as bytes, of one kind: 'image' (JPEG), 'tokens' (int32) or 'table' (a row of float32).

    `lengths` are pixels, tokens or columns. `checksum` is the SHA-256 of all samples and their sizes.
    """

    kind: str
    name: str
    samples: tuple[bytes, ...] = field(repr=False)
    lengths: tuple[int, ...] = field(repr=False)
    checksum: str = ""

    def __len__(self) -> int:
        return len(self.samples)

    @property
    def nbytes(self) -> int:
        """All samples together."""
        return sum(map(len, self.samples))

    def array(self, sample: int) -> np.ndarray:
        """A sample of tokens or of a table as an array; UsageError for an image, which needs a decoder."""
        return as_array(self.samples[sample], self.kind)


@checked_arguments()
def as_array(payload: bytes, kind: str) -> np.ndarray:
    """The bytes of a sample as an array: int32 tokens or float32 columns."""
    import numpy as np

    if kind not in ("tokens", "table"):
        raise UsageError(
            f"a sample of kind {kind!r} is not an array", why="its bytes are compressed", next="decode it first"
        )
    return np.frombuffer(payload, dtype=np.int32 if kind == "tokens" else np.float32)


@checked_arguments()
def image_set(
    count: int = 64,
    *,
    size: tuple[int, int] = (375, 500),
    quality: int = 90,
    seed: int = 0,
    folder: Path | str | None = None,
) -> DataSet:
    """JPEG images of `size` (height, width) with the statistics of photographs.

    The power of a photograph falls as 1 / f^2 with spatial frequency (Field 1987), colours go together, and things hide
    each other: a 1 / f field per image, correlated channels, and leaves of all sizes before it (Lee et al. 2001). So
    files compress, and decoders work, about as on real ones.
    """
    height, width = (positive(side, "a side of an image") for side in size)
    name = f"image-{count}x{height}x{width}-q{quality}-s{seed}"
    return _cached("image", name, count, folder, lambda: _images(count, height, width, quality, seed))


@checked_arguments()
def token_set(
    count: int = 2000,
    *,
    median_length: float = 90.0,
    sigma: float = 0.7,
    longest: int = 2048,
    seed: int = 0,
    folder: Path | str | None = None,
) -> DataSet:
    """Token sequences of lognormal lengths, between 1 and `longest`; tokens are drawn as frequent words are (Zipf)."""
    if not (0 < median_length <= longest and 0 <= sigma <= 5):
        raise UsageError(
            f"lengths cannot have a median of {median_length} and a sigma of {sigma}",
            why=f"the median must be above 0 and at most {longest}, and sigma must be 0 to 5",
            next="try median_length=90 and sigma=0.7",
        )
    name = f"tokens-{count}-m{median_length:g}-d{sigma:g}-l{longest}-s{seed}"
    return _cached("tokens", name, count, folder, lambda: _tokens(count, median_length, sigma, longest, seed))


@checked_arguments()
def table_set(count: int = 10_000, *, columns: int = 16, seed: int = 0, folder: Path | str | None = None) -> DataSet:
    """Rows of `columns` float32: numbers that go together, as the columns of real tables do."""
    columns = positive(columns, "columns")
    name = f"table-{count}x{columns}-s{seed}"
    return _cached("table", name, count, folder, lambda: _rows(count, columns, seed))


def data_folder() -> Path:
    """Where data sets are cached: $EDL_LABS_DATA, or the user's cache folder."""
    given = os.environ.get("EDL_LABS_DATA")
    base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(given) if given else Path(base) / "edl_labs" / "data"


def _cached(kind: str, name: str, count: int, folder: Path | str | None, make: Callable[[], list[bytes]]) -> DataSet:
    positive(count, "count")
    place = (data_folder() if folder is None else Path(folder)) / f"v{_VERSION}-{name}"
    payloads = _load(place)
    if payloads is None:
        payloads = make()
        _save(place, payloads)
    return DataSet(kind, name, tuple(payloads), tuple(_length(kind, p) for p in payloads), _checksum(payloads))


def _length(kind: str, payload: bytes) -> int:
    if kind != "image":
        return len(payload) // 4
    from edl_labs.pipeline.jpeg import jpeg_size

    height, width = jpeg_size(payload)
    return height * width


def _checksum(payloads: list[bytes]) -> str:
    digest = hashlib.sha256()
    for payload in payloads:
        digest.update(len(payload).to_bytes(8, "little") + payload)
    return digest.hexdigest()


def _load(place: Path) -> list[bytes] | None:
    """What is cached, if it is all there and its checksum holds; None where it has to be made again."""
    try:
        index = json.loads(_beside(place, ".json").read_text(encoding="utf-8"))
        content = _beside(place, ".bin").read_bytes()
        sizes = index["sizes"]
        starts = [0]
        for size in sizes:
            starts.append(starts[-1] + size)
        payloads = [content[start:stop] for start, stop in pairwise(starts)]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return payloads if _checksum(payloads) == index.get("checksum") and starts[-1] == len(content) else None


def _save(place: Path, payloads: list[bytes]) -> None:
    with disk_errors(f"the data set {place.name}"):
        place.parent.mkdir(parents=True, exist_ok=True)
        _replace(_beside(place, ".bin"), b"".join(payloads))
        index = {"sizes": [len(p) for p in payloads], "checksum": _checksum(payloads)}
        _replace(_beside(place, ".json"), json.dumps(index).encode())


def _beside(place: Path, suffix: str) -> Path:
    # Not with_suffix: a name may hold a dot.
    return place.parent / (place.name + suffix)


def _replace(path: Path, content: bytes) -> None:
    # Another process may write the same file: each writes its own, and the last one stays.
    # In a folder of its own, as a temporary file would be for its owner alone, whatever the umask says.
    private = Path(tempfile.mkdtemp(dir=path.parent, prefix=".part-"))
    try:
        (private / path.name).write_bytes(content)
        os.replace(private / path.name, path)
    finally:
        shutil.rmtree(private, ignore_errors=True)


def _images(count: int, height: int, width: int, quality: int, seed: int) -> list[bytes]:
    import numpy as np

    image = needed("pillow", module="PIL.Image")
    from io import BytesIO

    rng = np.random.default_rng([seed, height, width])
    made = []
    for _ in range(count):
        buffer = BytesIO()
        image.fromarray(natural_image(rng, height, width)).save(buffer, format="JPEG", quality=quality)
        made.append(buffer.getvalue())
    return made


def natural_image(rng: Any, height: int, width: int, *, leaves: int = 12) -> Any:
    """One image, uint8 of shape (height, width, 3), drawn from `rng`."""
    import numpy as np

    light = _one_over_f(rng, height, width)
    tint = _one_over_f(rng, -(-height // 4), -(-width // 4))
    tint = np.repeat(np.repeat(tint, 4, axis=0), 4, axis=1)[:height, :width]
    rows, columns = np.ogrid[:height, :width]
    for _ in range(leaves):
        # Areas follow a power law: few large things, many small ones.
        radius = min(height, width) * 0.04 / rng.uniform(0.08, 1.0)
        y, x, squeeze = rng.uniform(0, height), rng.uniform(0, width), rng.uniform(0.5, 2.0)
        inside = ((rows - y) / squeeze) ** 2 + ((columns - x) * squeeze) ** 2 < radius**2
        light[inside] = 0.5 * light[inside] + rng.normal(0, 1.2)
        tint[inside] += rng.normal(0, 0.7)
    grey = 118 + 48 * light
    colour = np.stack([grey + 14 * tint, grey, grey - 16 * tint], axis=-1)
    return np.clip(colour + rng.normal(0, 2.0, colour.shape), 0, 255).astype(np.uint8)


def _one_over_f(rng: Any, height: int, width: int) -> Any:
    import numpy as np

    frequency = np.hypot(np.fft.fftfreq(height)[:, None], np.fft.rfftfreq(width)[None, :])
    frequency[0, 0] = np.inf
    spectrum = np.fft.rfft2(rng.standard_normal((height, width))) / frequency
    field_ = np.fft.irfft2(spectrum, s=(height, width))
    return field_ / (field_.std() or 1.0)


def _tokens(count: int, median_length: float, sigma: float, longest: int, seed: int) -> list[bytes]:
    import numpy as np

    rng = np.random.default_rng([seed, longest])
    lengths = np.clip(np.rint(rng.lognormal(np.log(median_length), sigma, count)), 1, longest).astype(int)
    return [(rng.zipf(1.2, size=length) % 32_000).astype(np.int32).tobytes() for length in lengths]


def _rows(count: int, columns: int, seed: int) -> list[bytes]:
    import numpy as np

    rng = np.random.default_rng([seed, columns])
    mixing = rng.standard_normal((columns, columns)) / np.sqrt(columns)
    values = (rng.standard_normal((count, columns)) @ mixing + rng.standard_normal(columns)).astype(np.float32)
    return [row.tobytes() for row in values]
