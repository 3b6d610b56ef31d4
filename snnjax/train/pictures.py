"""Colour images as currents: normalised by channel, the same in every step, varied anew in each epoch."""

from dataclasses import dataclass, replace

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax import data
from snnjax._types import Unchecked
from snnjax.data.datasets import Batch, ImageDataset

# Red, green and blue of CIFAR-10's 50,000 training images, of 1.
_MEAN = np.array([0.4914, 0.4822, 0.4465], np.float32)
_DEVIATION = np.array([0.2470, 0.2435, 0.2616], np.float32)


@dataclass(frozen=True)
class Currents:
    """Images that are shown for some steps; only their bytes are stored."""

    images: ImageDataset
    num_steps: int

    def __len__(self) -> int:
        return len(self.images)

    @property
    def num_classes(self) -> int:
        """The number of classes."""
        return self.images.num_classes

    def take(self, indices: Unchecked) -> Batch:
        """The samples at `indices` as a `Batch` of currents ``[time, batch, height, width, channels]``."""
        batch = self.images.take(indices)
        pixels = (np.asarray(batch.inputs) - _MEAN) / _DEVIATION
        return batch._replace(inputs=jnp.broadcast_to(pixels, (self.num_steps, *pixels.shape)))


def varied(key: PRNGKeyArray, epoch: int, images: ImageDataset) -> ImageDataset:
    """The images of an epoch, shifted by up to four pixels, half of them mirrored."""
    return replace(images, images=data.crop_images(jax.random.fold_in(key, epoch), images.images))
