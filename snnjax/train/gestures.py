"""The smartwatch gesture task: splits by person, and watches worn differently in each epoch."""

from dataclasses import replace
from pathlib import Path

import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax.data import SeriesDataset, load_spar
from snnjax.data._random import generator

SUBJECTS = range(1, 11)
_FOLDS = 5  # of two people each
# Augmentation: the standard deviation, in radians, of a watch's rotation about each axis, and the logarithms of the
#     largest time stretch and of the largest factor on all accelerations and on all velocities.
_TURN, _STRETCH, _SCALE = 0.2, 0.2, 0.15
_WINDOW = 200  # steps of a sample, 4 s
_LONGEST = 250  # steps that a sample is cut from: exp(_STRETCH) windows, plus a margin for the start
_HOP = 50  # steps between training samples; validation and test samples do not overlap


def people(seed: int, *, validating: bool = True) -> tuple[list[int], list[int], list[int]]:
    """The people to train, validate and test on; five consecutive seeds test everyone once.

    Without validation, its two people are trained on.
    """
    folds = np.array(SUBJECTS).reshape(_FOLDS, -1)
    test, validation = seed % _FOLDS, (seed + 1) % _FOLDS
    train = np.delete(folds, [test, validation] if validating else test, axis=0)
    return train.ravel().tolist(), folds[validation].tolist() if validating else [], folds[test].tolist()


def parts(
    path: Path | str | None, seed: int, *, validating: bool = True
) -> tuple[SeriesDataset, SeriesDataset | None, SeriesDataset]:
    """The training samples, which are longer than a window, and the validation (or None) and test windows."""
    train, validation, test = people(seed, validating=validating)
    longer = load_spar(path, subjects=train, window=_LONGEST, hop=_HOP)
    judged = {"window": _WINDOW, "hop": _WINDOW}
    known = load_spar(path, subjects=validation, **judged) if validating else None
    return longer, known, load_spar(path, subjects=test, **judged)


def windows(samples: SeriesDataset) -> SeriesDataset:
    """The first window of each sample."""
    lengths = np.full(len(samples), _WINDOW, np.int32)
    return replace(samples, series=samples.series[:, :_WINDOW], lengths=lengths)


def varied(key: PRNGKeyArray, epoch: int, samples: SeriesDataset) -> SeriesDataset:
    """The same gestures, faster or slower, stronger or weaker, from a watch worn differently, on either wrist.

    Part of each sample, which is longer than a window, is stretched by a factor of ``exp(u)``, u uniform in [-0.2,
    0.2]; velocities scale accordingly. Both vectors are turned by the same rotation. Half of the samples are mirrored:
    the acceleration along x, the axis along the arm, changes sign, as do the velocities about the two other axes,
    because angular velocities are axial vectors.
    """
    random = generator(key, epoch)
    count, length = samples.series.shape[:2]
    factors = np.exp(random.uniform(-_STRETCH, _STRETCH, (count, 1)))
    starts = random.random((count, 1)) * (length - 1 - factors * (_WINDOW - 1))
    places = starts + factors * np.arange(_WINDOW)  # [samples, steps], in steps of the recording
    before = np.minimum(places.astype(np.int64), length - 2)
    share = (places - before)[:, :, None]
    rows = np.arange(count)[:, None]
    series = (1 - share) * samples.series[rows, before] + share * samples.series[rows, before + 1]
    vectors = series.reshape(count, _WINDOW, 2, 3)
    vectors = np.einsum("stvi,sij->stvj", vectors, _rotations(random.normal(0, _TURN, (count, 3))))
    scales = np.exp(random.uniform(-_SCALE, _SCALE, (count, 1, 2, 1)))
    scales[:, :, 1] *= factors[:, None]
    mirrored = random.random((count, 1, 1, 1)) < 0.5
    vectors = vectors * scales * np.where(mirrored, [[-1, 1, 1], [1, -1, -1]], 1)
    lengths = np.full(count, _WINDOW, np.int32)
    return replace(samples, series=vectors.reshape(count, _WINDOW, 6).astype(np.float32), lengths=lengths)


def _rotations(angles: np.ndarray) -> np.ndarray:
    """Matrices [samples, 3, 3] of rotations about axes [samples, 3], by their lengths in radians (Rodrigues)."""
    angle = np.linalg.norm(angles, axis=1)[:, None, None]
    x, y, z = (angles / np.maximum(angle[:, :, 0], 1e-9)).T
    nothing = np.zeros_like(x)
    cross = np.array([[nothing, -z, y], [z, nothing, -x], [-y, x, nothing]]).transpose(2, 0, 1)
    return np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * (cross @ cross)
