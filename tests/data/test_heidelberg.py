"""SHD and SSC files written by the test in the true format."""

import subprocess
import sys
import tempfile

import h5py
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import _hdf5, _hdf5_child, heidelberg, load_shd, load_ssc, read_heidelberg
from tests.data.damage import flips, survives

SAMPLES = [
    (np.array([0.0, 0.25, 0.75]), np.array([3, 699, 3]), 7),
    (np.array([]), np.array([]), 0),
    (np.array([0.5]), np.array([10]), 19),
]


def write(path, samples, times_type=np.float16, units_type=np.uint16, drop=None):
    """The layout of the published files: arrays of variable length, and extra groups that do not matter."""
    with h5py.File(path, "w") as file:
        times = file.create_dataset("spikes/times", (len(samples),), h5py.vlen_dtype(times_type))
        units = file.create_dataset("spikes/units", (len(samples),), h5py.vlen_dtype(units_type))
        for k, (sample_times, sample_units, _) in enumerate(samples):
            times[k], units[k] = sample_times.astype(times_type), sample_units.astype(units_type)
        file["labels"] = np.array([label for *_, label in samples], np.uint16)
        file["extra/speaker"] = np.zeros(len(samples), np.uint16)
        if drop:
            del file[drop]
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("heidelberg")


@pytest.fixture(scope="module")
def path(folder):
    return write(folder / "shd_train.h5", SAMPLES)


@pytest.fixture(scope="class")
def at_home():
    """The child's work is done in this process: it takes a child a fifth of a second to start."""

    def read_blocks(path):
        with tempfile.TemporaryFile() as stream:
            _hdf5_child.send_blocks(str(path), stream)
            stream.seek(0)
            yield from _hdf5.receive_blocks(stream)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(heidelberg, "read_blocks", read_blocks)
        yield


@pytest.mark.usefixtures("at_home")
@given(
    st.lists(
        st.tuples(
            st.lists(st.tuples(st.integers(0, 1024), st.integers(0, 699)), max_size=5), st.integers(0, 34)
        ),
        max_size=4,
    )
)
def test_read_heidelberg_round_trip(folder, samples):
    arrays = [
        (np.array([t for t, _ in events]) / 1024, np.array([u for _, u in events]), k)
        for events, k in samples
    ]
    read = read_heidelberg(write(folder / "round.h5", arrays))
    assert [times.tolist() for times in read.times] == [times.tolist() for times, _, _ in arrays]
    assert [units.tolist() for units in read.units] == [units.tolist() for _, units, _ in arrays]
    assert read.labels.tolist() == [label for *_, label in arrays]


def test_load_shd_makes_data_set(path):
    data = load_shd(path, num_steps=4, duration=1.0)
    assert data.num_neurons == 700
    assert data.num_classes == 20
    assert data.labels.tolist() == [7, 0, 19]
    assert data.counts.tolist() == [[1, 1, 0, 1], [0, 0, 0, 0], [0, 0, 1, 0]]
    assert data.ids[:, :, 0].tolist() == [[3, 699, 700, 3], [700] * 4, [700, 700, 10, 700]]


def test_load_ssc_downsamples(path):
    data = load_ssc(path, num_steps=1, downsample=200)
    assert (data.num_neurons, data.num_classes) == (4, 35)
    assert data.ids[:, 0].tolist() == [[0, 3], [4, 4], [0, 4]]


def test_load_shd_reads_more_than_one_block(folder):
    many = [(np.array([k / 1024]), np.array([k % 700]), k % 20) for k in range(600)]
    data = load_shd(write(folder / "many.h5", many), num_steps=1)
    assert data.ids[:, 0, 0].tolist() == [k % 700 for k in range(600)]


@pytest.mark.usefixtures("at_home")
def test_read_heidelberg_cut_anywhere(path, folder):
    content = path.read_bytes()
    # HDF5 stores the length of the file; every 13th of some thousand lengths, and the last ones.
    for length in [*range(0, len(content), 13), *range(len(content) - 8, len(content))]:
        assert survives("read_heidelberg", read_heidelberg, folder / "cut.h5", content[:length]) is None


def heap_of(content):
    """Where the arrays of the samples lie: header, four objects of 24 bytes, and the header of the free space."""
    start = content.index(b"GCOL")
    return slice(start, start + 16 + 4 * 24 + 16)


