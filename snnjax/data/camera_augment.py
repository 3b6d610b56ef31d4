"""Small random changes of the events of a camera: shift, rotation, scale, speed, lost and added events."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int, PRNGKeyArray

from snnjax._check import check_integer, fail
from snnjax.data._random import generator
from snnjax.data.datasets import EventDataset
from snnjax.data.event_lists import RaggedLists, pack, warn_of_unlisted

# Samples changed at once, so that the temporary arrays stay in the cache.
_BLOCK = 8
# Random numbers of a sample: of stretch, scale, rotation, two shifts, lost and added events.
_AMOUNTS = 7


class CameraAugmentation(NamedTuple):
    """The limits of random changes; each amount is drawn uniformly for every sample."""

    shift: float = 2.0  # pixels, from -limit to limit down and to the right
    rotation: float = 10.0  # degrees, either way
    scale: float = 0.1  # relative to the size, larger or smaller
    stretch: float = 0.0  # logarithm of the factor by which events come sooner or later
    lost: float = 0.0  # largest share of the events that are dropped
    added: float = 0.0  # largest share of the empty places that get an event


DEFAULT_CAMERA_AUGMENTATION = CameraAugmentation()


def augment_camera_events(
    key: PRNGKeyArray,
    events: EventDataset,
    augmentation: CameraAugmentation = DEFAULT_CAMERA_AUGMENTATION,
    *,
    height: int = 34,
    width: int = 34,
) -> EventDataset:
    """Shift, rotate and scale what the camera saw about the centre, change its speed, and drop and add some events.

    Inputs are numbered ``(polarity * height + y) * width + x``, as the readers number them. A pixel has an event where
    the nearest pixel that it shows had one; outside of the sensor there is none. Lists keep their capacity; where they
    overflow, events are dropped as in `bin_events`. The changes of a sample depend on the key and its index.

    Events that the lists of `events` do not hold are not counted afterwards; a RuntimeWarning tells of them.

    Errors: the inputs are not those of such a camera or are renumbered by `EventDataset.channels_last`, a limit is
    negative, the scale is 1 or more, or a share above 1.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from snnjax.data import CameraAugmentation, EventDataset, augment_camera_events
        >>> events = EventDataset.from_events(
        ...     [(np.array([0.0]), np.array([17 * 34 + 17]))], [3], 1, 2312, num_classes=10
        ... )
        >>> moved = augment_camera_events(jax.random.key(0), events, CameraAugmentation(shift=3.0))
        >>> moved.ids.shape, moved.labels
        ((1, 1, 1), array([3]))
    """
    op = "augment_camera_events"
    height = check_integer(op, "height", height, 1)
    width = check_integer(op, "width", width, 1)
    if events.num_neurons != 2 * height * width:
        fail(
            f"{op}: `events` must have {2 * height * width} inputs, two polarities of {height} x {width} pixels, got "
            f"{events.num_neurons}. Pass the height and the width of the camera."
        )
    if events.is_channels_last:
        fail(
            f"{op}: `events` must have the polarity first, got channels last. Call channels_last afterwards."
        )
    shares = augmentation.lost, augmentation.added
    is_good = all(limit >= 0 for limit in augmentation) and all(share <= 1 for share in shares)
    if not (is_good and augmentation.scale < 1):
        expected = "have limits of at least 0, shares of at most 1 and a scale below 1"
        fail(f"{op}: `augmentation` must {expected}, got {augmentation}. Try CameraAugmentation().")
    warn_of_unlisted(op, events.counts, events.capacity)
    ids, counts = events.ids.copy(), events.counts.copy()
    # Two streams, each in the order of the samples: what one is changed by does not depend on how many follow.
    draws, chances = generator(key, 0).random((len(events), _AMOUNTS)), generator(key, 1)
    for first in range(0, len(events), _BLOCK):
        block = slice(first, first + _BLOCK)
        changed = _changed(draws[block], chances, events.select(block), augmentation, height, width)
        lists = RaggedLists(np.nonzero(changed)[2].astype(ids.dtype), changed.sum(axis=-1, dtype=np.int32))
        ids[block], counts[block] = pack(lists, events.num_neurons, events.capacity)
    return replace(events, ids=ids, counts=counts)


def _changed(
    draws: Float[np.ndarray, "samples amounts"],
    chances: np.random.Generator,
    events: EventDataset,
    limits: CameraAugmentation,
    height: int,
    width: int,
) -> Bool[np.ndarray, "samples time inputs"]:
    """Where there is an event after the changes."""
    samples, num_steps, num_inputs = len(events), events.num_steps, events.num_neurons
    grid = np.zeros((samples, num_steps, num_inputs + 1), bool)
    np.put_along_axis(grid, events.ids.astype(np.int64), True, axis=-1)
    grid[:, :, num_inputs] = False  # the id of unused slots
    factors = np.exp((2 * draws[:, :1] - 1) * limits.stretch)
    steps = np.rint(factors * np.arange(num_steps)).astype(np.int64)
    grid = grid[np.arange(samples)[:, None], np.minimum(steps, num_steps - 1)]
    grid[steps >= num_steps] = False
    moved = np.take_along_axis(grid, _sources(2 * draws[:, 1:5] - 1, limits, height, width)[:, None], axis=-1)
    if limits.lost == limits.added == 0:
        return moved
    lost, added = (draws[:, 5:].T * [[limits.lost], [limits.added]])[:, :, None, None]
    chance = chances.random(moved.shape, np.float32)
    return np.where(moved, chance >= lost, chance < added)


def _sources(
    draws: Float[np.ndarray, "samples 4"], limits: CameraAugmentation, height: int, width: int
) -> Int[np.ndarray, "samples inputs"]:
    """The input that each input shows, the id of unused slots where it shows nothing."""
    samples = len(draws)
    scale = (1 + draws[:, 0] * limits.scale)[:, None, None]
    angle = np.deg2rad(draws[:, 1] * limits.rotation)[:, None, None]
    shift = (draws[:, 2:] * limits.shift)[:, :, None, None]
    cos, sin = np.cos(angle) / scale, np.sin(angle) / scale
    y = np.arange(height)[None, :, None] - (height - 1) / 2 - shift[:, 0]
    x = np.arange(width)[None, None, :] - (width - 1) / 2 - shift[:, 1]
    rows = np.rint(cos * y - sin * x + (height - 1) / 2).astype(np.int64)
    columns = np.rint(sin * y + cos * x + (width - 1) / 2).astype(np.int64)
    inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
    pixels = height * width
    halves = [np.where(inside, polarity * pixels + rows * width + columns, 2 * pixels) for polarity in (0, 1)]
    return np.concatenate([half.reshape(samples, pixels) for half in halves], axis=1)
