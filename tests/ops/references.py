"""The ops again, written from their definitions as plain NumPy loops that share nothing with the library.

Sums run in float64 and are rounded where they are stored: membranes in their own dtype, results in that of the weights.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from snnjax import LayerState, SparseSpikes
from snnjax._types import Signal, State


def murmur_finaliser(x: int) -> int:
    """The 32-bit finaliser of MurmurHash3, which breaks ties between equal membranes."""
    mask = 0xFFFFFFFF
    x ^= x >> 16
    x = (x * 0x85EBCA6B) & mask
    x ^= x >> 13
    x = (x * 0xC2B2AE35) & mask
    return x ^ (x >> 16)


def spike(x, inclusive: bool = False):
    spikes = np.zeros_like(x)
    for place, value in np.ndenumerate(x):
        spikes[place] = value >= 0 if inclusive else value > 0
    return spikes


def lif_neuron(
    v: float,
    current: float,
    decay: float,
    threshold: float,
    gain: float,
    stored: Callable[[float], float] = float,  # rounds to the dtype of the membrane
    reset: str = "subtract",
    reset_time: str = "before_decay",
    spike_from: str = "new",
    inclusive: bool = False,
) -> tuple[float, float]:
    """One neuron, one step."""

    def fires(membrane: float) -> bool:
        return membrane >= threshold if inclusive else membrane > threshold

    def after_reset(membrane: float, by: bool) -> float:
        if reset == "none" or not by:
            return membrane
        return membrane - threshold if reset == "subtract" else 0.0

    if reset_time == "immediate":
        charged = stored(decay * v + gain * current)
        return after_reset(charged, fires(charged)), float(fires(charged))
    if reset_time == "before_decay":
        v_new = decay * after_reset(v, fires(v)) + gain * current
    else:
        v_new = after_reset(decay * v + gain * current, fires(v))
    v_new = stored(v_new)
    return v_new, float(fires(v) if spike_from == "old" else fires(v_new))


def lif_step(v, current, decay, threshold, gain=None, **switches):
    decay, threshold = np.broadcast_to(decay, v.shape), np.broadcast_to(threshold, v.shape)
    gain = 1 - decay if gain is None else np.broadcast_to(gain, v.shape)
    v_new, spikes = np.zeros_like(v), np.zeros_like(v)

    def stored(x: float) -> float:
        return float(np.asarray(x).astype(v.dtype))

    for place in np.ndindex(v.shape):
        numbers = (float(each[place]) for each in (v, current, decay, threshold, gain))
        v_new[place], spikes[place] = lif_neuron(*numbers, stored, **switches)
    return v_new, spikes


def select_row(v, threshold, second_threshold, capacity: int) -> tuple[list[int], list[int], int]:
    """One row: the listed spikes, the neurons listed for their gradient, and the true number of spikes."""
    neurons = range(len(v))
    firing = [i for i in neurons if v[i] > threshold[i]]
    near = [i for i in neurons if v[i] > second_threshold[i] and not v[i] > threshold[i]]

    def largest(ids: list[int], slots: int) -> list[int]:
        return sorted(sorted(ids, key=lambda i: (-float(v[i]), murmur_finaliser(i)))[:slots])

    listed = largest(firing, capacity)
    return listed, largest(near, capacity - len(listed)), len(firing)


def select_spikes(v, threshold, second_threshold, capacity: int) -> SparseSpikes:
    num_neurons, axes = v.shape[-1], v.shape[:-1]
    threshold, second_threshold = (np.broadcast_to(t, v.shape) for t in (threshold, second_threshold))
    ids = np.full((*axes, capacity), num_neurons, np.uint16 if num_neurons < 2**16 else np.int32)
    values = np.zeros((*axes, capacity), v.dtype)
    num_spikes, num_listed = np.zeros(axes, np.int32), np.zeros(axes, np.int32)
    for row in np.ndindex(axes):
        firing, near, total = select_row(v[row], threshold[row], second_threshold[row], capacity)
        for slot, neuron in enumerate(firing + near):
            ids[row][slot] = neuron
            values[row][slot] = slot < len(firing)
        num_spikes[row], num_listed[row] = total, len(firing) + len(near)
    num_dropped = num_spikes - np.sum(values != 0, axis=-1, dtype=np.int32)
    return SparseSpikes(ids, values, num_spikes, num_listed, num_dropped, num_neurons)


def spike_matmul(spikes: SparseSpikes, weights):
    axes, outputs = spikes.ids.shape[:-1], weights.shape[1]
    out = np.zeros((*axes, outputs), weights.dtype)
    for row in np.ndindex(axes):
        total = np.zeros(outputs)
        for neuron, value in zip(spikes.ids[row], spikes.values[row], strict=True):
            if 0 <= neuron < len(weights) and value != 0:
                total += float(value) * weights[neuron].astype(float)
        out[row] = total
    return out


def multiply_rows(spikes: Signal, weights):
    out = np.zeros((*spikes.shape[:-1], weights.shape[1]))
    for place, value in np.ndenumerate(spikes):
        if value != 0:
            out[place[:-1]] += float(value) * weights[place[-1]].astype(float)
    return out.astype(weights.dtype)


def spike_sparse_matmul(spikes: Signal, weights, synapses):
    """Of lists or rows, synapse by synapse."""
    rows = to_dense(spikes) if isinstance(spikes, SparseSpikes) else spikes
    out = np.zeros((*rows.shape[:-1], synapses.num_targets))
    starts = [0, *synapses.ends[:-1]]
    for place, value in np.ndenumerate(rows):
        for s in range(starts[place[-1]], synapses.ends[place[-1]]):
            if value != 0 and 0 <= synapses.targets[s] < synapses.num_targets:
                out[(*place[:-1], synapses.targets[s])] += float(value) * float(weights[s])
    return out.astype(weights.dtype)


def spike_conv(spikes: Signal, weights, geometry):
    """Of lists or rows of a geometry, spike by spike and weight by weight."""
    rows = to_dense(spikes) if isinstance(spikes, SparseSpikes) else spikes
    out = np.zeros((*rows.shape[:-1], *geometry.out_shape))
    own_in, own_out = weights.shape[-2], geometry.channels_out // geometry.groups
    for place, value in np.ndenumerate(rows):
        *pixel, channel = np.unravel_index(place[-1], geometry.shape)
        group = channel // own_in
        outputs = slice(group * own_out, (group + 1) * own_out)
        for offset in np.ndindex(geometry.kernel if value != 0 else (0,)):
            apart = zip(geometry.input_dilation, geometry.dilation, strict=True)
            axes = zip(pixel, offset, geometry.padding, geometry.strides, apart, strict=True)
            steps = [divmod(x * own + low - k * gap, stride) for x, k, (low, _), stride, (own, gap) in axes]
            target = tuple(step for step, rest in steps if rest == 0)
            if len(target) == len(offset) and all(
                0 <= x < length for x, length in zip(target, geometry.out_shape, strict=False)
            ):
                term = weights[*offset, channel % own_in, outputs].astype(float)
                out[*place[:-1], *target, outputs] += float(value) * term
    return out.reshape(*rows.shape[:-1], -1).astype(weights.dtype)


def pool_spikes(spikes: Signal):
    """Means over windows of 2 x 2 pixels of an image of 5 x 4 x 2, pixel by pixel."""
    image, out = spikes.reshape(-1, 5, 4, 2), np.zeros((len(spikes), 2, 2, 2))
    for row, y, x, channel in np.ndindex(len(spikes), 4, 4, 2):
        out[row, y // 2, x // 2, channel] += image[row, y, x, channel] / 4
    return out.reshape(len(spikes), -1).astype(spikes.dtype)


def delay_spikes(spikes: Signal, delays, pending, lengths):
    """Spike by spike, from those of step -len(pending) on, to both steps that it arrives at."""
    num_steps, before = len(spikes), len(pending)
    rows = np.concatenate([pending, spikes])
    delayed, left = np.zeros(spikes.shape), np.zeros_like(pending)
    for (row, b, n), value in np.ndenumerate(rows):
        whole = int(delays[n])
        fraction = float(delays[n]) - whole
        for arrival, share in ((row - before + whole, 1 - fraction), (row - before + whole + 1, fraction)):
            if 0 <= arrival < min(num_steps, lengths[b]) and value != 0 and share != 0:
                delayed[arrival, b, n] += share * float(value)
    for b, n in np.ndindex(spikes.shape[1:]):
        left[:, b, n] = rows[lengths[b] :][:before, b, n]
    return delayed.astype(spikes.dtype), left


def delayed_spike_matmul(spikes: Signal, weights, delays, synapses, pending, lengths):
    """Spike by spike and synapse by synapse, to both steps that it arrives at."""
    longest, (num_steps, batch, _) = len(pending), spikes.shape
    out = np.zeros((num_steps + longest + 1, batch, synapses.num_targets))
    out[:longest] = pending
    starts = [0, *synapses.ends[:-1]]
    for (t, b, n), value in np.ndenumerate(spikes):
        for s in range(starts[n], synapses.ends[n]) if value != 0 and t < lengths[b] else ():
            whole = int(delays[s])
            for arrival, share in ((t + whole, 1 - delays[s] + whole), (t + whole + 1, delays[s] - whole)):
                if 0 <= synapses.targets[s] < synapses.num_targets and share != 0:
                    out[arrival, b, synapses.targets[s]] += float(share) * float(value) * float(weights[s])
    left = np.stack([out[end : end + longest, b] for b, end in enumerate(lengths)], axis=1)
    valid = np.arange(num_steps)[:, None] < lengths[None]
    left = left.astype(np.result_type(weights.dtype, np.float32))  # sums are not rounded
    return np.where(valid[..., None], out[:num_steps], 0).astype(weights.dtype), left


def to_dense(spikes: SparseSpikes):
    dense = np.zeros(spikes.shape, spikes.values.dtype)
    for place, neuron in np.ndenumerate(spikes.ids):
        if 0 <= neuron < spikes.num_neurons:
            dense[place[:-1]][neuron] += spikes.values[place]
    return dense


def lif_network(
    inputs: Signal,
    layers,
    readout,
    state: State,
    lengths,
    second_threshold,
    capacity: tuple[int | None, ...],
    reset: str = "subtract",
):
    """Step by step and sequence by sequence: output, activity, dropped, lists of every layer, state."""
    num_steps, batch = inputs.shape[:2]
    v, out = [np.array(layer.v) for layer in state.layers], np.array(state.readout)
    carried = [None if layer.spikes is None else np.array(layer.spikes) for layer in state.layers]
    output = np.zeros((num_steps, *out.shape), readout.weights.dtype)
    counts = [np.zeros(membranes.shape, np.float32) for membranes in v]
    dropped = [np.zeros(batch, np.int32) for _ in layers]
    lists = [_empty_lists(num_steps, *each) for each in zip(v, capacity, strict=True)]
    for t, b in np.ndindex(num_steps, batch):
        x = inputs[t, b].astype(float)
        if t < lengths[b]:
            for index, layer in enumerate(layers):
                current = x if layer.weights is None else x @ layer.weights.astype(float)
                current = current if layer.bias is None else current + layer.bias
                if layer.recurrent is not None:
                    current = current + carried[index][b].astype(float) @ layer.recurrent.astype(float)
                v[index][b], true = lif_step(v[index][b], current, *_constants(layer), reset=reset)
                listed = _listed(v[index][b], layer.threshold, second_threshold, capacity[index])
                _store(lists[index], (t, b), listed)
                x = to_dense(listed).astype(float)
                counts[index][b] += true
                dropped[index][b] += np.sum(true) - np.sum(x)
                if carried[index] is not None:
                    carried[index][b] = x
            current = x @ readout.weights.astype(float) + readout.bias
            out[b] = readout.decay * out[b].astype(float) + readout.gain * current
        output[t, b] = out[b]
    steps = np.clip(lengths, 1, max(num_steps, 1))[:, None]
    activity = tuple(count / steps.astype(np.float32) for count in counts)
    last = tuple(map(LayerState, v, (None,) * len(v), carried))
    return output, activity, tuple(dropped), tuple(lists), (last, out)


def _constants(layer) -> tuple[Any, Any, Any]:
    return layer.decay.astype(float), layer.threshold.astype(float), layer.gain.astype(float)


def _listed(v, threshold, second_threshold, capacity: int) -> SparseSpikes:
    return select_spikes(v, threshold, second_threshold, capacity)


def _empty_lists(num_steps: int, membranes, capacity: int) -> SparseSpikes:
    nothing = np.full((num_steps, *membranes.shape), -np.inf, membranes.dtype)
    return select_spikes(nothing, 0.0, 0.0, capacity)


def _store(lists: SparseSpikes, place: tuple[int, int], row: SparseSpikes) -> None:
    for name in ("ids", "values", "num_spikes", "num_listed", "num_dropped"):
        getattr(lists, name)[place] = getattr(row, name)