@pytest.mark.usefixtures("at_home")
@given(st.data())
def test_read_heidelberg_bits_flipped(path, folder, data):
    content = path.read_bytes()
    heap = heap_of(content)
    content = content[: heap.start] + data.draw(flips(content[heap])) + content[heap.stop :]
    read = survives("read_heidelberg", read_heidelberg, folder / "flipped.h5", content)
    assert read is None or all(units.max(initial=0) < 700 for units in read.units)


@pytest.mark.parametrize(
    "place, value, damage",
    [
        (8, b"\0\0\1", "a heap of 65536 bytes at offset {0} beyond the end"),
        (16 + 8, b"\0\x20", "a heap object of 8192 bytes and index 1 at offset {16}"),
        (40, b"\1", "a heap object of 6 bytes and index 1 at offset {40}"),
        (112 + 8, b"\0\0", "0 bytes of free space, not 3984, at offset {112}"),
    ],
)
def test_read_heidelberg_refuses_damaged_heaps(path, folder, place, value, damage):
    # HDF5 would never come back from some of them.
    content = path.read_bytes()
    start = heap_of(content).start
    damaged = folder / "heap.h5"
    damaged.write_bytes(content[: start + place] + value + content[start + place + len(value) :])
    for relative in (0, 16, 40, 112):
        damage = damage.replace(f"{{{relative}}}", str(start + relative))
    assert error_of(lambda: read_heidelberg(damaged)) == (
        "read_heidelberg: `path` must be HDF5 with spikes/times, spikes/units and labels, one entry per sample, "
        f"got {damage} in {str(damaged)!r}. Download or extract the file again."
    )


# In place of h5py: a library that a file crashes, one that a file holds for ever, one that ends its process.
LIBRARIES = {
    "import os, signal\ndef File(*_): os.kill(os.getpid(), signal.SIGSEGV)": "a crash of the HDF5 library (SIGSEGV)",
    "def File(*_):\n  while True: pass": "no answer from the HDF5 library within 1 s",
    "import os\ndef File(*_): os._exit(3)": "no answer from the HDF5 library (exit status 3)",
}


@pytest.mark.parametrize("library", LIBRARIES)
def test_read_heidelberg_outlives_the_hdf5_library(path, tmp_path, monkeypatch, library):
    (tmp_path / "h5py.py").write_text(library + "\n")
    monkeypatch.syspath_prepend(tmp_path)
    if "while" in library:
        monkeypatch.setattr(_hdf5, "TIME_LIMIT", 1)
    assert error_of(lambda: read_heidelberg(path)) == (
        "read_heidelberg: `path` must be HDF5 with spikes/times, spikes/units and labels, one entry per sample, "
        f"got {LIBRARIES[library]} in {str(path)!r}. Download or extract the file again."
    )


def test_read_heidelberg_refuses_heaps_that_hold_the_hdf5_library_for_ever(path, folder, monkeypatch):
    content = path.read_bytes()
    start = heap_of(content).start
    damaged = folder / "endless.h5"
    damaged.write_bytes(
        content[: start + 120] + bytes(2) + content[start + 122 :]
    )  # no free space, but no end
    monkeypatch.setattr(heidelberg, "heap_damage", lambda _: None)
    monkeypatch.setattr(_hdf5, "TIME_LIMIT", 2)
    assert "got no answer from the HDF5 library within 2 s in " in error_of(lambda: read_heidelberg(damaged))


def test_time_limit_is_that_of_the_file_not_of_the_reader(path, monkeypatch):
    running = []

    class Timer:
        def __init__(self, seconds, _):
            self.seconds = seconds

        def start(self):
            running.append(self.seconds)

        def cancel(self):
            running.remove(self.seconds)

    monkeypatch.setattr(_hdf5.threading, "Timer", Timer)
    receive, waiting = _hdf5.receive_blocks, []

    def received(stream):
        for block in receive(stream):
            waiting.append(list(running))
            yield block

    monkeypatch.setattr(_hdf5, "receive_blocks", received)
    taken = [list(running) for _ in _hdf5.read_blocks(path)]
    # It runs while the library is waited for, not while a block is used.
    assert waiting == [[_hdf5.TIME_LIMIT]] and taken == [[]]


