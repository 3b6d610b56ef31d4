"""The electrocardiogram task: training and validation splits, and fresh augmentation in each epoch."""

from dataclasses import replace

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax.data import SeriesDataset, load_qtdb
from snnjax.data._random import generator

# In every excerpt of the files the first steps have label 0 or none, whatever the signal.
_LEAD_IN = 38
# Augmentation: the logarithm of the largest time stretch, the probabilities that the leads are swapped and that a lead
#     is inverted, the largest share of events that are dropped, and of values that become events.
_STRETCH, _SWAP, _FLIP, _LOSS, _NOISE = 0.2, 0.5, 0.1, 0.2, 0.01


def excerpts(split: str) -> SeriesDataset:
    """The excerpts of a split, scored as in published results: at all steps, with unlabelled steps as class 0."""
    read = load_qtdb(split)
    all_steps = np.full_like(read.lengths, read.series.shape[1])
    return replace(read, labels=np.maximum(read.labels, 0), lengths=all_steps)


def held_out(key: PRNGKeyArray, num_samples: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Ascending indices of the training samples and of the validation samples.

    Neighbours in the file resemble each other, and the files do not say which record an excerpt comes from: the
    validation samples are therefore a contiguous run that starts anywhere and wraps around the end of the file.
    """
    first = int(jax.random.randint(key, (), 0, max(num_samples, 1), np.int32))
    turned = np.roll(np.arange(num_samples), -first)
    count = round(share * num_samples)
    return np.sort(turned[count:]), np.sort(turned[:count])


def varied(key: PRNGKeyArray, epoch: int, samples: SeriesDataset) -> SeriesDataset:
    """The same heartbeats, faster or slower, with leads swapped or inverted and events dropped or added.

    Time is stretched by a factor of ``exp(u)``, u uniform in [-0.2, 0.2], for events and labels alike. Whatever leaves
    the window is cut off; after an end that moved inwards there are no events, and the label is class 0.
    """
    random = generator(key, epoch)
    series, labels = np.zeros_like(samples.series), np.zeros_like(samples.labels)
    num_steps = series.shape[1]
    centres = np.arange(num_steps) + 0.5
    factors = np.exp(random.uniform(-_STRETCH, _STRETCH, len(series)))
    for sample, factor in enumerate(factors):
        steps, channels = np.nonzero(samples.series[sample])
        moved = np.floor((steps + random.random(steps.size)) * factor).astype(np.int64)
        inside = moved < num_steps
        series[sample, moved[inside], _order(random)[channels[inside]]] = 1
        source = np.floor(centres / factor).astype(np.int64)
        labels[sample, source < num_steps] = samples.labels[sample, source[source < num_steps]]
    labels[:, :_LEAD_IN] = samples.labels[:, :_LEAD_IN]
    lost, added = (random.uniform(0, most, (len(series), 1, 1)) for most in (_LOSS, _NOISE))
    chance = random.random(series.shape, np.float32)
    series = np.where(series > 0, chance >= lost, chance < added).astype(np.float32)
    return replace(samples, series=series, labels=labels)


def _order(random: np.random.Generator) -> np.ndarray:
    """Where each channel (up and down of one lead, then of the other) goes."""
    leads = np.array([[0, 1], [2, 3]])
    leads = leads[::-1] if random.random() < _SWAP else leads
    return np.concatenate([lead[::-1] if random.random() < _FLIP else lead for lead in leads])
