"""A simulated event camera that looks at images with three saccades, like the recordings of N-MNIST.

A pixel of an event camera sends an event whenever its log intensity has changed by a threshold since its last event:
"on" for brighter, "off" for darker. Static images cause no events, so the camera (here: the image) moves along a
triangle in three straight saccades.

Inputs are numbered as N-MNIST is usually flattened, [polarity, y, x]: ``id = (polarity * height + y) * width + x`` with
polarity 0 = off, 1 = on; 34 x 34 pixels make 2312 inputs. Polarity comes first: for convolutions, whose images are
(height, width, channels), `EventDataset.channels_last` renumbers them.

Source: Orchard, Jayawant, Cohen, Thakor 2015, doi:10.3389/fnins.2015.00437 (the triangle: their table of saccades).
"""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax._check import check_integer, fail
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Unchecked, id_dtype
from snnjax.data.augment import DEFAULT_AUGMENTATION, Augmentation, augment_images, check_images
from snnjax.data.datasets import EventDataset
from snnjax.data.event_lists import RaggedLists, check_capacity, concatenate, pack

# Corners of the path in units of the amplitude, (y, x): a triangle on its tip, with the same first and last corner.
_CORNERS = np.array([[1.0, -1.0], [-1.0, 0.0], [1.0, 1.0], [1.0, -1.0]])
# Images simulated at once: the working arrays (about 6 kB per image and array) stay in the second-level cache.
_BLOCK = 32


class _View(NamedTuple):
    """The geometry of a simulation, all in pixels."""

    height: int  # of the view
    width: int
    margin: int  # of the image within the view
    reach: int  # integer number of pixels that the image may move by
    path: np.ndarray  # [time + 1, 2] displacement (y, x) at the start and after each step

    @property
    def pitch(self) -> int:
        """The length of a row of the canvas, in which every shifted view is contiguous."""
        return self.width + 2 * self.reach + 1


def saccade_events(
    images: np.ndarray,
    labels: Unchecked,
    *,
    num_classes: int = 10,
    num_steps: int = 30,
    contrast_threshold: float = 0.5,
    dark: float = 0.1,
    amplitude: float = 3.0,
    margin: int = 3,
    capacity: int | None = None,
    key: PRNGKeyArray | None = None,
    augmentation: Augmentation | None = None,
) -> EventDataset:
    """Simulate an event camera that looks at `images` (uint8 [samples, height, width]) with three saccades.

    With ``light = log(dark + intensity)``, intensity in [0, 1], and ``reference = 0``, in each step and pixel
    ``levels = trunc((light - light at the start) / contrast_threshold - reference)``, an event on where
    ``levels >= 1`` and off where ``levels <= -1``, then ``reference += levels``. The image moves at constant speed
    along the triangle (y, x) = (1, -1), (-1, 0), (1, 1), (1, -1) times `amplitude` pixels, bilinear between pixels,
    in a view `margin` pixels larger on each side: 28 x 28 digits give 2 x 34 x 34 = 2312 inputs.

    `capacity` None makes the lists as long as the fullest step; if there are more events than `capacity`, the listed
    ones are chosen fairly, as in `bin_events`. With a `key` each image is first transformed by `augment_images`, within
    the limits of `augmentation` or its default.

    Errors: images are not uint8 [samples, height, width], labels do not match, sizes are not positive, or there is an
    augmentation without a key.

    Example:
        >>> from snnjax.data import load_mnist_10k, saccade_events
        >>> digits = load_mnist_10k("test").select(slice(8))
        >>> events = saccade_events(digits.images, digits.labels, num_steps=12)
        >>> events.num_neurons, events.take([0, 3]).inputs.shape
        (2312, (12, 2, 2312))
    """
    op = "saccade_events"
    check_images(op, images)
    num_steps = check_integer(op, "num_steps", num_steps, 1)
    margin = check_integer(op, "margin", margin, 0)
    capacity = check_capacity(op, capacity)
    for name, value in (("contrast_threshold", contrast_threshold), ("dark", dark), ("amplitude", amplitude)):
        if not 0 < value < math.inf:
            fail(f"{op}: `{name}` must be a positive number, got {value!r}. Leave it out for its default.")
    images = _augmented(op, key, images, augmentation)
    view = _View(
        images.shape[1] + 2 * margin,
        images.shape[2] + 2 * margin,
        margin,
        math.ceil(amplitude),
        amplitude * _path(num_steps),
    )
    num_neurons = 2 * view.height * view.width
    blocks = [
        _simulate(images[first : first + _BLOCK], view, contrast_threshold, dark)
        for first in range(0, len(images), _BLOCK)
    ]
    ids, counts = pack(concatenate(blocks, num_steps, num_neurons), num_neurons, capacity)
    return EventDataset(ids, counts, np.asarray(labels), num_neurons, num_classes)


