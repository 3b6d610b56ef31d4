"""AEDAT 3.1 files written by the test in the true format."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import read_aedat
from tests.data.damage import check_absent, flips, survives

HEADER = b"#!AER-DAT3.1\r\n#Format: RAW\r\n#Source 1: DVS128\r\n#Start-Time: 2016-05-18\r\n#!END-HEADER\r\n"
SAMPLE = [(5, 9, 1, 1000), (127, 0, 0, 1001), (0, 127, 1, 2**31 - 1)]
EVENTS = st.lists(
    st.tuples(st.integers(0, 127), st.integers(0, 127), st.integers(0, 1), st.integers(0, 2**31 - 1)),
    max_size=6,
)


def packet(events, overflow=0, event_type=1, valid=1):
    words = b"".join(struct.pack("<Ii", x << 17 | y << 2 | p << 1 | valid, t) for x, y, p, t in events)
    number = len(events)
    return struct.pack("<hhiiiiii", event_type, 1, 8, 4, overflow, number, number, number * valid) + words


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("aedat") / "user01_led.aedat"


@given(st.lists(st.tuples(EVENTS, st.integers(0, 3)), max_size=4))
def test_read_aedat_round_trip(path, packets):
    path.write_bytes(HEADER + b"".join(packet(events, overflow) for events, overflow in packets))
    read = read_aedat(path)
    expected = [(x, y, p, t + (overflow << 31)) for events, overflow in packets for x, y, p, t in events]
    assert list(zip(read.x, read.y, read.polarity, read.times, strict=True)) == expected


def test_read_aedat_leaves_out_other_packets_and_invalid_events(path):
    other = struct.pack("<hhiiiiii", 0, 1, 12, 8, 0, 1, 1, 1) + bytes(range(12))
    path.write_bytes(HEADER + other + packet(SAMPLE[:1]) + packet(SAMPLE[1:], valid=0) + packet(SAMPLE[2:]))
    assert read_aedat(path).times.tolist() == [1000, 2**31 - 1]


def test_read_aedat_cut_anywhere(path):
    first, second = packet(SAMPLE), packet(SAMPLE[:1])
    content = HEADER + first + second
    whole = {len(HEADER): 0, len(HEADER + first): 3, len(content): 4}
    for length in range(1, len(content) + 1):
        read = survives("read_aedat", read_aedat, path, content[:length])
        # Between packets a cut cannot be seen.
        assert (None if read is None else len(read.times)) == whole.get(length)


@given(flips(HEADER + packet(SAMPLE) + packet(SAMPLE[:1])))
def test_read_aedat_bits_flipped(path, content):
    read = survives("read_aedat", read_aedat, path, content)
    assert read is None or (
        read.ids(128, 128).max(initial=0) < 2 * 128 * 128 and read.times.min(initial=0) >= 0
    )


def test_read_aedat_refuses_absent_files(tmp_path):
    check_absent("read_aedat", read_aedat, tmp_path, "Download DVS-Gesture and unpack DvsGesture.tar.gz")


START = len(HEADER) + 28


@pytest.mark.parametrize(
    "content, message",
    [
        (b"#!aer-dat3.1\r\n", "begin with the line '#!AER-DAT3.1', got b'#!aer-dat3.1'"),
        (
            b"#!AER-DAT3.1\n#!END\n",
            "have header lines that begin with '#' up to '#!END-HEADER', got another line or the end at offset 19",
        ),
        (HEADER + b"12345", f"have packet headers of 28 bytes, got 5 bytes at offset {len(HEADER)}"),
        (
            HEADER + packet(SAMPLE)[:-4],
            f"have 24 bytes for 3 events, got 20 at offset {START}",
        ),
        (
            HEADER + struct.pack("<hhiiiiii", 1, 1, 8, 4, 0, 0, -1, 0),
            "have packets with an event size above 0, and a number and time overflow of at least 0, got 8, "
            f"-1 and 0 at offset {len(HEADER)}",
        ),
        (
            HEADER + struct.pack("<hhiiiiii", 1, 1, 12, 8, 0, 0, 0, 0),
            (
                "have polarity events of 8 bytes with the time at byte 4, got 12 bytes with the time at byte "
                f"8, at offset {len(HEADER)}"
            ),
        ),
        (
            HEADER + packet([*SAMPLE, (128, 3, 0, 77)]),
            f"hold events (x, y, time) below (128, 128, 2**31), got (128, 3, 77) at offset {START + 24}",
        ),
        (
            HEADER + packet([(1, 2, 0, -1)]),
            f"hold events (x, y, time) below (128, 128, 2**31), got (1, 2, 4294967295) at offset {START}",
        ),
    ],
)
def test_read_aedat_refuses(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_aedat(path)
    assert str(caught.value) == (
        f"read_aedat: `path` must {message} in {str(path)!r}. Download or extract the file again."
    )


@given(EVENTS)
def test_read_aedat_2_round_trip(path, events):
    """Columns count from the right, rows from the bottom, and bit 0 is 0 for the polarity on."""
    words = [((127 - y) << 8 | (127 - x) << 1 | 1 - p, t) for x, y, p, t in events]
    words.insert(len(words) // 2, (1 << 15, 7))  # none of a pixel
    body = b"".join(struct.pack(">II", *word) for word in words)
    path.write_bytes(b"#!AER-DAT2.0\r\n# created by jAER\r\n" + body)
    read = read_aedat(path)
    assert list(zip(read.x, read.y, read.polarity, read.times, strict=True)) == events


@pytest.mark.parametrize(
    "body, message",
    [
        (bytes(12), "have events of 8 bytes, got 12 bytes at offset 14"),
        (bytes([0, 1, *bytes(6)]), "hold events of 128 x 128 pixels of a DVS128, got address 0x10000"),
    ],
)
def test_read_aedat_2_refuses(path, body, message):
    path.write_bytes(b"#!AER-DAT2.0\r\n" + body)
    with pytest.raises(ValueError) as caught:
        read_aedat(path)
    assert str(caught.value) == (
        f"read_aedat: `path` must {message} in {str(path)!r}. Download or extract the file again."
    )


@pytest.mark.parametrize("version", ["1.0", "4.0"])
def test_read_aedat_names_another_version(path, version):
    path.write_bytes(f"#!AER-DAT{version}\r\n".encode())
    text = (
        f"read_aedat: `path` must begin with the line '#!AER-DAT3.1', got b'#!AER-DAT{version}' in {str(path)!r}. "
        "Convert it to AEDAT 3.1, or read it with another package and use structured_events."
    )
    with pytest.raises(ValueError) as caught:
        read_aedat(path)
    assert str(caught.value) == text


def test_read_aedat_ids_are_polarity_row_column(path):
    path.write_bytes(HEADER + packet([(5, 9, 1, 0)]))
    assert np.array_equal(read_aedat(path).ids(128, 128), [128 * 128 + 9 * 128 + 5])
