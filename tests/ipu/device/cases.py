"""Arrays by name for the own ops on the device: dyadic ones, whose sums are exact in any order.

Weights and membranes are multiples of 1/16, decays and gains powers of 1/2: halves hold them too.
"""

import re
from typing import Any

import numpy as np

Arrays = dict[str, Any]
INPUTS, SLOTS, BATCH, STEPS = 12, 5, 3, 5
WIDTHS, OUTPUTS = (13, 9), 3  # odd, so that the last tile of each layer has a column to spare

# Tiles of each IPU, IPUs: fewer tiles than layers; fewer than neurons; more than neurons; a whole chip; two chips.
DEVICES = [(1, 1), (7, 1), (64, 1), (1472, 1), (5, 2), (1472, 2)]


def dyadic(rng: np.random.Generator, low: int, high: int, *shape: int) -> np.ndarray:
    """Multiples of 1/16 between low/16 and high/16."""
    return (rng.integers(low, high + 1, shape) / 16).astype(np.float32)


def halves(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """1/2 or 1/4."""
    return (0.5 ** rng.integers(1, 3, shape)).astype(np.float32)


def events(rng: np.random.Generator, *leading: int, slots: int = SLOTS, inputs: int = INPUTS) -> np.ndarray:
    """Ids in any order, the same more than once, and some that name nothing."""
    return rng.integers(-3, inputs + 6, (*leading, slots)).astype(np.int32)


def as_half(arrays: Arrays) -> Arrays:
    return {name: a.astype(np.float16) if a.dtype == np.float32 else a for name, a in arrays.items()}


def spike_matmul(rng: np.random.Generator, rows: int = 7, outputs: int = 11) -> Arrays:
    return {
        "ids": events(rng, rows),
        "values": dyadic(rng, -8, 8, rows, SLOTS),
        "weights": dyadic(rng, -16, 16, INPUTS, outputs),
        "g_out": dyadic(rng, -16, 16, rows, outputs),
    }


def select_spikes(rng: np.random.Generator, rows: int = 7, neurons: int = 29, capacity: int = 8) -> Arrays:
    """Few different membranes, so that ties are cut, some NaN."""
    v = dyadic(rng, 0, 32, rows, neurons)
    v[rng.random(v.shape) < 0.05] = np.nan
    return {
        "v": v,
        "threshold": dyadic(rng, 16, 24, neurons),
        "second_threshold": dyadic(rng, 8, 16, neurons),
        "g_values": dyadic(rng, -16, 16, rows, capacity),
    }


def lif_network(
    rng: np.random.Generator,
    *,
    readout: bool = True,
    lengths: bool = False,
    values: bool = False,
    any_values: bool = False,
    dense: bool = False,
    recurrent: tuple[int, ...] = (),
    first_spikes: bool = False,
    widths: tuple[int, ...] = WIDTHS,
    steps: int = STEPS,
    batch: int = BATCH,
    outputs: int = OUTPUTS,
) -> Arrays:
    """Arrays of layer 0, 1, ... have its number behind their name, those of the readout begin with ``readout_``.

    Cotangents of all results are included; the layers `recurrent` are so.
    """
    arrays = _inputs(rng, steps, batch, dense=dense, values=values, any_values=any_values)
    if lengths:
        arrays["lengths"] = rng.integers(0, steps + 1, batch).astype(np.int32)
    inputs_of = (INPUTS, *widths)
    for layer, neurons in enumerate(widths):
        arrays |= _layer(rng, "", str(layer), inputs_of[layer], neurons, batch)
        arrays[f"threshold{layer}"] = dyadic(rng, 12, 20, neurons)
        arrays[f"second_threshold{layer}"] = dyadic(rng, 4, 12, neurons)
        arrays[f"g_activity{layer}"] = dyadic(rng, -4, 4, batch, neurons)
        arrays[f"g_last_v{layer}"] = dyadic(rng, -16, 16, batch, neurons)
        if layer not in recurrent:
            continue
        arrays[f"recurrent{layer}"] = dyadic(rng, -8, 8, neurons, neurons)
        arrays[f"g_last_spikes{layer}"] = dyadic(rng, -16, 16, batch, neurons)
        if first_spikes:  # of any value, as the state of the op
            arrays[f"spikes{layer}"] = dyadic(rng, -4, 16, batch, neurons)
    if readout:
        arrays |= _layer(rng, "readout_", "", widths[-1], outputs, batch)
        arrays["g_last_readout_v"] = dyadic(rng, -16, 16, batch, outputs)
    width = outputs if readout else widths[-1]
    return {**arrays, "g_output": dyadic(rng, -16, 16, steps, batch, width)}


def _inputs(
    rng: np.random.Generator, steps: int, batch: int, *, dense: bool, values: bool, any_values: bool
) -> Arrays:
    """Events of value 1, of 0 and 1, or of any; or dense inputs, mostly 0 as events are few."""
    if dense:
        inputs = dyadic(rng, -16, 32, steps, batch, INPUTS) * (rng.random((steps, batch, INPUTS)) < 0.4)
        return {"inputs": inputs.astype(np.float32)}
    arrays: Arrays = {"ids": events(rng, steps, batch)}
    if values:
        arrays["values"] = rng.integers(0, 2, arrays["ids"].shape).astype(np.float32)
    if any_values:
        arrays["values"] = dyadic(rng, -8, 24, *arrays["ids"].shape)
    return arrays


def _layer(
    rng: np.random.Generator, prefix: str, suffix: str, inputs: int, neurons: int, batch: int
) -> Arrays:
    """Weights by which about every third neuron fires."""
    arrays = {
        "weights": dyadic(rng, -10, 16, inputs, neurons),
        "bias": dyadic(rng, -2, 4, neurons),
        "decay": halves(rng, neurons),
        "gain": np.ones(neurons, np.float32),
        "v": dyadic(rng, -8, 24, batch, neurons),
    }
    return {f"{prefix}{part}{suffix}": array for part, array in arrays.items()}


def without_cotangents(arrays: Arrays) -> Arrays:
    """For a forward pass alone."""
    return {name: a for name, a in arrays.items() if not name.startswith("g_")}


def with_half_weights(arrays: Arrays) -> Arrays:
    """A network of float16: what lies on the border is, membranes and constants stay float32."""
    halves = re.compile(
        r"(g_)?(readout_)?(weights|recurrent|values|inputs|spikes|output|bias|last_spikes)\d*"
    )
    return {name: a.astype(np.float16) if halves.fullmatch(name) else a for name, a in arrays.items()}
