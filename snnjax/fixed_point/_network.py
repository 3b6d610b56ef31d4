"""`IntegerNetwork`: a network as a chip holds it."""

import dataclasses
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float

from snnjax.fixed_point._chips import FixedPoint
from snnjax.fixed_point._route import Route
from snnjax.fixed_point._step import Membranes, Neurons


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class IntegerLayer:
    """A layer of an `IntegerNetwork`."""

    weights: Array  # int8 [synapses, inputs, neurons], or [synapses, *kernel, channels, channels]
    recurrent: Array | None = None  # int8 [synapses, neurons, neurons]
    neurons: Neurons
    unit: Float[Array, " neurons"]  # a membrane of 1 of the float network, in integers
    shift: ArrayLike = 0  # int32 [], of the weights to the left
    recurrent_shift: ArrayLike = 0
    route: Route = dataclasses.field(default=Route(), metadata={"static": True})
    name: str = dataclasses.field(metadata={"static": True})

    @property
    def num_inputs(self) -> int:
        """The number of inputs."""
        return self.route.num_inputs or self.weights.shape[1]

    @property
    def num_neurons(self) -> int:
        """The number of neurons."""
        return self.neurons.threshold.shape[0]

    @property
    def num_synapses(self) -> int:
        """The number of currents of each neuron."""
        return self.weights.shape[0]


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class IntegerNetwork:
    """A chain of layers in the integers of a chip, made by `convert` or `from_xylo`; `run` runs it.

    The last layer is the readout.
    """

    layers: tuple[IntegerLayer, ...]
    chip: FixedPoint = dataclasses.field(metadata={"static": True})
    spiking_output: bool = dataclasses.field(metadata={"static": True})  # else membranes

    def chip_of(self, place: int) -> FixedPoint:
        """The arithmetic of a layer."""
        return self.chip.readout if place == len(self.layers) - 1 else self.chip

    def is_late(self, place: int) -> bool:
        """Whether the inputs of a layer arrive one step later."""
        return self.chip.late == "all" or (place > 0 and self.chip.late == "hidden")

    def initial_state(self, batch: int) -> "State":
        """Zeros."""
        return tuple(_at_rest(layer, batch, self.is_late(place)) for place, layer in enumerate(self.layers))


class LayerState(NamedTuple):
    """The state of a layer."""

    membranes: Membranes
    arriving: Array | None  # [batch, inputs] spikes that arrive one step later, float32
    fired: Array | None  # [batch, neurons] its own last spikes, if it is recurrent


State = tuple[LayerState, ...]


def _at_rest(layer: IntegerLayer, batch: int, is_late: bool) -> LayerState:
    neurons = (batch, layer.num_neurons)
    membranes = Membranes(jnp.zeros(neurons, jnp.int32), jnp.zeros((layer.num_synapses, *neurons), jnp.int32))
    late = jnp.zeros((batch, layer.num_inputs), jnp.float32) if is_late else None
    return LayerState(membranes, late, None if layer.recurrent is None else jnp.zeros(neurons, jnp.float32))
