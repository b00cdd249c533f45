"""JPEGs: what is known without decoding them, and decoders by availability: bytes in, uint8 RGB out."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Any

from edl_labs.arguments import checked_arguments
from edl_labs.errors import EdlError, UsageError
from edl_labs.pipeline.errors import BrokenSample, needed
from edl_labs.values import Value

if TYPE_CHECKING:
    import numpy as np

_START = b"\xff\xd8"
_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA  # start and end of the image, start of a scan (ITU T.81, table B.1)
# Restart markers, which stand among the compressed data, and TEM: all other ones are followed by a length.
_ALONE = {*range(0xD0, 0xD8), 0x01}
# A marker, behind any number of filling bytes; inside a scan, stuffed zeros and restarts do not count.
_MARKER = re.compile(rb"\xff[^\x00\xff]")
_IN_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
# Start-of-frame markers: all of C0 to CF but the tables C4, C8 and CC.
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


@checked_arguments()
def jpeg_size(data: bytes, *, sample: str = "the image") -> tuple[int, int]:
    """(height, width) as the frame header says; BrokenSample where the header is missing.

    >>> jpeg_size(b"GIF89a", sample="sample 3")
    Traceback (most recent call last):
    ...
    edl_labs.pipeline.errors.BrokenSample: sample 3 cannot be used: it is not a JPEG: it starts with b'GIF8'
      why:  its bytes differ from those that were written
      next: remove it from the data set, or write it again
    """
    if data[:2] != _START:
        raise BrokenSample(sample, f"it is not a JPEG: it starts with {data[:4]!r}" if data else "it is empty")
    place = 2
    while place + 9 <= len(data) and data[place] == 0xFF:
        marker = data[place + 1]
        if marker == 0xFF:
            # Any number of these may stand before a marker, to fill up.
            place += 1
            continue
        if marker in _FRAMES:
            return int.from_bytes(data[place + 5 : place + 7], "big"), int.from_bytes(
                data[place + 7 : place + 9], "big"
            )
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    raise BrokenSample(sample, f"its header ends after {len(data):,} bytes")


@checked_arguments()
def check_jpeg(data: bytes, *, sample: str = "the image") -> None:
    """BrokenSample where a JPEG is cut off: some decoders fill the rest with grey and say nothing.

    Markers are followed to the end marker of the image itself, not to one of a preview or of what stands behind it:
    telephones and cameras append to whole files. Inside the compressed data anything decodes to something, so that
    bytes changed, lost or zeroed there are not found here, and only some decoders object: `Store.read(verify=True)`
    finds them, as `ImageDataset` does.
    """
    if not data or data[:2] != _START:
        jpeg_size(data, sample=sample)
    place, scanned = 2, False
    while found := (_IN_SCAN if scanned else _MARKER).search(data, place):
        marker, place = data[found.end() - 1], found.end()
        if marker == _EOI:
            if not scanned:
                raise BrokenSample(sample, f"the JPEG ends after {place:,} bytes without an image")
            return
        if marker == _SOI:
            raise BrokenSample(sample, f"the JPEG is truncated: another one begins after {place - 2:,} bytes")
        if marker in _ALONE:
            continue
        scanned = scanned or marker == _SOS
        # A length of less than its own two bytes would go round for ever.
        place += max(2, int.from_bytes(data[place : place + 2], "big"))
    raise BrokenSample(sample, f"the JPEG is truncated after {len(data):,} bytes: it has no end marker")


# Builds of libjpeg-turbo round and upsample differently; a wrong colour order or conversion is far beyond.
MEAN_TOLERANCE, LARGEST_TOLERANCE = 1.0, 48


@dataclass(frozen=True)
class Decoder:
    """A decoder of this machine, by name: it travels to workers as its name alone."""

    name: str
    version: str

    def __call__(self, data: bytes, *, sample: str = "the image") -> Any:
        """The image; BrokenSample, naming `sample`, where the file is cut off or cannot be decoded."""
        check_jpeg(data, sample=sample)
        return self._called(lambda: _DECODERS[self.name](data, None), sample)

    def scaled(self, data: bytes, at_least: tuple[int, int], *, sample: str = "the image") -> np.ndarray:
        """The image at some eighths of its size, the smallest that is not below `at_least` (height, width).

        The decoder leaves coefficients out instead of computing pixels that a resize throws away (Pillow's draft mode).
        """
        if self.name not in SCALING:
            raise UsageError(
                f"{self.name} has no scaled decoding here",
                why=f"only {' and '.join(SCALING)} have scaled decoding",
                next="choose one of these, or decode the full image and resize it",
            )
        check_jpeg(data, sample=sample)
        return self._called(lambda: _DECODERS[self.name](data, at_least), sample)

    def _called(self, decode: Callable[[], Any], sample: str) -> Any:
        try:
            image = decode()
        except EdlError:
            raise
        except Exception as error:
            raise BrokenSample(sample, f"{self.name} says {type(error).__name__}: {error}") from error
        if image is None:
            raise BrokenSample(sample, f"{self.name} gives no image")
        return _three_channels(image)


@dataclass(frozen=True, repr=False)
class Agreement(Value):
    """How far a decoder's images are from the reference's, in levels of 0 to 255."""

    DERIVED = ("agrees",)

    name: str
    reference: str
    mean_difference: float
    largest_difference: int
    same_shape: bool

    @property
    def agrees(self) -> bool:
        """Whether the images are the same up to rounding and upsampling."""
        close = self.mean_difference <= MEAN_TOLERANCE and self.largest_difference <= LARGEST_TOLERANCE
        return self.same_shape and close


def decoders() -> dict[str, Decoder]:
    """The decoders that work on this machine, by name."""
    return {name: Decoder(name, note) for name, (works, note) in _availability().items() if works}


def missing_decoders() -> dict[str, str]:
    """The decoders that do not work on this machine, each with the reason."""
    return {name: note for name, (works, note) in _availability().items() if not works}


@checked_arguments()
def decoder(name: str) -> Decoder:
    """One decoder; UsageError with the reason where it is missing."""
    found = decoders()
    if name in found:
        return found[name]
    why = missing_decoders().get(name, "no decoder has this name")
    raise UsageError(
        f"there is no decoder {name!r} here",
        why=why,
        next=f"choose one of {', '.join(found)}, or install this decoder"
        if found
        else "install one: pip install 'edl-labs[data]'",
    )


@checked_arguments()
def agreement(samples: Sequence[bytes], chosen: Mapping[str, Callable[..., Any]] | None = None) -> list[Agreement]:
    """What must hold before speeds are compared: each decoder's images against the first one's."""
    import numpy as np

    chosen = decoders() if chosen is None else chosen
    if not chosen or not samples:
        raise UsageError(
            "there is nothing to compare",
            why="a comparison needs a decoder and an image",
            next="run pip install 'edl-labs[data]'",
        )
    reference, first = next(iter(chosen.items()))
    wanted = [first(data, sample=f"sample {n}") for n, data in enumerate(samples)]
    found = []
    for name, decode in chosen.items():
        images = [decode(data, sample=f"sample {n}") for n, data in enumerate(samples)]
        same = all(image.shape == want.shape for image, want in zip(images, wanted, strict=True))
        pairs = zip(images, wanted, strict=True) if same else ()
        gaps = [np.abs(image.astype(np.int16) - want) for image, want in pairs]
        mean = float(np.mean([gap.mean() for gap in gaps])) if gaps else float("nan")
        largest = int(max(gap.max() for gap in gaps)) if gaps else 255
        found.append(Agreement(name, reference, mean, largest, same))
    return found


def _three_channels(image: Any) -> Any:
    import numpy as np

    image = np.asarray(image)
    if image.ndim == 2:
        image = image[..., None]
    return np.repeat(image, 3, axis=2) if image.shape[2] == 1 else image


def _pillow(data: bytes, at_least: tuple[int, int] | None) -> Any:
    from io import BytesIO

    import numpy as np

    image = needed("pillow", module="PIL.Image").open(BytesIO(data))
    if at_least is not None:
        image.draft("RGB", (at_least[1], at_least[0]))
    return np.asarray(image.convert("RGB"))


def _simplejpeg(data: bytes, at_least: tuple[int, int] | None) -> Any:
    decode = needed("simplejpeg").decode_jpeg
    if at_least is None:
        return decode(data)
    return decode(data, min_height=at_least[0], min_width=at_least[1])


def _torchvision(data: bytes, at_least: tuple[int, int] | None) -> Any:
    module, torch = needed("torchvision", module="torchvision.io", extra="vision"), needed("torch")
    tensor = torch.frombuffer(bytearray(data), dtype=torch.uint8)
    return module.decode_jpeg(tensor, mode=module.ImageReadMode.RGB).permute(1, 2, 0).numpy()


def _opencv(data: bytes, at_least: tuple[int, int] | None) -> Any:
    import numpy as np

    cv2 = needed("opencv-python-headless", module="cv2")
    image = cv2.imdecode(np.frombuffer(data, dtype=np.uint8), cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION)
    return None if image is None else cv2.cvtColor(image, cv2.COLOR_BGR2RGB)


def _kornia_rs(data: bytes, at_least: tuple[int, int] | None) -> Any:
    return needed("kornia-rs", module="kornia_rs.io").decode_image_jpegturbo(data, "rgb")


def _imagecodecs(data: bytes, at_least: tuple[int, int] | None) -> Any:
    return needed("imagecodecs").jpeg8_decode(data)


_DECODERS: dict[str, Callable[[bytes, tuple[int, int] | None], Any]] = {
    "pillow": _pillow,
    "simplejpeg": _simplejpeg,
    "torchvision": _torchvision,
    "opencv": _opencv,
    "kornia-rs": _kornia_rs,
    "imagecodecs": _imagecodecs,
}
_PACKAGES = {"opencv": "opencv-python-headless"}
SCALING = ("pillow", "simplejpeg")


@cache
def _availability() -> dict[str, tuple[bool, str]]:
    return {name: _tried(name) for name in _DECODERS}


def _tried(name: str) -> tuple[bool, str]:
    try:
        image = _three_channels(_DECODERS[name](_SMALL, None))
        if image.shape != (8, 8, 3):
            return False, f"it decodes an 8 x 8 image to {image.shape}"
        return True, _version(_PACKAGES.get(name, name))
    except EdlError as error:
        return False, error.why or error.what
    except Exception as error:
        return False, f"{type(error).__name__}: {error}"


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "unknown"


# A grey image of 8 x 8 pixels, to see whether a decoder works at all.
_SMALL = bytes.fromhex(
    "ffd8ffe000104a46494600010100000100010000ffdb004300100b0c0e0c0a100e0d0e1211101318281a181616183123251d283a333d3c39"
    "33383740485c4e404457453738506d51575f626768673e4d71797064785c656763ffc0000b080008000801011100ffc40014000100000000"
    "000000000000000000000000ffc40014100100000000000000000000000000000000ffda0008010100003f003fffd9"
)
