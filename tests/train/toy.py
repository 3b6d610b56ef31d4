"""A small task and network that learn in a second, for tests of the training loop."""

import numpy as np

import snnjax
from snnjax import train
from snnjax.data import EventDataset

STEPS, INPUTS, CLASSES = 6, 12, 2
CONFIG = train.TrainConfig(epochs=3, batch_size=8, learning_rate=0.1, activity_bound=0.2)


def events(seed: int, samples: int = 160) -> EventDataset:
    """Two classes that prefer one half of the inputs each; three events a step."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, CLASSES, samples)
    half = (rng.random((samples, STEPS, 3)) < 0.1).astype(np.int64) ^ labels[:, None, None]
    ids = np.sort(
        2 * rng.permuted(np.tile(np.arange(6), (samples, STEPS, 1)), axis=-1)[..., :3] + half, axis=-1
    )
    return EventDataset(
        ids.astype(np.uint16), np.full((samples, STEPS), 3, np.int32), labels, INPUTS, CLASSES
    )


NET = snnjax.network(INPUTS, [snnjax.layer(16, capacity=8)], snnjax.leaky_readout(CLASSES))
VALIDATION = events(1, 20)
