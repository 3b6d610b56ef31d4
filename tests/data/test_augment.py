"""Moved images: exact where the movement is one of whole pixels, and small where it should be."""

import jax
import numpy as np
import pytest

from snnjax.data import Augmentation, augment_images, load_mnist_10k
from snnjax.data.augment import _warp

IMAGES = np.random.default_rng(0).integers(0, 256, (3, 7, 6), np.uint8)
NOTHING = Augmentation(shift=0.0, rotation=0.0, scale=0.0)
IDENTITY = np.array([[1, 0, 0, 1]] * 3, np.float32)


def test_augment_images_without_limits_changes_nothing():
    assert np.array_equal(augment_images(jax.random.key(0), IMAGES, NOTHING), IMAGES)


def test_warp_shifts_by_whole_pixels():
    moved = _warp(IMAGES, IDENTITY, np.array([[2, -1]] * 3, np.float32))
    assert np.array_equal(moved[:, 2:, :-1], IMAGES[:, :-2, 1:])
    assert not moved[:, :2].any()
    assert not moved[:, :, -1].any()


def test_warp_is_linear_between_pixels():
    moved = _warp(IMAGES, IDENTITY, np.array([[0, 0.25]] * 3, np.float32))
    left = np.pad(IMAGES, ((0, 0), (0, 0), (1, 0)))[:, :, :-1].astype(float)
    assert np.abs(moved - (0.75 * IMAGES + 0.25 * left)).max() <= 0.5


def test_warp_turns_by_a_quarter():
    square = IMAGES[:, :6]
    turned = _warp(square, np.array([[0, -1, 1, 0]] * 3, np.float32), np.zeros((3, 2), np.float32))
    # out[y, x] shows the source at (-x, y) from the centre: a turn of the array to the right.
    assert np.array_equal(turned, np.rot90(square, k=-1, axes=(1, 2)))


def test_warp_scales_about_centre():
    image = np.zeros((1, 9, 9), np.uint8)
    image[0, 4, 6] = 200
    grown = _warp(image, np.array([[0.5, 0, 0, 0.5]], np.float32), np.zeros((1, 2), np.float32))
    assert grown[0].argmax() == 4 * 9 + 8
    assert grown[0, 4, 7] == 100


def test_warp_far_outside_is_dark():
    assert not _warp(IMAGES, IDENTITY, np.array([[50, -80]] * 3, np.float32)).any()
    # A pixel that is half outside is half dark.
    half = _warp(np.full((3, 4, 4), 200, np.uint8), IDENTITY, np.array([[3.5, 0]] * 3, np.float32))
    assert half[:, 3, :].tolist() == [[100] * 4] * 3


def test_augment_images_depends_on_key_and_place_alone():
    images = load_mnist_10k("test").images[:300]
    moved = augment_images(jax.random.key(3), images)
    assert np.array_equal(augment_images(jax.random.PRNGKey(3), images), moved)
    assert not np.array_equal(augment_images(jax.random.key(4), images), moved)
    swapped = images.copy()
    swapped[0] = images[1]
    assert np.array_equal(augment_images(jax.random.key(3), swapped)[1:], moved[1:])


def test_augment_images_keeps_digits_whole():
    images = load_mnist_10k("test").images
    moved = augment_images(jax.random.key(0), images)
    assert (moved != images).any(axis=(1, 2)).all()
    mass, moved_mass = (x.sum(axis=(1, 2), dtype=np.int64) for x in (images, moved))
    # Ten per cent of scale are at most 21 % of area; the rest is what leaves the frame, and rounding.
    assert (np.abs(moved_mass / mass - 1) < 0.25).all()
    grid = np.arange(28)
    for axis in (1, 2):
        centre, moved_centre = ((x.sum(axis=axis) @ grid) / x.sum(axis=(1, 2)) for x in (images, moved))
        # Two pixels of shift, and what turning and scaling a centre 1 pixel off the middle add.
        assert np.abs(moved_centre - centre).max() < 2.6
        assert np.abs(moved_centre - centre).max() > 1.5


@pytest.mark.parametrize(
    "images, augmentation, message",
    [
        (
            IMAGES.astype(np.float32),
            NOTHING,
            "`images` must have dtype uint8, got float32. Scale them to 0 to 255, and cast them.",
        ),
        (
            IMAGES,
            Augmentation(shift=-1.0),
            "`augmentation` must have limits of at least 0 and a scale below 1, "
            "got Augmentation(shift=-1.0, rotation=12.0, scale=0.1). Try Augmentation().",
        ),
        (
            IMAGES,
            Augmentation(rotation=np.nan),
            "`augmentation` must have limits of at least 0 and a scale below 1, "
            "got Augmentation(shift=2.0, rotation=nan, scale=0.1). Try Augmentation().",
        ),
        (
            IMAGES,
            Augmentation(scale=1.0),
            "`augmentation` must have limits of at least 0 and a scale below 1, "
            "got Augmentation(shift=2.0, rotation=12.0, scale=1.0). Try Augmentation().",
        ),
    ],
)
def test_augment_images_refuses(images, augmentation, message):
    with pytest.raises(ValueError) as caught:
        augment_images(jax.random.key(0), images, augmentation)
    assert str(caught.value) == f"augment_images: {message}"
