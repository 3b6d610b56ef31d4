"""Random arrays for the ops that run on the model: something to look at without data of one's own."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float32, Int32, Shaped

# Arrays and attributes for `run_on_model`.
Example = tuple[dict[str, Shaped[np.ndarray, "..."]], dict[str, Any]]


@dataclass(frozen=True)
class Sizes:
    """How large an example is; each op takes what it has a use for."""

    steps: int = 20
    batch: int = 16  # rows of the single ops
    inputs: int = 256
    slots: int = 24  # events of a sample and step
    neurons: tuple[int, ...] = (128, 128)  # of the layers
    outputs: int = 10
    capacity: int = 24  # of the lists of spikes
    recurrent: bool = False  # all layers
    dense: bool = False  # the events as inputs of 1 among zeros
    half: bool = False
    backward: bool = True
    seed: int = 0


def random_example(op: str, sizes: Sizes) -> Example:
    """Arrays and attributes for `run_on_model`.

    Example:
        >>> from snnjax.ipu.examples import Sizes, random_example
        >>> arrays, attributes = random_example("select_spikes", Sizes(batch=2, neurons=(5,), capacity=3))
        >>> arrays["v"].shape, attributes
        ((2, 5), {'capacity': 3})
    """
    maker = {
        "spike_matmul": _spike_matmul,
        "select_spikes": _select_spikes,
        "lif_step": _lif_step,
        "lif_network": _lif_network,
        "training_step": _training_step,
    }[op]
    arrays, attributes = maker(sizes, np.random.default_rng(sizes.seed))
    dtype = np.float16 if sizes.half else np.float32
    floats = {name: array.astype(dtype) for name, array in arrays.items() if array.dtype.kind == "f"}
    return {**arrays, **floats}, attributes


def _spike_matmul(sizes: Sizes, rng: np.random.Generator) -> Example:
    outputs = sizes.neurons[0]
    arrays: dict[str, np.ndarray] = {
        "ids": _events(rng, sizes.batch, sizes),
        "weights": rng.normal(size=(sizes.inputs, outputs)),
    }
    if sizes.backward:
        arrays["g"] = rng.normal(size=(sizes.batch, outputs))
    return arrays, {}


def _select_spikes(sizes: Sizes, rng: np.random.Generator) -> Example:
    arrays: dict[str, np.ndarray] = {"v": rng.normal(size=(sizes.batch, sizes.neurons[0]))}
    if sizes.backward:
        arrays["g"] = rng.normal(size=(sizes.batch, sizes.capacity))
    return arrays, {"capacity": sizes.capacity}


def _lif_step(sizes: Sizes, rng: np.random.Generator) -> Example:
    shape = (sizes.batch, sizes.neurons[0])
    arrays: dict[str, np.ndarray] = {name: rng.normal(size=shape) for name in ("v", "current")}
    arrays["decay"] = np.full(shape[1], 0.9)
    if sizes.backward:
        arrays |= {name: rng.normal(size=shape) for name in ("g_v_new", "g_spikes")}
    return arrays, {}


def _lif_network(sizes: Sizes, rng: np.random.Generator) -> Example:
    """Weights by which about one in twenty neurons of each layer fires at a time."""
    events = _events(rng, sizes.steps * sizes.batch, sizes)
    arrays: dict[str, np.ndarray] = {"ids": events.reshape(sizes.steps, sizes.batch, -1)}
    widths = (sizes.inputs, *sizes.neurons, sizes.outputs)
    firing = 0.05
    # Ids of a list on average: half of the slots for events.
    listed = (sizes.slots / 2, *(max(1.0, min(firing * n, sizes.capacity)) for n in sizes.neurons))
    for layer, (inputs, neurons, count) in enumerate(zip(widths, widths[1:], listed, strict=False)):
        names = [f"{part}{layer}" for part in ("weights", "decay", "gain")]
        if layer == len(sizes.neurons):
            names = ["readout_weights", "readout_decay", "readout_gain"]
        arrays[names[0]] = rng.normal(0, 0.42, (inputs, neurons)) / np.sqrt(count)
        arrays[names[1]] = np.full(neurons, 0.9)
        arrays[names[2]] = np.full(neurons, 1.0)
        if sizes.recurrent and layer < len(sizes.neurons):
            weights = rng.normal(0, 0.1, (neurons, neurons))
            arrays[f"recurrent{layer}"] = weights / np.sqrt(listed[layer + 1])
    if sizes.dense:
        arrays["inputs"] = _as_dense(arrays.pop("ids"), sizes.inputs)
    if sizes.backward:
        arrays["g_output"] = rng.normal(size=(sizes.steps, sizes.batch, sizes.outputs))
    return arrays, {"capacity": sizes.capacity}


def _training_step(sizes: Sizes, rng: np.random.Generator) -> Example:
    arrays, attributes = _lif_network(replace(sizes, backward=False), rng)
    return {**arrays, "labels": rng.integers(0, sizes.outputs, sizes.batch)}, attributes


def _as_dense(ids: Int32[np.ndarray, "*batch slots"], inputs: int) -> Float32[np.ndarray, "*batch inputs"]:
    dense = np.zeros((*ids.shape[:-1], inputs + 1), np.float32)
    np.put_along_axis(dense, ids, 1.0, axis=-1)
    return dense[..., :inputs]


def _events(rng: np.random.Generator, rows: int, sizes: Sizes) -> Int32[np.ndarray, "rows slots"]:
    """Lists of different inputs, on average half full."""
    slots = min(sizes.slots, sizes.inputs)
    ids = np.argsort(rng.random((rows, sizes.inputs)), axis=1)[:, :slots].astype(np.int32)
    used = np.arange(slots) < rng.integers(0, slots + 1, (rows, 1))
    return np.where(used, ids, sizes.inputs).astype(np.int32)
