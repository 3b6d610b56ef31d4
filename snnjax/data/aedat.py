"""AEDAT 3.1, the file format of DVS-Gesture, and AEDAT 2.0 of a DVS128, that of CIFAR10-DVS.

AEDAT 3.1 is a text header, then packets of events, little-endian. The header's first line is ``#!AER-DAT3.1`` and its
last ``#!END-HEADER``. A packet has a header of 28 bytes: the
event type and source (int16 each), then six int32: bytes per event, offset of the time within an event, upper bits
of all times, capacity, number of events, and number of valid ones. A polarity event (type 1) is a uint32
(bit 0 valid, bit 1 polarity, bits 2 to 16 y, bits 17 to 31 x) and an int32 of microseconds, to which the upper
bits add ``2**31`` each. Packets of other types are skipped.

AEDAT 2.0 is lines that begin with ``#``, the first one ``#!AER-DAT2.0``, then events of 8 bytes, big-endian: a uint32
address and a uint32 of microseconds. In the address of a DVS128, bit 0 is 0 for the polarity on, bits 1 to 7 count
columns from the right and bits 8 to 14 rows from the bottom; bit 15 marks external events, which are skipped.

Source: the formats' public descriptions, "AEDAT 2.0" and "AEDAT 3.1", inivation.github.io/inivation-docs.
"""

import struct

import numpy as np

from snnjax._check import fail, plural
from snnjax.data._files import CameraEvents, PathLike, read_bytes, refuse

_FIRST_LINE_OF_2 = b"#!AER-DAT2.0"
_DVS128, _EXTERNAL = 128, 1 << 15  # pixels a side, and the bit of an event that is none of a pixel
_FIRST_LINE, _LAST_LINE = b"#!AER-DAT3.1", b"#!END-HEADER"
_ANY_VERSION = b"#!AER-DAT"
_PACKET_HEADER = struct.Struct("<hhiiiiii")
_POLARITY_TYPE, _EVENT_BYTES = 1, 8
_TIME_BITS, _ADDRESS_MASK = 31, 0x7FFF
_HINT = "Download DVS-Gesture and unpack DvsGesture.tar.gz"


def read_aedat(path: PathLike, size: int = 128) -> CameraEvents:
    r"""Read the valid polarity events of an AEDAT 3.1 file from a camera with `size` x `size` pixels, or of AEDAT 2.0.

    Files of AEDAT 2.0 are those of a DVS128, such as of CIFAR10-DVS.

    Errors: the file is missing or empty, has another version or is truncated, or its packets are inconsistent or hold
    pixels beyond `size`.

    Example:
        >>> import pathlib, struct, tempfile
        >>> from snnjax.data import read_aedat
        >>> path = pathlib.Path(tempfile.mkdtemp(), "user01_led.aedat")
        >>> packet = struct.pack("<hhiiiiiiIi", 1, 0, 8, 4, 0, 1, 1, 1, 5 << 17 | 9 << 2 | 0b11, 1000)
        >>> _ = path.write_bytes(b"#!AER-DAT3.1\r\n#!END-HEADER\r\n" + packet)
        >>> read_aedat(path)
        CameraEvents(times=array([1000]), x=array([5]), y=array([9]), polarity=array([1]))
    """
    content = read_bytes("read_aedat", path, _HINT)
    if content.startswith(_FIRST_LINE_OF_2):
        return _read_version_2(content, size, path)
    offset = _skip_header(content, path)
    packets = [np.zeros((4, 0), np.int64)]
    while offset < len(content):
        start, stop, event_type, time_base = _packet(content, offset, path)
        if event_type == _POLARITY_TYPE:
            packets.append(_decode(content, start, stop, time_base, size, path))
        offset = stop
    return CameraEvents(*np.concatenate(packets, axis=1))


