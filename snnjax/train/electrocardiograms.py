"""The electrocardiograms as a task: the parts that train and validate, and excerpts that are new each epoch."""

from dataclasses import replace

import jax
import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax.data import SeriesDataset, load_qtdb
from snnjax.data._random import generator

# In every excerpt of the files the first steps have label 0 or none, whatever the heart does.
_LEAD_IN = 38
# Of the variations: the logarithm of the largest stretch, the odds that leads change places and that a lead is turned
# upside down, the largest shares of events that are lost, and of values that become events.
_STRETCH, _SWAP, _FLIP, _LOSS, _NOISE = 0.2, 0.5, 0.1, 0.2, 0.01


def excerpts(split: str) -> SeriesDataset:
    """The excerpts of a split, judged as in published figures: at all steps, those without a label as class 0."""
    read = load_qtdb(split)
    all_steps = np.full_like(read.lengths, read.series.shape[1])
    return replace(read, labels=np.maximum(read.labels, 0), lengths=all_steps)


def held_out(key: PRNGKeyArray, num_samples: int, share: float) -> tuple[np.ndarray, np.ndarray]:
    """Ascending indices to train with and to validate with.

    Neighbours in the file resemble each other, and which record an excerpt is from is not known: what validates is a
    run of neighbours, which begins anywhere and goes on at the start of the file.
    """
    first = int(jax.random.randint(key, (), 0, max(num_samples, 1)))
    turned = np.roll(np.arange(num_samples), -first)
    count = round(share * num_samples)
    return np.sort(turned[count:]), np.sort(turned[:count])


def varied(key: PRNGKeyArray, epoch: int, samples: SeriesDataset) -> SeriesDataset:
    """The same hearts beating faster or slower, their leads changed or turned over, with events lost and added.

    Time is stretched by a factor of ``exp(u)``, u even in [-0.2, 0.2], events and labels alike; what leaves the window
    is cut off, and behind an end that moved inwards there is neither event nor beat (class 0).
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
