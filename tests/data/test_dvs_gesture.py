"""DVS-Gesture folders written by the test in the true format."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import load_dvs_gesture, read_gesture_labels
from tests.data.damage import check_absent, flips, survives
from tests.data.test_aedat import HEADER, packet

HINT = "Download DVS-Gesture and unpack DvsGesture.tar.gz"
COLUMNS = "class,startTime_usec,endTime_usec"
SAMPLE = f"{COLUMNS}\n1,100,200\n11,250,9000\n".encode()
GESTURE = st.tuples(st.integers(0, 10), st.integers(0, 10**9), st.integers(1, 10**9))


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("gesture") / "user01_led_labels.csv"


@given(st.lists(GESTURE), st.sampled_from(["\n", "\r\n"]))
def test_read_gesture_labels_round_trip(path, gestures, line_end):
    expected = [[label, start, start + length] for label, start, length in gestures]
    lines = [f"{label + 1},{start},{end}" for label, start, end in expected]
    path.write_bytes("".join(line + line_end for line in [COLUMNS, *lines]).encode())
    assert read_gesture_labels(path).tolist() == expected


def test_read_gesture_labels_cut_anywhere(path):
    whole = [[0, 100, 200], [10, 250, 9000]]
    for length in range(1, len(SAMPLE)):
        read = survives("read_gesture_labels", read_gesture_labels, path, SAMPLE[:length])
        if read is not None and len(read):
            # All a cut can do unseen is to shorten the last number.
            assert read[:-1].tolist() == whole[: len(read) - 1]
            label, start, end = whole[len(read) - 1]
            assert read[-1, :2].tolist() == [label, start]
            assert str(end).startswith(str(read[-1, 2]))


@given(flips(SAMPLE))
def test_read_gesture_labels_bits_flipped(path, content):
    read = survives("read_gesture_labels", read_gesture_labels, path, content)
    assert read is None or ((read[:, 0] >= 0) & (read[:, 0] < 11) & (read[:, 1] < read[:, 2])).all()


def test_read_gesture_labels_refuses_absent_files(tmp_path):
    check_absent("read_gesture_labels", read_gesture_labels, tmp_path, HINT)


@pytest.mark.parametrize(
    "content, message",
    [
        (b"class,start,end\n1,2,3\n", f"begin with the line '{COLUMNS}', got 'class,start,end'"),
        (b"\n \n", f"begin with the line '{COLUMNS}', got ''"),
        *(
            (
                f"{COLUMNS}\n1,2,3\n{line}\n4,5,6\n".encode(),
                f"have lines class (1 to 11), start, later end, got {line!r} in line 3",
            )
            for line in [
                "12,5,6",
                "0,5,6",
                "1,6,6",
                "1,2",
                "1,2,3,4",
                "1,-2,3",
                "1,2,x",
                "1,2," + 30 * "9",
                "",
            ]
        ),
    ],
)
def test_read_gesture_labels_refuses(path, content, message):
    path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        read_gesture_labels(path)
    assert str(caught.value) == (
        f"read_gesture_labels: `path` must {message} in {str(path)!r}. Download or extract the file again."
    )


@pytest.fixture
def root(tmp_path):
    (tmp_path / "trials_to_train.txt").write_text("user01_led.aedat\nuser02_lab.aedat\n")
    for name in ("user01_led", "user02_lab"):
        events = [(5, 9, 1, 50), (5, 9, 1, 100), (127, 0, 0, 199), (3, 3, 0, 200), (8, 9, 1, 250)]
        (tmp_path / f"{name}.aedat").write_bytes(HEADER + packet(events))
        (tmp_path / f"{name}_labels.csv").write_bytes(SAMPLE)
    return tmp_path


def test_load_dvs_gesture_cuts_recordings_into_gestures(root):
    data = load_dvs_gesture(root, num_steps=2, duration=100)
    assert data.labels.tolist() == [0, 10, 0, 10]
    assert data.num_neurons == 2 * 128 * 128
    # From 100 on and before 200: the second and third event; from 250 on: the last, at time 0 of its gesture.
    assert data.ids[:2].tolist() == [
        [[128 * 128 + 9 * 128 + 5], [127]],
        [[128 * 128 + 9 * 128 + 8], [2 * 128 * 128]],
    ]


def test_load_dvs_gesture_counts_what_is_after_the_duration(root):
    # Gestures last longer than what is taken of them, which is no cause for a warning, unless nothing is left.
    assert load_dvs_gesture(root, num_steps=2, duration=99).outside.tolist() == [1, 0, 1, 0]
    (root / "user01_led.aedat").write_bytes(
        HEADER + packet([(5, 9, 1, time) for time in range(190, 200)] * 20)
    )
    with pytest.warns(
        RuntimeWarning, match=r"^load_dvs_gesture: 99 % of the events are outside \[0, 1\) and"
    ):
        assert load_dvs_gesture(root, num_steps=2, duration=1).outside.tolist() == [200, 0, 1, 0]


def test_load_dvs_gesture_downsamples(root):
    data = load_dvs_gesture(root, num_steps=2, duration=100, downsample=3)
    # 43 x 43 pixels, the last 2 wide.
    assert data.num_neurons == 2 * 43 * 43
    assert data.ids[0].tolist() == [[43 * 43 + 3 * 43 + 1], [42]]


def test_load_dvs_gesture_takes_few_gestures(root):
    (root / "user02_lab_labels.csv").write_text(COLUMNS)
    assert np.array_equal(load_dvs_gesture(root).labels, [0, 10])
    (root / "user01_led_labels.csv").write_text(COLUMNS)
    assert len(load_dvs_gesture(root)) == 0


def test_load_dvs_gesture_refuses(root):
    with pytest.raises(ValueError) as caught:
        load_dvs_gesture(root, "test")
    path = root / "trials_to_test.txt"
    assert str(caught.value) == (
        f"load_dvs_gesture: `path` must be a readable file, got {str(path)!r} (No such file or directory). {HINT}."
    )
    path.write_text("\n\n")
    with pytest.raises(ValueError) as caught:
        load_dvs_gesture(root, "test")
    assert str(caught.value) == (
        f"load_dvs_gesture: `path` must name recordings, got none in {str(path)!r}. Download or extract the file again."
    )
    with pytest.raises(ValueError) as caught:
        load_dvs_gesture(root, downsample=0)
    assert str(caught.value) == (
        "load_dvs_gesture: `downsample` must be an integer of at least 1, got 0. Pass 1 or more."
    )
