"""Crops: every image is a part of the mirrored surroundings of one, and the same for the same key."""

import jax
import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from snnjax.data import CropAugmentation, crop_images
from tests.errors.refusals import refusals

IMAGES = np.random.default_rng(0).integers(0, 256, (40, 6, 7, 3), np.uint8)
KEY = jax.random.key(3)


@given(st.integers(0, 2), st.booleans())
def test_images_are_crops_and_mirrored(padding: int, flip: bool) -> None:
    wide = np.pad(IMAGES, ((0, 0), (padding, padding), (padding, padding), (0, 0)), mode="reflect")
    offsets = [(top, left) for top in range(2 * padding + 1) for left in range(2 * padding + 1)]
    crops = {offset: wide[:, offset[0] : offset[0] + 6, offset[1] : offset[1] + 7] for offset in offsets}
    candidates = crops | ({(*o, "mirrored"): crop[:, :, ::-1] for o, crop in crops.items()} if flip else {})
    found = crop_images(KEY, IMAGES, CropAugmentation(padding, flip))
    same = {name: np.all(found == each, axis=(1, 2, 3)) for name, each in candidates.items()}
    assert np.all(np.any(list(same.values()), axis=0))
    # forty draws of at most fifty: many differ
    assert len([name for name, own in same.items() if own.any()]) >= min(len(same), 10)
    np.testing.assert_array_equal(found, crop_images(KEY, IMAGES, CropAugmentation(padding, flip)))


def test_cutout_hides_a_square_about_a_pixel() -> None:
    hidden = crop_images(KEY, IMAGES, CropAugmentation(0, flip=False, cutout=3))
    mean = np.rint(IMAGES.mean(axis=(0, 1, 2)))
    changed = np.any(hidden != IMAGES, axis=-1)
    np.testing.assert_array_equal(hidden[changed], np.broadcast_to(mean, hidden[changed].shape))
    rows, columns = np.any(changed, axis=2).sum(axis=1), np.any(changed, axis=1).sum(axis=1)
    assert rows.min() >= 2 and rows.max() == 3  # a corner leaves 2 x 2
    assert columns.min() >= 2 and columns.max() == 3
    # of whole rectangles, whose pixels have the mean colour before in one of millions
    np.testing.assert_array_equal(changed.sum(axis=(1, 2)), rows * columns)


test_wrong_arguments_are_named = refusals(
    {
        "crop_images: `images` must have dtype uint8, got float32. Scale them to 0 to 255, and cast them.": lambda: (
            crop_images(KEY, IMAGES.astype(np.float32))
        ),
        "crop_images: `images` must have shape [samples, height, width, channels], got [40, 6, 7]. "
        "Stack them along the first axis.": lambda: crop_images(KEY, IMAGES[..., 0]),
        "crop_images: `padding` must be below 6, the side of the images, got 6. Try 4.": lambda: crop_images(
            KEY, IMAGES, CropAugmentation(6)
        ),
        "crop_images: `cutout` must be an integer of at least 0, got -1. Pass 0 or more.": lambda: (
            crop_images(KEY, IMAGES, CropAugmentation(cutout=-1))
        ),
        "crop_images: `flip` must be True or False, got 2. Choose one of these.": lambda: crop_images(
            KEY,
            IMAGES,
            CropAugmentation(flip=2),  # type: ignore[arg-type]
        ),
    }
)
