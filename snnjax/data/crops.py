"""Random crops of colour images: shifted by whole pixels, mirrored, with a square cut out."""

from typing import NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax._check import check_integer, check_shape, check_switches, fail
from snnjax.data._random import generator


class CropAugmentation(NamedTuple):
    """What is done to images."""

    padding: int = 4  # pixels, on each side; the crop is as large as the image was
    flip: bool = True  # mirror half of the images left to right
    cutout: int = (
        0  # pixels, the side of a grey square about a random pixel, which may be cut off by the border
    )


DEFAULT_CROP = CropAugmentation()


def crop_images(
    key: PRNGKeyArray, images: np.ndarray, augmentation: CropAugmentation = DEFAULT_CROP
) -> np.ndarray:
    """Shift, mirror and hide parts of each of the uint8 images [samples, height, width, channels] at random.

    Pixels from beyond the border are mirrored there. A cutout has the mean colour of the images. What is done to an
    image depends on the key and its index in `images`.

    Errors: images are not uint8 [samples, height, width, channels]; a number is negative, or a padding as large as the
    image.

    Example:
        >>> import jax, numpy as np
        >>> from snnjax.data import crop_images
        >>> images = np.arange(2 * 8 * 8 * 3, dtype=np.uint8).reshape(2, 8, 8, 3)
        >>> crop_images(jax.random.key(0), images).shape
        (2, 8, 8, 3)

    Reference: DeVries and Taylor 2017, arXiv:1708.04552.
    """
    _check("crop_images", images, augmentation)
    padding, flip, cutout = augmentation
    samples, height, width, _ = images.shape
    random = generator(key)
    down, right = random.integers(0, 2 * padding + 1, (2, samples))
    mirrored = random.integers(0, 2, samples).astype(bool) & flip
    margins = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    wide = np.pad(images, margins, mode="reflect")
    out = np.empty_like(images)
    for top in range(2 * padding + 1):
        for left in range(2 * padding + 1):
            own = (down == top) & (right == left)
            out[own] = wide[own, top : top + height, left : left + width]
    out[mirrored] = out[mirrored, :, ::-1]
    if cutout > 0 and samples > 0:
        hidden = _near(random.integers(0, height, samples), height, cutout)[:, :, None]
        hidden = hidden & _near(random.integers(0, width, samples), width, cutout)[:, None, :]
        out[hidden] = np.rint(images.mean(axis=(0, 1, 2))).astype(np.uint8)
    return out


def _near(centre: np.ndarray, length: int, size: int) -> np.ndarray:
    """Which places of an axis are within `size` pixels about a centre: bool [samples, length]."""
    offset = np.arange(length) - centre[:, None] + size // 2
    return (offset >= 0) & (offset < size)


def _check(op: str, images: np.ndarray, augmentation: CropAugmentation) -> None:
    axes = "samples, height, width, channels"
    check_shape(op, "images", images, (None,) * 4, axes, "Stack them along the first axis")
    if images.dtype != np.uint8:
        hint = "Scale them to 0 to 255, and cast them"
        fail(f"{op}: `images` must have dtype uint8, got {images.dtype.name}. {hint}.")
    check_integer(op, "padding", augmentation.padding, 0)
    check_integer(op, "cutout", augmentation.cutout, 0)
    check_switches(op, flip=augmentation.flip)
    least = min(images.shape[1:3])
    if augmentation.padding >= least:
        fail(
            f"{op}: `padding` must be below {least}, the side of the images, got {augmentation.padding}. Try 4."
        )
