"""What gathers, scatters and dynamic slices of a plan compute: an element at a time, as StableHLO defines them."""

import itertools
from typing import Any

import numpy as np

COMBINE: dict[str, Any] = {
    "add": np.add, "multiply": np.multiply, "maximum": np.maximum, "minimum": np.minimum,
    "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
    "set": lambda old, new: new,
}  # fmt: skip
INDICES = (np.int32, np.uint32)


def _index_vector(
    indices: np.ndarray, place: tuple[int, ...], dimension: int, from_end: tuple[int, ...]
) -> list[int]:
    if dimension == indices.ndim:
        vector = [int(indices[place])]
    else:
        length = indices.shape[dimension]
        vector = [int(indices[(*place[:dimension], k, *place[dimension:])]) for k in range(length)]
    return [i + n if i < 0 else i for i, n in zip(vector, from_end, strict=True)]


def gather(instruction: Any, inputs: list[np.ndarray], types: Any) -> list[np.ndarray]:
    x, indices = inputs
    assert indices.dtype in INDICES
    offset_dims, collapsed, x_batching, i_batching, index_map, (vector,), sizes, from_end = instruction.ints
    shape = types[instruction.outputs[0]].shape
    result = np.empty(shape, x.dtype)
    batch_dims = [d for d in range(len(shape)) if d not in offset_dims]
    window = [d for d in range(x.ndim) if d not in (*collapsed, *x_batching)]
    for place in itertools.product(*map(range, shape)):
        batch = tuple(place[d] for d in batch_dims)
        start = [0] * x.ndim
        for d, index in zip(index_map, _index_vector(indices, batch, vector, from_end), strict=True):
            start[d] = min(max(index, 0), x.shape[d] - sizes[d])
        full = [b if b < vector else b + 1 for b in range(len(batch))]  # batch dimensions in `indices`
        for d, i in zip(x_batching, i_batching, strict=True):
            start[d] = batch[full.index(i)]
        for d, offset in zip(window, offset_dims, strict=True):
            start[d] += place[offset]
        result[place] = x[tuple(start)]
    return [result]


def scatter(instruction: Any, inputs: list[np.ndarray], types: Any) -> list[np.ndarray]:
    x, indices, updates = inputs
    assert indices.dtype in INDICES
    window_dims, inserted, x_batching, i_batching, index_map, (vector,), from_end = instruction.ints
    (kind,) = instruction.texts
    result = np.array(x)
    batch_dims = [d for d in range(updates.ndim) if d not in window_dims]
    window = [d for d in range(x.ndim) if d not in (*inserted, *x_batching)]
    for place in itertools.product(*map(range, updates.shape)):
        batch = tuple(place[d] for d in batch_dims)
        target = [0] * x.ndim
        for d, index in zip(index_map, _index_vector(indices, batch, vector, from_end), strict=True):
            target[d] = index
        full = [b if b < vector else b + 1 for b in range(len(batch))]
        for d, i in zip(x_batching, i_batching, strict=True):
            target[d] = batch[full.index(i)]
        # a window that does not lie inside whole is dropped whole
        lengths = {d: updates.shape[u] for d, u in zip(window, window_dims, strict=True)}
        if any(
            not 0 <= t <= n - lengths.get(d, 1) for d, (t, n) in enumerate(zip(target, x.shape, strict=True))
        ):
            continue
        for d, u in zip(window, window_dims, strict=True):
            target[d] += place[u]
        with np.errstate(all="ignore"):
            result[tuple(target)] = COMBINE[kind](result[tuple(target)], updates[place])
    return [result]


def _starts(x: np.ndarray, starts: list[np.ndarray], sizes: Any) -> tuple[slice, ...]:
    clamped = [min(max(int(s), 0), n - size) for s, n, size in zip(starts, x.shape, sizes, strict=True)]
    assert all(start.shape == () and start.dtype in INDICES for start in starts)
    return tuple(slice(start, start + size) for start, size in zip(clamped, sizes, strict=True))


def dynamic_slice(instruction: Any, inputs: list[np.ndarray], types: Any) -> list[np.ndarray]:
    x, *starts = inputs
    return [x[_starts(x, starts, instruction.ints[0])]]


def dynamic_update_slice(instruction: Any, inputs: list[np.ndarray], types: Any) -> list[np.ndarray]:
    x, update, *starts = inputs
    result = np.array(x)
    result[_starts(x, starts, update.shape)] = update
    return [result]