def test_read_heidelberg_works_in_a_program_without_a_main_guard(path, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import multiprocessing\nmultiprocessing.set_start_method('spawn')\n"
        f"from snnjax.data import load_shd\nassert len(load_shd({str(path)!r})) == 3\n"
    )
    done = subprocess.run([sys.executable, program], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def error_of(call):
    with pytest.raises(ValueError) as caught:
        call()
    return str(caught.value)


def test_read_heidelberg_refuses_absent_files(folder):
    assert error_of(lambda: read_heidelberg(folder)) == (
        f"read_heidelberg: `path` must be a readable file, got {str(folder)!r}. Download it and unpack the .h5 file."
    )


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize("drop", ["labels", "spikes/times", "spikes"])
def test_read_heidelberg_refuses_missing_parts(folder, drop):
    path = write(folder / "part.h5", SAMPLES, drop=drop)
    text = error_of(lambda: read_heidelberg(path))
    # The reason in the middle is h5py's.
    expected = "be HDF5 with spikes/times, spikes/units and labels, one entry per sample"
    assert text.startswith(f"read_heidelberg: `path` must {expected}, got KeyError: ")
    assert text.endswith(f" in {str(path)!r}. Download or extract the file again.")


@pytest.mark.usefixtures("at_home")
@pytest.mark.parametrize(
    "sample, types, message",
    [
        (
            (np.array([0.1, 0.2]), np.array([1]), 0),
            (np.float32, np.int64),
            "hold as many real times as integer units in each sample, got float32[2] and int64[1] in sample 1",
        ),
        (
            (np.array([1.0]), np.array([1.0]), 0),
            (np.float32, np.float32),
            "hold as many real times as integer units in each sample, got float32[3] and float32[3] in sample 0",
        ),
        (
            (np.array([np.nan]), np.array([1]), 0),
            (np.float16, np.uint16),
            "hold finite times, got NaN or infinity in sample 1",
        ),
        (
            (np.array([0.0, 0.0]), np.array([3, 700]), 0),
            (np.float16, np.uint16),
            "hold units in [0, 700), got 3 to 700 in sample 1",
        ),
        (
            (np.array([0.0]), np.array([-1]), 0),
            (np.float16, np.int16),
            "hold units in [0, 700), got -1 to -1 in sample 1",
        ),
    ],
)
def test_read_heidelberg_refuses_samples(folder, sample, types, message):
    path = write(folder / "sample.h5", [SAMPLES[0], sample], *types)
    assert error_of(lambda: read_heidelberg(path)) == (
        f"read_heidelberg: `path` must {message} in {str(path)!r}. Download or extract the file again."
    )


def test_load_shd_refuses_labels_of_ssc(folder):
    path = write(folder / "ssc.h5", [SAMPLES[0], (np.array([0.0]), np.array([1]), 20)])
    assert error_of(lambda: load_shd(path)) == (
        f"load_shd: `path` must hold labels from 0 to 19, got 20 for sample 1 in {str(path)!r}. Download "
        "or extract the file again."
    )


def test_read_heidelberg_says_how_to_get_h5py(path, monkeypatch):
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ImportError) as caught:
        read_heidelberg(path)
    assert str(caught.value) == (
        "read_heidelberg: `h5py` must be installed for .h5 files, got no such package. Install it, for "
        "instance with pip install h5py."
    )


def test_read_heidelberg_reads_no_more_than_a_file_can_hold(folder):
    # Every row refers to the one array of 100,000 numbers.
    path, places = folder / "shared.h5", []
    with h5py.File(path, "w") as file:
        for name, kind in (("times", np.float32), ("units", np.uint16)):
            rows = file.create_dataset(f"spikes/{name}", (5000,), h5py.vlen_dtype(kind))
            rows[0] = np.zeros(100_000, kind)
            references = rows.id.get_offset()
            places.append(references)
        file["labels"] = np.zeros(5000, np.uint16)
    content = bytearray(path.read_bytes())
    for place in places:
        content[place : place + 16 * 5000] = content[place : place + 16] * 5000
    path.write_bytes(content)
    assert "got ValueError: longer arrays than the file holds in " in error_of(lambda: read_heidelberg(path))


@pytest.mark.usefixtures("at_home")
def test_read_heidelberg_refuses_more_samples_than_a_file_can_hold(folder):
    path = folder / "declared.h5"
    with h5py.File(path, "w") as file:
        for name, kind in (("times", np.float32), ("units", np.uint16)):
            file.create_dataset(f"spikes/{name}", (2**30,), h5py.vlen_dtype(kind), chunks=(1024,))
        file.create_dataset("labels", (2**30,), np.uint16, chunks=(1024,))
    expected = "got ValueError: 1073741824 samples declared, more than the file holds in "
    assert expected in error_of(lambda: read_heidelberg(path))


def test_hdf5_library_gets_no_more_memory_than_it_may(path, tmp_path, monkeypatch):
    (tmp_path / "h5py.py").write_text("def File(*_): bytearray(2**34)\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert "got MemoryError in " in error_of(lambda: read_heidelberg(path))