def _read_version_2(content: bytes, size: int, path: PathLike) -> CameraEvents:
    """The events of a DVS128."""
    offset = 0
    # An event of address 0x23... would begin with "#" too: the cameras' addresses are below 2**16.
    while content[offset : offset + 1] == b"#":
        end = content.find(b"\n", offset)
        offset = len(content) if end < 0 else end + 1
    if (length := len(content) - offset) % _EVENT_BYTES:
        refuse("read_aedat", path, "have events of 8 bytes", f"{plural(length, 'byte')} at offset {offset}")
    address, times = np.frombuffer(content, ">u4", offset=offset).reshape(-1, 2).astype(np.int64).T
    pixel = address & _EXTERNAL == 0
    address, times = address[pixel], times[pixel]
    x, y = _DVS128 - 1 - (address >> 1 & 0x7F), _DVS128 - 1 - (address >> 8 & 0x7F)
    wrong = np.flatnonzero((address >> 16 != 0) | (x >= size) | (y >= size))
    if wrong.size:
        actual = f"address {address[wrong[0]]:#x}"
        refuse("read_aedat", path, f"hold events of {size} x {size} pixels of a DVS128", actual)
    return CameraEvents(times, x, y, 1 - (address & 1))


def _skip_header(content: bytes, path: PathLike) -> int:
    """The offset of the first packet."""
    first = content.split(b"\n", 1)[0].rstrip(b"\r")
    if first != _FIRST_LINE:
        expected = f"begin with the line {_FIRST_LINE.decode()!r}"
        actual = repr(first[: len(_FIRST_LINE)])
        if not first.startswith(_ANY_VERSION):
            refuse("read_aedat", path, expected, actual)
        hint = "Convert it to AEDAT 3.1, or read it with another package and use structured_events"
        fail(f"read_aedat: `path` must {expected}, got {actual} in {str(path)!r}. {hint}.")
    offset = 0
    while (end := content.find(b"\n", offset)) >= 0 and content[offset : offset + 1] == b"#":
        line = content[offset:end].rstrip(b"\r")
        offset = end + 1
        if line == _LAST_LINE:
            return offset
    expected = f"have header lines that begin with '#' up to {_LAST_LINE.decode()!r}"
    return refuse("read_aedat", path, expected, f"another line or the end at offset {offset}")


def _packet(content: bytes, offset: int, path: PathLike) -> tuple[int, int, int, int]:
    """The start and end of the events of the packet at `offset`, their type, and the base of their times."""
    start = offset + _PACKET_HEADER.size
    if start > len(content):
        actual = f"{plural(len(content) - offset, 'byte')} at offset {offset}"
        refuse("read_aedat", path, f"have packet headers of {_PACKET_HEADER.size} bytes", actual)
    event_type, _, event_bytes, time_offset, overflow, _, number, _ = _PACKET_HEADER.unpack_from(
        content, offset
    )
    if event_bytes <= 0 or number < 0 or overflow < 0:
        actual = f"{event_bytes}, {number} and {overflow} at offset {offset}"
        refuse(
            "read_aedat",
            path,
            "have packets with an event size above 0, and a number and time overflow of at least 0",
            actual,
        )
    if event_type == _POLARITY_TYPE and (event_bytes, time_offset) != (_EVENT_BYTES, 4):
        actual = f"{plural(event_bytes, 'byte')} with the time at byte {time_offset}, at offset {offset}"
        refuse("read_aedat", path, "have polarity events of 8 bytes with the time at byte 4", actual)
    stop = start + number * event_bytes
    if stop > len(content):
        actual = f"{len(content) - start} at offset {start}"
        expected = f"have {plural(number * event_bytes, 'byte')} for {plural(number, 'event')}"
        refuse("read_aedat", path, expected, actual)
    return start, stop, event_type, overflow << _TIME_BITS


def _decode(content: bytes, start: int, stop: int, time_base: int, size: int, path: PathLike) -> np.ndarray:
    """Times, x, y and polarity of the valid events in ``content[start:stop]``, int64 [4, events]."""
    words = np.frombuffer(content, "<u4", (stop - start) // 4, start).reshape(-1, 2).astype(np.int64)
    address, times = words.T
    x, y = address >> 17, (address >> 2) & _ADDRESS_MASK
    valid = (address & 1) == 1
    wrong = np.flatnonzero(valid & ((x >= size) | (y >= size) | (times >> _TIME_BITS != 0)))
    if wrong.size:
        first = wrong[0]
        actual = f"({x[first]}, {y[first]}, {times[first]}) at offset {start + first * _EVENT_BYTES}"
        expected = f"hold events (x, y, time) below ({size}, {size}, 2**31)"
        refuse("read_aedat", path, expected, actual)
    return np.stack([times + time_base, x, y, (address >> 1) & 1])[:, valid]
