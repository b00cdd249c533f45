"""What can be told about a JPEG without decoding it: its size, and whether it is all there."""

from __future__ import annotations

import re

from edl_labs.pipeline.errors import BrokenSample

_START = b"\xff\xd8"
_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA  # start and end of the image, start of a scan (ITU T.81, table B.1)
# Restart markers, which stand among the compressed data, and TEM: all other ones are followed by a length.
_ALONE = {*range(0xD0, 0xD8), 0x01}
# A marker, behind any number of filling bytes; inside a scan, stuffed zeros and restarts do not count.
_MARKER = re.compile(rb"\xff[^\x00\xff]")
_IN_SCAN = re.compile(rb"\xff[^\x00\xff\xd0-\xd7]")
# Start-of-frame markers: all of C0 to CF but the tables C4, C8 and CC.
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def jpeg_size(data: bytes, *, sample: str = "the image") -> tuple[int, int]:
    """(height, width) as the frame header says; BrokenSample where the header is missing.

    >>> jpeg_size(b"GIF89a", sample="sample 3")
    Traceback (most recent call last):
    ...
    edl_labs.pipeline.errors.BrokenSample: sample 3 cannot be used: it is not a JPEG: it starts with b'GIF8'
      why:  its bytes are not what was written
      next: drop it from the data set, or write it again
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
            raise BrokenSample(sample, f"the JPEG is cut off: another one begins after {place - 2:,} bytes")
        if marker in _ALONE:
            continue
        scanned = scanned or marker == _SOS
        # A length of less than its own two bytes would go round for ever.
        place += max(2, int.from_bytes(data[place : place + 2], "big"))
    raise BrokenSample(sample, f"the JPEG is cut off after {len(data):,} bytes: it has no end marker")
