"""Damaged files of every reader: a result or an error of the house's form, within a time and some memory."""

import contextlib
import gzip
import io
import json
import os
import re
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import warnings
import wave
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest import mock

import h5py
import hypothesis.strategies as st
import jax
import jax.numpy as jnp
import nir
import numpy as np

import snnjax
from snnjax import data
from snnjax.data import _hdf5
from snnjax.nir import from_nir, to_nir
from snnjax.train import load_checkpoint, read_run, read_runs, results_page, save_checkpoint

_HDF5 = (".h5", ".nir")
FORM = re.compile(r"\w+(\.\w+)*: `[^`]+` must .+, got .+\. .+\.", re.DOTALL)
CPU_SECONDS = 20  # of one file; they take milliseconds
SECONDS = 2  # that the HDF5 library may take, which never comes back from some files
MOST_MEMORY = 2**30  # of this process, in one call
CHUNK = 16  # bytes that are dropped, repeated or overwritten at most
_TREE = {"params": {"weights": jnp.arange(6.0).reshape(2, 3), "bias": jnp.ones(3, jnp.bfloat16)}}


class Reader(NamedTuple):
    """What reads a file, and a sound one."""

    name: str  # of the file, which decides how some are read
    read: Callable[[Path], Any]
    content: bytes


class TooLong(BaseException):
    """No `Exception`, so that no reader takes it for one of a damaged file."""


def readers(folder: Path) -> list[Reader]:
    plain = struct.pack(">HBB3I", 0, 8, 3, 2, 3, 4) + bytes(range(24))
    run = _written(folder, lambda path: save_checkpoint(path, _TREE, _run()))
    return [
        Reader("a.aedat", data.read_aedat, _aedat()),
        Reader("a.bin", data.read_nmnist, bytes([3, 7, 0x80, 1, 0, 0, 240, 0, 0, 0, 33, 33, 5, 255, 255])),
        Reader(
            "nmnist.npz",
            data.load_nmnist,
            _arrays(x=[3], y=[7], polarity=[1], time_us=[9], label=[2], is_test=[0]),
        ),
        Reader("fsdd.npz", data.read_fsdd, _arrays(samples=[5], digit=[3], speaker=[0], index=[7])),
        Reader("1_ann_0.wav", lambda path: data.read_fsdd(path.parent), _sound()),
        Reader("a_labels.csv", data.read_gesture_labels, _GESTURES),
        Reader(
            "trials_to_train.txt",
            lambda path: data.load_dvs_gesture(path.parent),
            b"user01.aedat\nuser01.aedat\n",
        ),
        Reader("idx-ubyte", data.read_idx, plain),
        Reader("idx-ubyte.gz", data.read_idx, gzip.compress(plain, mtime=0)),
        Reader("watch_dataset.npy", lambda path: data.load_spar(path, window=2, hop=1), _spar()),
        Reader("shd.h5", data.load_shd, _words(folder)),
        Reader("network.nir", from_nir, _network(folder)),
        Reader("a.safetensors", lambda path: load_checkpoint(path, _TREE), run),
        Reader("run.safetensors", read_run, run),
        Reader("run.json", lambda path: results_page(read_runs([path])), json.dumps(_RESULT).encode()),
    ]


_EVENT = {"x": [3], "y": [7], "polarity": [1], "time_us": [9], "label": [2], "is_test": [0]}
_GESTURES = b"class,startTime_usec,endTime_usec\n2,1000,6000\n11,6000,9000\n"
_RESULT = {
    "task": "digits",
    "network": "8",
    "epochs": 2,
    "validation_samples": 9,
    "parameters": 23,
    "kernels": "avx2",
    "seed": 0,
    "cpu_seconds": 60.0,
    "peak_memory": 5e8,
    "test": {
        "accuracy": 0.9,
        "activity": [0.02],
        "dropped_share": [0.0],
        "effective_acs": 2e3,
        "effective_macs": 0.0,
        "dense_operations": 4e4,
    },
}


def _run() -> dict[str, Any]:
    return {"epoch": 1, "best_epoch": 1, "metrics": [{"loss": 0.5}], "config": {}, "settings": {}}


def _arrays(**arrays: list[int]) -> bytes:
    """One recording of one event or sample."""
    stream = io.BytesIO()
    np.savez(stream, offsets=np.array([0, 1]), **{name: np.array(each) for name, each in arrays.items()})
    return stream.getvalue()


def _sound() -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", "not compressed"))
        file.writeframes(bytes(range(8)))
    return stream.getvalue()


def _aedat() -> bytes:
    events = [(5 << 17 | 9 << 2 | 3, 1000), (100 << 17 | 127 << 2 | 1, 6500)]
    header = b"#!AER-DAT3.1\r\n#Source 1: DVS128\r\n#!END-HEADER\r\n"
    packet = struct.pack("<hhiiiiii", 1, 0, 8, 4, 0, 2, 2, 2)
    other = struct.pack("<hhiiiiii", 0, 0, 8, 4, 0, 1, 1, 1) + bytes(8)
    return header + other + packet + b"".join(struct.pack("<Ii", *event) for event in events)


def _spar() -> bytes:
    rows = [np.arange(18.0).reshape(3, 6), np.asfortranarray(np.ones((4, 6)))]
    content = {"X": rows, "y": np.array([2, 5]), "subject": np.array([1, 2]), "X_labels": ["a", "b"]}
    stream = io.BytesIO()
    np.save(stream, content, allow_pickle=True)  # pyright: ignore[reportArgumentType]
    return stream.getvalue()


def _written(folder: Path, write: Callable[[Path], Any]) -> bytes:
    path = folder / "sound"
    write(path)
    return path.read_bytes()


