"""Convert a chain of nodes to a network and its parameters."""

import contextlib
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from snnjax._check import fail
from snnjax._network import Network, network
from snnjax._network.connections import Convolve
from snnjax._network.delays import Delays
from snnjax._network.specs import LayerParams, LayerSpec, NetworkParams, ReadoutSpec, layer
from snnjax.neurons import LeakyIntegratorParams, leaky_integrator
from snnjax.nir._chain import SPIKING, Chain, Stage, Step
from snnjax.nir._check import MAX_NEURONS
from snnjax.nir._layout import Shape, channels_last, per_channel
from snnjax.nir._metadata import refuse_metadata
from snnjax.nir._read_connections import Front, Signal, delays_of, front_of
from snnjax.nir._read_neurons import Cell, Reading, cell_of
from snnjax.nir._time import raw_of_leak

# The number of axes that the first node expects.
_AXES = {"Affine": 1, "Linear": 1, "Conv1d": 2}
# The raw parameter of no delay: exactly 0 if delays are rounded, close to 0 if they are learned.
_RAW_NO_DELAY = -16.0


def network_of(chain: Chain, reading: Reading, dtype: Any) -> tuple[Network, NetworkParams]:
    """The network of the stages, and its parameters."""
    shape = _input_shape(chain)
    signal, items, params = Signal(shape), [], []
    stages = _with_thresholds(chain.stages)
    for index, (stage, threshold) in enumerate(stages):
        is_last = index + 1 == len(stages)
        arrays, spec, signal = _stage(stage, threshold, signal, reading, is_last)
        items += arrays[:-1]
        params.append(arrays[-1])
        items.append(spec)
    spikes = [isinstance(spec, LayerSpec) for spec in items]
    if not any(spikes):
        fail("from_nir: `graph` must hold spiking neurons, got none. Put LIF neurons before the last ones.")
    specs, readout = items[:-1], items[-1]
    made = network(shape, specs, readout)
    cast = jax.tree.map(lambda array: jnp.asarray(array, dtype), params)
    if made.readout is None:
        return made, NetworkParams(tuple(cast), None)
    return made, NetworkParams(tuple(cast[:-1]), cast[-1])


def _input_shape(chain: Chain) -> Shape:
    """The shape of the inputs in our order, without leading axes for batch and time, which some libraries write."""
    given = chain.shape
    shape: Shape = ()
    with contextlib.suppress(TypeError, ValueError, OverflowError):
        shape = tuple(int(length) for length in np.asarray(given).reshape(-1))
    first = chain.stages[0].connections[:1]
    axes = _AXES.get(first[0].kind, 3) if first else 3
    if len(shape) == axes + 1:
        shape = shape[1:]
    if not (1 <= len(shape) <= 3 and all(length > 0 for length in shape) and math.prod(shape) <= MAX_NEURONS):
        expected = "have an Input of shape [neurons], [channels, length] or [channels, height, width]"
        fail(f"from_nir: `graph` must {expected}, got {given}. Write it without batch and time.")
    return channels_last(shape)


def _with_thresholds(stages: tuple[Stage, ...]) -> list[tuple[Stage, Step | None]]:
    """Each stage, with the Threshold directly after its integrators: together they are neurons without reset."""
    found: list[tuple[Stage, Step | None]] = []
    for stage in stages:
        before = found[-1][0] if found else None
        bare = stage.neuron is not None and stage.neuron.kind == "Threshold" and not stage.connections
        if (
            bare
            and before is not None
            and before.neuron is not None
            and before.neuron.kind in ("I", "LI", "CubaLI")
        ):
            if before.recurrent is not None:
                fail(
                    f"from_nir: `graph` must feed spikes back, got {before.neuron.name}. Start at the "
                    "Threshold."
                )
            found[-1] = (before._replace(recurrent=stage.recurrent), stage.neuron)
        else:
            found.append((stage, None))
    return found


def _stage(
    stage: Stage, threshold: Step | None, signal: Signal, reading: Reading, is_last: bool
) -> tuple[list[Any], LayerSpec | ReadoutSpec, Signal]:
    """The items before the layer in the network, and its parameters and specification."""
    name = "the Output" if stage.neuron is None else stage.neuron.name
    front = front_of(stage.connections, name, signal, reading.dt)
    if stage.neuron is None:
        return (
            [*front.items, _readout_params(front, _nothing(front))],
            _readout(front, _nothing(front), name),
            front.signal,
        )
    cell = cell_of(stage.neuron, threshold, front.signal.shape, reading)
    front = front.scaled(name, cell.scale, cell.offset)
    if stage.neuron.kind in SPIKING or threshold is not None:
        params, spec = _layer(stage, front, cell, reading, is_last)
        return [*front.items, params], spec, front.signal
    if not is_last or stage.recurrent is not None:
        fail(
            "from_nir: `graph` must have non-spiking neurons only at its end, and none that feed back, got "
            f"{name}. Write spiking neurons, or a Threshold directly after it."
        )
    return [*front.items, _readout_params(front, cell)], _readout(front, cell, name), front.signal