def saccade_spikes(images: np.ndarray, **options: Any) -> SparseSpikes:
    """Do `saccade_events` for some images, as `SparseSpikes` ``[time, samples, capacity]``.

    Options and errors are as for `saccade_events`.

    Example:
        >>> from snnjax.data import load_mnist_10k, saccade_spikes
        >>> saccade_spikes(load_mnist_10k("test").images[:2], num_steps=6, capacity=64).ids.shape
        (6, 2, 64)
    """
    check_images("saccade_spikes", images)
    events = saccade_events(images, np.zeros(len(images), np.int32), **options)
    return events.take(slice(None)).inputs


def _augmented(
    op: str, key: PRNGKeyArray | None, images: np.ndarray, augmentation: Augmentation | None
) -> np.ndarray:
    if key is not None:
        return augment_images(key, images, DEFAULT_AUGMENTATION if augmentation is None else augmentation)
    if augmentation is not None:
        fail(
            f"{op}: `key` must be given with an augmentation, got None. Pass one, and another one each epoch."
        )
    return images


def _path(num_steps: int) -> np.ndarray:
    """The displacement at the start and after each step, [time + 1, 2], for an amplitude of 1."""
    along = np.linspace(0, len(_CORNERS) - 1, num_steps + 1)
    return np.stack([np.interp(along, range(len(_CORNERS)), axis) for axis in _CORNERS.T], axis=1)


def _simulate(images: np.ndarray, view: _View, contrast_threshold: float, dark: float) -> RaggedLists:
    """The events of a block of images."""
    samples, num_steps, pitch = len(images), len(view.path) - 1, view.pitch
    canvas = _canvas(images, view, dark)
    shape = (samples, view.height * pitch)
    start, light, levels = (np.empty(shape, np.float32) for _ in range(3))
    # Integer levels since the start: a pixel that returns to its initial intensity returns to level 0 without rounding.
    reference = np.zeros(shape, np.float32)
    events = np.empty((samples, num_steps, 2, view.height, view.width), bool)
    seen = levels.reshape(samples, view.height, pitch)[:, :, : view.width]
    _look(canvas, view, view.path[0], start)
    np.log(start, out=start)
    for step, displacement in enumerate(view.path[1:]):
        _look(canvas, view, displacement, light)
        np.log(light, out=light)
        np.subtract(light, start, out=levels)
        levels *= np.float32(1 / contrast_threshold)
        levels -= reference
        np.trunc(levels, out=levels)
        reference += levels
        np.less(seen, 0, out=events[:, step, 0])
        np.greater(seen, 0, out=events[:, step, 1])
    rows = events.reshape(samples * num_steps, -1)
    counts = np.count_nonzero(rows, axis=1)
    ids = np.flatnonzero(rows) - np.repeat(np.arange(len(rows)) * rows.shape[1], counts)
    return RaggedLists(
        ids.astype(id_dtype(rows.shape[1])), counts.astype(np.int32).reshape(samples, num_steps)
    )


def _canvas(images: np.ndarray, view: _View, dark: float) -> np.ndarray:
    """The images in [dark, dark + 1] on a dark background, flat rows of length `pitch`, [samples, pixels] float32."""
    samples, height, width = images.shape
    # One row and one column beyond the farthest view, for interpolation, and one row for the last contiguous view.
    rows = view.height + 2 * view.reach + 2
    canvas = np.full((samples, rows, view.pitch), dark, np.float32)
    edge = view.margin + view.reach
    canvas[:, edge : edge + height, edge : edge + width] += images * np.float32(1 / 255)
    return canvas.reshape(samples, -1)


def _look(canvas: np.ndarray, view: _View, displacement: np.ndarray, out: np.ndarray) -> None:
    """Write the view of images displaced by (y, x) into ``out[samples, height * pitch]``, bilinear."""
    corner = view.reach - displacement
    pixel = np.floor(corner).astype(int)
    down, right = (corner - pixel).astype(np.float32)
    first, length = int(pixel[0]) * view.pitch + int(pixel[1]), out.shape[1]
    # Interpolation within rows covers one row more than the view, for the interpolation between rows.
    here = canvas[:, first : first + length + view.pitch]
    if right > 0:
        here = here + right * (canvas[:, first + 1 : first + 1 + length + view.pitch] - here)
    upper, lower = here[:, :length], here[:, view.pitch :]
    np.subtract(lower, upper, out=out)
    out *= down
    out += upper