def _words(folder: Path) -> bytes:
    def write(path: Path) -> None:
        with h5py.File(path, "w") as file:
            for name, kind in (("times", np.float16), ("units", np.uint16)):
                rows = file.create_dataset(f"spikes/{name}", (2,), h5py.vlen_dtype(kind))
                for number in range(2):
                    rows[number] = np.array([0, number, 1]).astype(kind)
            file["labels"] = np.array([3, 19], np.uint16)

    return _written(folder, write)


def _network(folder: Path) -> bytes:
    net = snnjax.network(3, [snnjax.layer(2)], snnjax.leaky_readout(2))
    graph = to_nir(net, net.init(jax.random.key(0)), dt=1e-3)
    return _written(folder, lambda path: nir.write(path, graph))


class _Forked:
    """In place of `subprocess.Popen` for the process that reads HDF5: a fork of one that has the library already."""

    server: "subprocess.Popen[str]"
    pipe: str

    def __init__(self, command: list[str], **_) -> None:
        path, what = command[3:]
        self._ask([path, what, self.pipe])
        self.number, self.status = int(self._answer()), None
        self.stdout = open(self.pipe, "rb")  # noqa: SIM115  (closed with the process)

    def _ask(self, request: list[Any]) -> None:
        assert self.server.stdin is not None
        self.server.stdin.write(json.dumps(request) + "\n")
        self.server.stdin.flush()

    def _answer(self) -> str:
        assert self.server.stdout is not None
        return self.server.stdout.readline()

    def __enter__(self) -> "_Forked":
        return self

    def __exit__(self, *_: object) -> None:
        self.stdout.close()
        self.wait()

    def wait(self) -> int:
        if self.status is None:
            self.status = int(self._answer())
        return self.status

    def kill(self) -> None:
        if self.status is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.number, signal.SIGKILL)


@contextlib.contextmanager
def forked(folder: Path) -> Iterator[None]:
    """HDF5 files are read by forks."""
    _Forked.pipe = str(folder / "pipe")
    os.mkfifo(_Forked.pipe)
    script = Path(__file__).with_name("hdf5_server.py")
    pipe = subprocess.PIPE
    path = [str(Path(_hdf5.__file__).parent), *filter(None, sys.path)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    command = [sys.executable, "-P", str(script)]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment) as server:
        _Forked.server = server
        names = SimpleNamespace(Popen=_Forked, DEVNULL=subprocess.DEVNULL, PIPE=pipe)
        with mock.patch.multiple(_hdf5, subprocess=names, TIME_LIMIT=SECONDS):
            yield


def damaged(rng: np.random.Generator, content: bytes) -> bytes:
    """`content` with one to three damages: a bit flipped, bytes overwritten, dropped or repeated, the end cut off."""
    result = bytearray(content)
    for _ in range(rng.integers(1, 4)):
        start = int(rng.integers(len(result) + 1))
        stop = min(len(result), start + int(rng.integers(1, CHUNK + 1)))
        chunk = bytes(result[start:stop])
        kind = rng.choice(["flip", "flip", "random", "zeros", "ones", "drop", "repeat", "swap", "cut"])
        if kind == "flip" and chunk:
            result[start] ^= 1 << int(rng.integers(8))
        elif kind in ("random", "zeros", "ones"):
            result[start:stop] = {"random": rng.bytes, "zeros": bytes, "ones": b"\xff".__mul__}[kind](
                len(chunk)
            )
        elif kind in ("drop", "repeat"):
            result[start:stop] = chunk * (2 if kind == "repeat" else 0)
        elif kind == "swap" and chunk:
            other = int(rng.integers(len(result)))
            result[other : other + len(chunk)] = chunk
        elif kind == "cut":
            del result[start:]
    return bytes(result)


def _memory() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def _stop(*_: object) -> None:
    raise TooLong


class Fuzz:
    """Examples are a seed for the damages of one file of each reader."""

    hdf5 = False

    def __init__(self, num_networks: int, rounds: int) -> None:
        del num_networks
        self.rounds = rounds
        self.strategy = st.integers(0, 2**32 - 1)
        self.cleanup = contextlib.ExitStack()
        self.folder = Path(self.cleanup.enter_context(tempfile.TemporaryDirectory()))
        self.readers = [each for each in readers(self.folder) if each.name.endswith(_HDF5) == self.hdf5]
        (self.folder / "user01.aedat").write_bytes(_aedat())
        (self.folder / "user01_labels.csv").write_bytes(_GESTURES)
        if self.hdf5:
            self.cleanup.enter_context(forked(self.folder))
        signal.signal(signal.SIGPROF, _stop)
        for reader in self.readers:
            refusal = self.try_one(reader, reader.content)
            assert refusal is None, refusal

    def check(self, example, counted: Counter[str]) -> None:
        """Each file is read, or refused in words."""
        for number in range(self.rounds):
            rng = np.random.default_rng((example, number))
            for reader in self.readers:
                refused = self.try_one(reader, damaged(rng, reader.content))
                outcome = "read" if refused is None else "stopped" if "HDF5 library" in refused else "refused"
                counted[f"{reader.name} {outcome}"] += 1

    def try_one(self, reader: Reader, content: bytes) -> str | None:
        """The error, if there is one."""
        path = self.folder / reader.name
        path.write_bytes(content)
        before = _memory()
        signal.setitimer(signal.ITIMER_PROF, CPU_SECONDS)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reader.read(path)
            refusal = None
        except ValueError as error:
            refusal = str(error)
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
        assert refusal is None or FORM.fullmatch(refusal), f"{reader.name}: {refusal}"
        more = _memory() - before
        assert more < MOST_MEMORY, f"{reader.name}: {more} bytes more"
        return refusal


class HDF5Fuzz(Fuzz):
    """The same of those that read through the HDF5 library, which takes longer."""

    hdf5 = True