def _nothing(front: Front) -> Cell:
    """A read-out that passes on its current: a leaky integrator with decay 0."""
    raw: Any = raw_of_leak(np.ones(front.signal.shape[-1]))
    return Cell(leaky_integrator(normalize=False), LeakyIntegratorParams(raw))


def _readout(front: Front, cell: Cell, name: str) -> ReadoutSpec:
    if isinstance(front.connection, Convolve):
        fail(
            f"from_nir: `graph` must have dense weights before {name}, which does not spike, got a "
            "convolution. Put a Flatten and an Affine before it."
        )
    if front.delays is not None:
        fail(
            f"from_nir: `graph` must have no delays before {name}, got a Delay. Put spiking neurons after it."
        )
    return ReadoutSpec(front.connection, cell.neuron, front.bias is not None)


def _readout_params(front: Front, cell: Cell) -> LayerParams:
    weights: Any = front.weights
    bias: Any = front.bias
    return LayerParams(weights, bias, None, cell.params)


def _layer(
    stage: Stage, front: Front, cell: Cell, reading: Reading, is_last: bool
) -> tuple[LayerParams, LayerSpec]:
    assert stage.neuron is not None
    shape, facts = front.signal.shape, cell.facts
    recurrent, bias, raw_back, delays = _recurrence(stage, front, cell, reading)
    of_channels = jax.tree.map(lambda array: _of_channels(array, shape), cell.params)
    by_channel = all(array is not None for array in jax.tree.leaves(of_channels, is_leaf=lambda x: x is None))
    by_channel = by_channel and facts.get("per_channel") is not False
    neuron = of_channels if by_channel else jax.tree.map(lambda array: _of_neurons(array, shape), cell.params)
    raw: Any = front.raw_delays
    weights: Any = front.weights
    if delays is not None and raw is None:
        raw = np.full(1, _RAW_NO_DELAY)
    layer_delays = None if delays is None else Delays(raw, raw_back if recurrent is not None else None)
    options = {"recurrent": recurrent is not None, "bias": bias is not None, "per_channel": by_channel}
    try:
        capacity, second = (None if is_last else facts.get(key) for key in ("capacity", "second_threshold"))
        spec = layer(
            front.connection,
            cell.neuron,
            delays=delays,
            capacity=capacity,
            second_threshold=second,
            **options,
        )
    except (TypeError, ValueError) as error:
        refuse_metadata(stage.neuron.name, error)
    return LayerParams(weights, bias, recurrent, neuron, layer_delays), spec


def _of_channels(array: np.ndarray, shape: Shape) -> np.ndarray | None:
    if array.ndim == 0 or array.size == shape[-1]:
        return array
    return per_channel(array, shape)


def _of_neurons(array: np.ndarray, shape: Shape) -> np.ndarray:
    return array if array.ndim == 0 else np.resize(array, math.prod(shape))


def _recurrence(stage: Stage, front: Front, cell: Cell, reading: Reading) -> Any:
    """Recurrent weights, the bias including theirs, and the delays of both paths."""
    assert stage.neuron is not None
    way, name, delays = stage.recurrent, stage.neuron.name, front.delays
    if way is None:
        return None, front.bias, None, delays
    if len(front.signal.shape) != 1:
        fail(
            f"from_nir: `graph` must have neurons with one axis at {name}, which feed back, got "
            f"{list(front.signal.shape)}. Write a Flatten and an Affine before it."
        )
    raw_back = None
    if way and way[0].kind == "Delay":
        delays_back, raw_back = delays_of(way[0], front.signal.shape, reading.dt)
        # Both paths share one longest delay.
        if delays not in (None, delays_back):
            fail(
                f"from_nir: `graph` must have one longest delay on both paths to {name}, "
                f"got another in {way[0].name}. Give both the same longest delay."
            )
        way, delays = way[1:], delays_back
    elif delays is not None:
        raw_back = np.full(1, _RAW_NO_DELAY)
    back = front_of(way, name, front.signal, reading.dt).scaled(name, cell.scale, None)
    if not (back.weights.shape == (front.signal.shape[0],) * 2 and back.delays is None):
        actual = f"weights {list(back.weights.shape)}"
        fail(f"from_nir: `graph` must feed {name} back to itself, got {actual}. Make the weights square.")
    bias = front.bias
    if back.bias is not None and back.bias.any():
        bias = back.bias if bias is None else bias + back.bias
    return back.weights, bias, raw_back, delays
