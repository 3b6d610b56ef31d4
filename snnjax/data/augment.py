"""Small random transformations of images: shift, rotation and scale, with bilinear interpolation."""

from typing import NamedTuple

import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax._check import check_shape, fail
from snnjax.data._random import generator

# Images transformed at once, so that the temporary arrays stay in the cache.
_BLOCK = 128


class Augmentation(NamedTuple):
    """The limits of random transformations; each amount is drawn uniformly from [-limit, limit]."""

    shift: float = 2.0  # pixels, down and to the right
    rotation: float = 12.0  # degrees
    scale: float = 0.1  # relative to the size


DEFAULT_AUGMENTATION = Augmentation()


def augment_images(
    key: PRNGKeyArray, images: np.ndarray, augmentation: Augmentation = DEFAULT_AUGMENTATION
) -> np.ndarray:
    """Shift, rotate and scale each of the uint8 images [samples, height, width] about its centre at random.

    The pixel at offset ``d`` (y, x) from the centre shows the image at ``R(angle) (d - shift) / (1 + scale)``, bilinear
    between pixels and 0 outside. The transformation of an image depends on the key and its index in `images`.

    Errors: images are not uint8 [samples, height, width], a limit is negative, or the scale is 1 or more.

    Example:
        >>> import jax
        >>> from snnjax.data import Augmentation, augment_images, load_mnist_10k
        >>> images = load_mnist_10k("test").images
        >>> moved = augment_images(jax.random.key(0), images, Augmentation(shift=1.0))
        >>> moved.shape, moved.dtype
        ((2000, 28, 28), dtype('uint8'))
    """
    check_images("augment_images", images)
    if not (all(limit >= 0 for limit in augmentation) and augmentation.scale < 1):
        expected = "have limits of at least 0 and a scale below 1"
        fail(f"augment_images: `augmentation` must {expected}, got {augmentation}. Try Augmentation().")
    draws = generator(key).uniform(-1, 1, (len(images), 4))
    scale = 1 + draws[:, 0] * augmentation.scale
    angle = np.deg2rad(draws[:, 1] * augmentation.rotation)
    shift = draws[:, 2:] * augmentation.shift
    matrix = np.stack([np.cos(angle), -np.sin(angle), np.sin(angle), np.cos(angle)], axis=1) / scale[:, None]
    out = np.empty_like(images)
    for first in range(0, len(images), _BLOCK):
        block = slice(first, first + _BLOCK)
        out[block] = _warp(images[block], matrix[block].astype(np.float32), shift[block].astype(np.float32))
    return out


def _warp(images: np.ndarray, matrix: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """The images sampled at ``matrix (d - shift)``; matrix [samples, 4] row by row, shift [samples, 2] (y, x)."""
    samples, height, width = images.shape
    # A border of zeros, two pixels wide, represents everything outside.
    canvas = np.pad(images, ((0, 0), (2, 2), (2, 2))).reshape(samples, -1)
    centre_y, centre_x = (height - 1) / 2, (width - 1) / 2
    y = np.arange(height, dtype=np.float32)[None, :, None] - centre_y - shift[:, 0, None, None]
    x = np.arange(width, dtype=np.float32)[None, None, :] - centre_x - shift[:, 1, None, None]
    a, b, c, d = (matrix[:, k, None, None] for k in range(4))
    # Two columns and rows beyond the image: from there on everything is 0.
    source_y = np.clip(a * y + b * x + centre_y + 2, 0, height + 2)
    source_x = np.clip(c * y + d * x + centre_x + 2, 0, width + 2)
    top, left = source_y.astype(np.int32), source_x.astype(np.int32)
    down, right = source_y - top, source_x - left
    place = top * (width + 4) + left
    place += (np.arange(samples, dtype=np.int32) * canvas.shape[1])[:, None, None]
    pixels = canvas.reshape(-1)
    upper = _mixed(pixels[place], pixels[place + 1], right)
    lower = _mixed(pixels[place + width + 4], pixels[place + width + 5], right)
    return np.rint(_mixed(upper, lower, down)).astype(np.uint8)


def _mixed(first: np.ndarray, second: np.ndarray, share: np.ndarray) -> np.ndarray:
    """``first + share * (second - first)`` in float32."""
    start = first.astype(np.float32)
    return start + share * (second - start)


def check_images(op: str, images: np.ndarray) -> None:
    """Check that `images` are uint8 [samples, height, width]."""
    check_shape(
        op, "images", images, (None, None, None), "samples, height, width", "Stack them along the first axis"
    )
    if images.dtype != np.uint8:
        fail(
            f"{op}: `images` must have dtype uint8, got {images.dtype.name}. Scale them to 0 to 255, and cast them."
        )
