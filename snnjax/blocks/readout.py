"""`integrator`: neurons that do not spike, which read a network out."""

import functools
import math
from dataclasses import dataclass
from typing import Any

import jax
from jax.typing import DTypeLike
from jaxtyping import Array

from snnjax._arguments import explained
from snnjax._check import fail, short_repr
from snnjax._sharding import vary_alike
from snnjax._types import Params, State, Stats, upcast
from snnjax.blocks._neurons import FusedNeurons
from snnjax.blocks.block import (
    BlockResult,
    Context,
    Shape,
    Signal,
    Stepwise,
    choose,
    dense_signal,
    flat,
    shaped,
    within,
)
from snnjax.neurons import Neuron, leaky_integrator
from snnjax.neurons._drive import drive
from snnjax.neurons._neuron import drawn, for_each, num_owners
from snnjax.ops._lif_network.records import LayerConstants
from snnjax.ops._lif_network.switches import LayerSwitches
from snnjax.ops._time_scan import platform_scan

# The initial standard deviation of readout membranes: summed over time they are logits, which should be undecided.
READOUT_DEVIATION = 0.1


@dataclass(frozen=True)
class Integrator(Stepwise):
    """Neurons whose membranes are the signal; made by `integrator`."""

    is_counted = True
    neuron: Neuron

    @property
    def kind(self) -> str:  # type: ignore[override]
        """The neuron model."""
        return self.neuron.name

    def init(self, key: Array, *shapes: Shape, dtype: DTypeLike) -> Any:
        """Draw what the neurons learn, None if it is nothing."""
        found = self.neuron.init(key, num_owners(self.neuron, shapes[0]), dtype)
        return found if jax.tree.leaves(found) else None

    def initial_stats(self, key: Array, *shapes: Shape) -> Any:
        """Draw the constants of the neurons that are not learned, None if all are numbers."""
        return self.neuron.initial_stats(key, num_owners(self.neuron, shapes[0]))

    def neuron_params(self, params: Params, stats: Stats, shape: Shape) -> Any:
        """The constants of the neurons that are no numbers, one set for each."""
        return for_each(self.neuron, params, stats, shape)

    def initial_state(self, params: Params, stats: Stats, batch: int, *shapes: Shape) -> Any:
        """Neurons at rest."""
        own = self.neuron_params(params, stats, shapes[0])
        return self.neuron.initial_state(own, batch, math.prod(shapes[0]))

    def apply(
        self,
        params: Params,
        state: State,
        stats: Stats,
        *signals: Signal,
        shapes: tuple[Shape, ...],
        context: Context,
    ) -> BlockResult:
        """The membrane after each step; after the end of a sequence the last one."""
        (x,), (shape,) = signals, shapes
        own, currents = self.neuron_params(params, stats, shape), upcast(flat(dense_signal(x, shape)))
        end, outputs = _scan(self, own, state, currents, context)
        return BlockResult(shaped(outputs, shape), end)

    def drive(self) -> float:
        """A small one: large random logits would cost the first epochs."""
        return READOUT_DEVIATION * drive(self.neuron)

    def op(self, shape: Shape) -> FusedNeurons | None:
        """The readout of the fused op, if it is a leaky integrator of one state."""
        del shape
        form = self.neuron.fused
        if form is None or form.reset != "none" or _has_second_state(self.neuron):
            return None
        return FusedNeurons(LayerSwitches(self.neuron.surrogate, "none", detach_reset=True), False)

    def operands(self, params: Params, stats: Stats, shape: Shape) -> LayerConstants:
        """The constants of the equation."""
        form = self.neuron.fused
        assert form is not None
        return LayerConstants(form.constants(self.neuron_params(params, stats, shape)))


@functools.cache
def _has_second_state(neuron: Neuron) -> bool:
    form = neuron.fused
    assert form is not None
    constants = jax.eval_shape(lambda: form.constants(drawn(neuron, jax.random.key(0), 1)))
    return constants.second_state is not None


@functools.partial(jax.jit, static_argnames=("block",))
def _scan(
    block: Integrator, params: Params, state: State, currents: Array, context: Context
) -> tuple[Any, Array]:
    valid, own = context.valid(currents.shape[0]), jax.tree.map(upcast, params)
    if block.neuron.sequence is not None:
        outputs, _, end = block.neuron.sequence(own, state, within(currents, valid), valid)
        return end, outputs

    def step(own: Any, carry: tuple[Any, Array], xs: tuple[Array, Array | None]) -> Any:
        (before, last), (current, inside) = carry, xs
        after, output = block.neuron.step(own, before, current)
        output = choose(inside, output, last)
        return (choose(inside, after, before), output), output

    start: Any = (state, state.v)
    leaves, form = jax.tree.flatten(start)
    start = form.unflatten(vary_alike([*leaves, *jax.tree.leaves((own, currents, valid))])[: len(leaves)])
    (end, _), outputs = platform_scan(step, own, start, (currents, valid))
    return end, outputs


@explained
def integrator(neuron: Neuron | None = None) -> Integrator:
    """Make neurons that do not spike, on given currents: the part of a readout after its connection.

    Args:
        neuron: a neuron without spikes; ``neurons.leaky_integrator()`` by default.

    Raises:
        ValueError: if the neuron spikes.

    Example:
        >>> from snnjax import blocks
        >>> blocks.integrator().out_shape((10,))
        (10,)
    """
    neuron = leaky_integrator() if neuron is None else neuron
    if not isinstance(neuron, Neuron) or neuron.spikes:
        fail(
            f"integrator: `neuron` must be a neuron without spikes, got {short_repr(neuron)}. "
            "Use neurons.leaky_integrator(), or spiking(...) for neurons that spike."
        )
    return Integrator(neuron)
