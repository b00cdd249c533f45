"""What can be told about a JPEG without decoding it: its size, and whether it is all there."""

from __future__ import annotations

from edl_labs.pipeline.broken import BrokenSample

_START, _END = b"\xff\xd8", b"\xff\xd9"
# Start-of-frame markers: all of C0 to CF but the tables C4, C8 and CC.
_FRAMES = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}


def jpeg_size(data: bytes, *, sample: str = "the image") -> tuple[int, int]:
    """(height, width) as the frame header says; BrokenSample where there is none.

    >>> jpeg_size(b"GIF89a", sample="sample 3")
    Traceback (most recent call last):
    ...
    edl_labs.pipeline.broken.BrokenSample: sample 3 cannot be used: it is no JPEG: it starts with b'GIF8'
      why:  its bytes are not what was written
      next: drop it from the data set, or write it again
    """
    if data[:2] != _START:
        raise BrokenSample(sample, f"it is no JPEG: it starts with {data[:4]!r}" if data else "it is empty")
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
    """BrokenSample where a JPEG is cut off: some decoders fill the rest with grey and say nothing."""
    if not data or data[:2] != _START:
        jpeg_size(data, sample=sample)
    # Cameras and shards pad with zeros behind the end marker.
    if data[-2:] != _END and not data.rstrip(b"\0").endswith(_END):
        raise BrokenSample(sample, f"the JPEG is cut off after {len(data):,} bytes: it has no end marker")
