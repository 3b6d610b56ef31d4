"""SHD and SSC: spoken digits and commands as spikes of 700 channels of a cochlea model, one `.h5` file per split.

The data sets `spikes/times` (seconds) and `spikes/units` hold one variable-length array per sample, and `labels` its
class. Damaged files raise errors, even those on which the HDF5 library crashes or hangs: it runs in a separate process.

Source: Cramer, Stradmann, Schemmel, Zenke 2020, doi:10.1109/TNNLS.2020.3044364.
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from snnjax._check import fail
from snnjax.data._files import PathLike, check_downsample, refuse
from snnjax.data._hdf5 import heap_damage, read_blocks
from snnjax.data.datasets import EventDataset, binned_dataset

_NUM_UNITS = 700
_SHD_CLASSES, _SSC_CLASSES = 20, 35
# Seconds; the longest recordings of SHD and SSC last 1.37 s and 1.0 s.
_SHD_DURATION, _SSC_DURATION = 1.4, 1.0
_HINT = "Download it and unpack the .h5 file"


class CochleaRecordings(NamedTuple):
    """The samples of one file."""

    times: list[np.ndarray]  # one array per sample: [events] float32 or float64, seconds
    units: list[np.ndarray]  # one array per sample: [events] int64, channel from 0 to 699
    labels: np.ndarray  # [samples] int32


def read_heidelberg(path: PathLike) -> CochleaRecordings:
    """Read all samples of an `.h5` file of SHD or SSC.

    Errors: the file is missing, is not HDF5 or lacks a data set, or its times, units and labels do not match;
    ImportError if h5py is not installed.

    Example:
        >>> from snnjax.data import read_heidelberg
        >>> read_heidelberg("nowhere.h5")
        Traceback (most recent call last):
        ...
        ValueError: read_heidelberg: `path` must be a readable file, got 'nowhere.h5'. \
Download it and unpack the .h5 file.
    """
    samples = list(_samples("read_heidelberg", path))
    return CochleaRecordings(
        [times for times, _, _ in samples],
        [units for _, units, _ in samples],
        np.array([label for _, _, label in samples], np.int32),
    )


def load_shd(
    path: PathLike,
    *,
    num_steps: int = 100,
    duration: float = _SHD_DURATION,
    downsample: int = 1,
    capacity: int | None = None,
) -> EventDataset:
    """Load Spiking Heidelberg Digits, `shd_train.h5` or `shd_test.h5`: 20 classes, 700 inputs.

    The first `duration` seconds become `num_steps` steps, binned as in `bin_events`; `downsample` merges this many
    neighbouring channels into one input, which gives ``ceil(700 / downsample)`` inputs.

    Errors: those of `read_heidelberg`, or labels of 20 or more.

    Example:
        >>> from snnjax.data import load_shd
        >>> load_shd("shd_train.h5", downsample=0)
        Traceback (most recent call last):
        ...
        ValueError: load_shd: `downsample` must be an integer of at least 1, got 0. Pass 1 or more.
    """
    return load("load_shd", path, _SHD_CLASSES, num_steps, duration, downsample, capacity)


def load_ssc(
    path: PathLike,
    *,
    num_steps: int = 100,
    duration: float = _SSC_DURATION,
    downsample: int = 1,
    capacity: int | None = None,
) -> EventDataset:
    """Load Spiking Speech Commands, `ssc_train.h5`, `ssc_valid.h5` or `ssc_test.h5`: 35 classes, else as `load_shd`.

    Example:
        >>> from snnjax.data import load_ssc
        >>> load_ssc("ssc_test.h5", downsample=0)
        Traceback (most recent call last):
        ...
        ValueError: load_ssc: `downsample` must be an integer of at least 1, got 0. Pass 1 or more.
    """
    return load("load_ssc", path, _SSC_CLASSES, num_steps, duration, downsample, capacity)


def load(
    op: str,
    path: PathLike,
    num_classes: int,
    num_steps: int,
    duration: float,
    downsample: int,
    capacity: int | None,
) -> EventDataset:
    """`load_shd` in the name of `op`, for any number of classes and any duration."""
    num_neurons = check_downsample(op, downsample, _NUM_UNITS)
    labels: list[int] = []

    def recordings() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for times, units, label in _samples(op, path):
            if not 0 <= label < num_classes:
                refuse(
                    op, path, f"hold labels from 0 to {num_classes - 1}", f"{label} for sample {len(labels)}"
                )
            labels.append(label)
            yield times, units // downsample

    # The labels are complete once the recordings have been read, which happens first.
    return binned_dataset(op, recordings(), labels, num_steps, num_neurons, duration, num_classes, capacity)


def _samples(op: str, path: PathLike) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
    """Times, units and label of each sample in turn."""
    number = -1
    for all_times, all_units, labels in _blocks(op, path):
        for raw_times, raw_units, label in zip(all_times, all_units, labels, strict=True):
            number += 1
            times, units = np.asarray(raw_times), np.asarray(raw_units)
            kinds = times.dtype.kind == "f" and units.dtype.kind in "iu"
            if not (kinds and times.ndim == 1 and times.shape == units.shape):
                actual = f"{times.dtype.name}{list(times.shape)} and {units.dtype.name}{list(units.shape)}"
                expected = "hold as many real times as integer units in each sample"
                refuse(op, path, expected, f"{actual} in sample {number}")
            if not np.isfinite(times).all():
                refuse(op, path, "hold finite times", f"NaN or infinity in sample {number}")
            if units.max(initial=0) >= _NUM_UNITS or units.min(initial=0) < 0:
                actual = f"{units.min()} to {units.max()} in sample {number}"
                refuse(op, path, f"hold units in [0, {_NUM_UNITS})", actual)
            # Rounded as in the file. The ticks of float16 (1 ms at 1 s) are not rounded steps, but exact.
            yield times.astype(np.result_type(times, np.float32)), units.astype(np.int64), int(label)


def _blocks(op: str, path: PathLike) -> Iterator[tuple[list[np.ndarray], list[np.ndarray], np.ndarray]]:
    """Times, units (an array per sample) and labels of some samples at a time."""
    check_h5py(op)
    if not Path(path).is_file():
        fail(f"{op}: `path` must be a readable file, got {str(path)!r}. {_HINT}.")
    try:
        damage = heap_damage(Path(path))
        if damage is not None:
            raise ValueError(damage)
        for block in read_blocks(Path(path)):
            times, units = (
                np.split(block[name], np.cumsum(block[f"{name}_counts"])[:-1]) for name in ("times", "units")
            )
            yield times, units, block["labels"]
    except Exception as error:  # a child process that reads a damaged file may send anything
        reason = " ".join(str(error).split()).rstrip(":")  # an error without words ends in one
        refuse(op, path, "be HDF5 with spikes/times, spikes/units and labels, one entry per sample", reason)


def check_h5py(op: str) -> None:
    """Check that the package h5py is installed, which only these files need."""
    if importlib.util.find_spec("h5py") is None:
        hint = "Install it, for instance with pip install h5py"
        raise ImportError(f"{op}: `h5py` must be installed for .h5 files, got no such package. {hint}.")
