"""Neurons of `snnjax.simulate` as those of layers: the same constants and step, with a surrogate derivative."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike
from jaxtyping import Array, Float, Int

from snnjax._check import concrete, fail
from snnjax._types import Params, Unchecked, accumulation_dtype, upcast
from snnjax.neurons._neuron import Neuron
from snnjax.neurons._step import Bound, at_zero, check_inputs
from snnjax.ops._simulation.records import SynapticLIF
from snnjax.ops._simulation.reference import membranes


class SynapticLIFState(NamedTuple):
    """The state of `cuba_lif` and `coba_lif` in a layer."""

    v: Float[Array, "batch neurons"]  # mV, relative to rest, like the membranes that are recorded
    received: Float[Array, "batch receptors neurons"]  # currents in mV, or conductances in units of the leak
    remaining: Int[Array, "batch neurons"]  # int32, steps until the neuron is free again


@dataclass(frozen=True)
class _Numbers:
    """An array by its bytes: those with the same are equal."""

    shape: tuple[int, ...]
    dtype: str
    numbers: bytes = field(repr=False)

    def array(self) -> np.ndarray:
        """The array."""
        return np.frombuffer(self.numbers, self.dtype).reshape(self.shape)


class _Cells(NamedTuple):
    """The constants of neurons as a static value."""

    leaves: tuple[_Numbers, ...]
    form: Any

    def arrays(self) -> SynapticLIF:
        """The constants."""
        return self.form.unflatten([jnp.asarray(leaf.array()) for leaf in self.leaves])


def as_neuron(op: str, neuron: Unchecked) -> Any:
    """A `SynapticLIF` as a `Neuron`; anything else as it is."""
    if not isinstance(neuron, SynapticLIF):
        return neuron
    leaves, form = jax.tree.flatten(neuron)
    known = [concrete(leaf) for leaf in leaves]
    if any(leaf is None for leaf in known):
        fail(f"{op}: `neuron` must be of known constants, got a tracer. Make the network outside of jit.")
    cells = _Cells(
        tuple(_Numbers(leaf.shape, leaf.dtype.name, leaf.tobytes()) for leaf in known if leaf is not None),
        form,
    )
    count = max(leaf.shape[-1] for leaf in leaves)
    below = float(np.min(np.minimum(np.asarray(neuron.reset - neuron.rest), 0)))
    return Neuron(
        _name(neuron),
        init=_init,
        initial_state=Bound(_initial_state, cells=cells),
        integrate=Bound(_integrate, cells=cells),
        fire=Bound(_fire, cells=cells),
        threshold=Bound(_threshold, cells=cells),
        surrogate=neuron.surrogate,
        rest=below,  # constant currents may have rest above the threshold, but never a reset
        num_neurons=count if count > 1 else None,
        num_receptors=neuron.num_receptors,
    )


def _init(key: Array, num_neurons: int, dtype: DTypeLike = jnp.float32) -> None:
    """Nothing is learned."""
    del key, num_neurons, dtype


def _initial_state(
    params: Params, batch: int, num_neurons: int, dtype: DTypeLike = jnp.float32, *, cells: _Cells
) -> SynapticLIFState:
    """At rest, and nothing received."""
    del params
    receptors = cells.arrays().num_receptors
    received = jnp.zeros((batch, receptors, num_neurons), accumulation_dtype(dtype))
    return SynapticLIFState(
        at_zero(batch, num_neurons, dtype), received, jnp.zeros((batch, num_neurons), jnp.int32)
    )


def _threshold(params: Params, *, cells: _Cells) -> Array:
    del params
    return cells.arrays().relative(jnp.float32).threshold


def _integrate(
    params: Params, state: SynapticLIFState, inputs: Array, *, cells: _Cells
) -> tuple[Array, Array, SynapticLIFState]:
    """A step as `snnjax.simulate` does it; neurons in their refractory period have no gradient."""
    del params
    own, (batch, neurons) = cells.arrays().relative(state.v.dtype), state.v.shape
    check_inputs(f"{_name(own)}.step", jnp.broadcast_to(state.v[:, :1], inputs.shape), inputs)
    g = state.received + upcast(inputs).reshape(batch, own.num_receptors, neurons)
    busy = state.remaining > 0
    rows = jax.tree.map(lambda leaf: leaf[..., None, :], own)
    v = membranes(rows, own.has_conductances, state.v, jnp.moveaxis(g, 1, 0), None)
    v = jnp.where(busy, jax.lax.stop_gradient(state.v), v)
    threshold = jnp.where(busy, jnp.inf, own.threshold[None])
    remaining = state.remaining - busy.astype(jnp.int32)
    return v, threshold, SynapticLIFState(v, own.synaptic_decay[None] * g, remaining)


def _fire(state: SynapticLIFState, spikes: Array, *, cells: _Cells) -> SynapticLIFState:
    """The reset, and the refractory period; a smooth spike counts if it is above one half."""
    own, spiked = cells.arrays().relative(state.v.dtype), spikes > 0.5
    v = jnp.where(spiked, own.reset[None], state.v)
    return state._replace(v=v, remaining=jnp.where(spiked, own.refractory[None], state.remaining))


def _name(cells: SynapticLIF) -> str:
    return "coba_lif" if cells.has_conductances else "cuba_lif"
