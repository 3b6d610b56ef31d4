"""Selection of samples: stratified splits, and the order of an epoch, both from a key."""

from collections.abc import Iterator, Sequence

import numpy as np
from jaxtyping import PRNGKeyArray

from snnjax._check import check_integer, check_integers, check_shape, fail
from snnjax._types import Unchecked
from snnjax.data._random import generator

# Shares are decimal numbers such as 0.1, which add up to 1 within rounding.
_SUM_TOLERANCE = 1e-6


def split_indices(
    key: PRNGKeyArray, labels: Unchecked, shares: Sequence[float] = (0.9, 0.1)
) -> tuple[np.ndarray, ...]:
    """Split all samples at random into disjoint ascending indices, with each class divided by `shares` (stratified).

    Of the n samples of a class the parts take ``round(n * cumulative share)`` in turn.

    Errors: labels are not integers [samples], or shares are not positive or do not add up to 1.

    Example:
        >>> import jax
        >>> from snnjax.data import split_indices
        >>> train, validation = split_indices(jax.random.key(0), [0] * 10 + [1] * 20)
        >>> len(train), len(validation), int(sum(validation < 10))
        (27, 3, 1)
    """
    labels = np.asarray(labels)
    check_shape("split_indices", "labels", labels, (None,), "samples", "Pass one class id per sample")
    check_integers("split_indices", "labels", labels)
    if not (all(share > 0 for share in shares) and abs(sum(shares) - 1) < _SUM_TOLERANCE):
        fail(f"split_indices: `shares` must be positive and add up to 1, got {list(shares)}. Try (0.9, 0.1).")
    cuts = np.cumsum(shares)[:-1]
    random = generator(key)
    parts: list[list[np.ndarray]] = [[] for _ in shares]
    for label in np.unique(labels):
        members = random.permutation(np.flatnonzero(labels == label))
        pieces = np.split(members, np.round(members.size * cuts).astype(int))
        for part, piece in zip(parts, pieces, strict=True):
            part.append(piece)
    empty = np.zeros(0, np.int64)
    return tuple(np.sort(np.concatenate([empty, *part])) for part in parts)


def batches(
    key: PRNGKeyArray | None, num_samples: int, batch_size: int, *, epoch: int = 0, drop_last: bool = False
) -> Iterator[np.ndarray]:
    """Return the indices of each batch of one epoch, in an order that only depends on `key` and `epoch`.

    A resumed run gets the same batches for the same epoch. Key None keeps the samples in order. The last batch is
    shorter if `batch_size` does not divide `num_samples`; `drop_last` drops it, so that all batches have one shape and
    a jitted step is compiled once.

    Errors: the number of samples or the epoch is negative, or the batch size is below 1.

    Example:
        >>> from snnjax.data import batches
        >>> [indices.tolist() for indices in batches(None, 5, 2)]
        [[0, 1], [2, 3], [4]]
    """
    num_samples = check_integer("batches", "num_samples", num_samples, 0)
    batch_size = check_integer("batches", "batch_size", batch_size, 1)
    epoch = check_integer("batches", "epoch", epoch, 0)
    order = np.arange(num_samples) if key is None else generator(key, epoch).permutation(num_samples)
    stop = num_samples - num_samples % batch_size if drop_last else num_samples
    return (order[first : min(first + batch_size, stop)] for first in range(0, stop, batch_size))
