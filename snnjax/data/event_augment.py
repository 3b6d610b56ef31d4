"""Small random changes of events on a line of channels, such as those of a cochlea: shift, warp, stretch, noise."""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, PRNGKeyArray

from snnjax._check import fail
from snnjax.data._random import generator
from snnjax.data.datasets import EventDataset
from snnjax.data.event_lists import RaggedLists, pack, warn_of_unlisted

# Evenly spaced places of each axis that are displaced independently.
_KNOTS = 4
# Samples changed at once, so that the temporary arrays stay in the cache.
_BLOCK = 16
# Random numbers of a sample: of stretch, shift, lost and added events, and of the knots of both axes.
_AMOUNTS = 4 + 2 * _KNOTS


class EventAugmentation(NamedTuple):
    """The limits of random changes; each amount is drawn uniformly for every sample."""

    shift: float = 5.0  # channels, up or down, of all events alike
    channel_warp: float = 4.0  # channels, at four places independently, and linear between them
    stretch: float = 0.2  # logarithm of the factor by which events come sooner or later
    time_warp: float = 2.0  # steps, at four places independently, and linear between them
    lost: float = 0.0  # share of the events that are dropped
    added: float = 0.0  # share of the empty places that get an event


DEFAULT_EVENT_AUGMENTATION = EventAugmentation()


def augment_events(
    key: PRNGKeyArray,
    events: EventDataset,
    augmentation: EventAugmentation = DEFAULT_EVENT_AUGMENTATION,
) -> EventDataset:
    """Move the events of each sample in time and along the channels, and drop and add some, all at random.

    There is an event at step t of channel c of the result if there was one at step ``stretch t + time_warp(t)`` of
    channel ``c + shift + channel_warp(c)``, both rounded; outside there is none. Lists keep their capacity; where they
    overflow, events are dropped as in `bin_events`. The changes of a sample depend on the key and its index.

    Events that the lists of `events` do not hold are not counted afterwards; a RuntimeWarning tells of them.

    Errors: a limit is negative, or a share is above 1.

    Example:
        >>> import jax
        >>> import numpy as np
        >>> from snnjax.data import EventAugmentation, EventDataset, augment_events
        >>> word = np.array([0.0, 1.0]), np.array([70, 72])
        >>> words = EventDataset.from_events([word], [3], 2, 140, num_classes=20)
        >>> higher = augment_events(jax.random.key(0), words, EventAugmentation(shift=5.0, channel_warp=0.0))
        >>> higher.ids.shape, higher.labels
        ((1, 2, 1), array([3]))

    Reference: Jaitly and Hinton 2013 (vocal tract length perturbation); Cramer et al. 2022,
        doi:10.1109/TNNLS.2020.3044364 (shifts along the channels).
    """
    shares = augmentation.lost, augmentation.added
    if not (all(limit >= 0 for limit in augmentation) and all(share <= 1 for share in shares)):
        expected = "have limits of at least 0 and shares of at most 1"
        fail(f"augment_events: `augmentation` must {expected}, got {augmentation}. Try EventAugmentation().")
    warn_of_unlisted("augment_events", events.counts, events.capacity)
    ids, counts = events.ids.copy(), events.counts.copy()
    # Two streams, each in the order of the samples: what one is changed by does not depend on how many follow.
    draws, chances = generator(key, 0).random((len(events), _AMOUNTS)), generator(key, 1)
    for first in range(0, len(events), _BLOCK):
        block = slice(first, first + _BLOCK)
        changed = _changed(draws[block], chances, _grid(events.select(block)), augmentation)
        lists = RaggedLists(np.nonzero(changed)[2].astype(ids.dtype), changed.sum(axis=-1, dtype=np.int32))
        ids[block], counts[block] = pack(lists, events.num_neurons, events.capacity)
    return replace(events, ids=ids, counts=counts)


def _grid(events: EventDataset) -> Bool[np.ndarray, "samples time channels"]:
    """Where there is an event."""
    grid = np.zeros((len(events), events.num_steps, events.num_neurons + 1), bool)
    np.put_along_axis(grid, events.ids.astype(np.int64), True, axis=-1)
    return grid[:, :, :-1]  # without the id of unused slots


def _changed(
    draws: Float[np.ndarray, "samples amounts"],
    chances: np.random.Generator,
    grid: Bool[np.ndarray, "samples time channels"],
    limits: EventAugmentation,
) -> Bool[np.ndarray, "samples time channels"]:
    samples, num_steps, num_channels = grid.shape
    either_way = 2 * draws - 1
    of_time, of_channels = np.split(either_way[:, 4:], 2, axis=1)
    steps = np.exp(either_way[:, :1] * limits.stretch) * np.arange(num_steps)
    steps += _warp(of_time * limits.time_warp, num_steps)
    channels = np.arange(num_channels) + either_way[:, 1:2] * limits.shift
    channels += _warp(of_channels * limits.channel_warp, num_channels)
    sources, inside = [], []
    for places, size in ((steps, num_steps), (channels, num_channels)):
        rounded = np.rint(places).astype(np.int64)
        inside.append((rounded >= 0) & (rounded < size))
        sources.append(np.clip(rounded, 0, size - 1))
    rows = np.arange(samples)[:, None, None]
    moved = grid[rows, sources[0][:, :, None], sources[1][:, None, :]]
    moved &= inside[0][:, :, None] & inside[1][:, None, :]
    if limits.lost == limits.added == 0:
        return moved
    lost, added = (draws[:, 2:4].T * [[limits.lost], [limits.added]])[:, :, None, None]
    chance = chances.random(grid.shape, np.float32)
    return np.where(moved, chance >= lost, chance < added)


def _warp(knots: Float[np.ndarray, "samples knots"], size: int) -> Float[np.ndarray, "samples places"]:
    """Displacements of the places 0 to ``size - 1``, linear between those of the knots."""
    places = np.linspace(0, _KNOTS - 1, size)
    before = np.minimum(places.astype(np.int64), _KNOTS - 2)
    share = places - before
    return (1 - share) * knots[:, before] + share * knots[:, before + 1]
