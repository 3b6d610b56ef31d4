"""What the operations of a network take, in parts with memory, beside the rectifier network that would replace it."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from snnjax._check import fail, short_repr
from snnjax._types import Params, Stats
from snnjax.blocks._sparse import Sparse
from snnjax.blocks._synaptic import Synaptic
from snnjax.blocks.linear import Linear
from snnjax.blocks.readout import Integrator
from snnjax.blocks.spiking import Spiking
from snnjax.graph.network import Network
from snnjax.metrics.operations import SynapticOperations, synaptic_operations

_PER_NJ = 1e-3  # pJ in nJ


class Energies(NamedTuple):
    """What operations take, in pJ, and where that was measured."""

    add: float  # of a spiking network: a weight to a state
    decay: float  # of a state in a step; a shift, or a multiplication
    multiply: float  # of the rectifier network: weight times activation, int8
    accumulate: float  # of the rectifier network: a product to a sum, int32
    weight: float  # read from memory, int8
    state: float  # read or written, once
    activation: float  # of the rectifier network: read or written, int8
    source: str


HOROWITZ_45NM = Energies(
    add=0.05,
    decay=0.05,
    multiply=0.2,
    accumulate=0.1,
    weight=20 * 8 / 64,
    state=10 * 16 / 64,
    activation=10 * 8 / 64,
    source="Horowitz, ISSCC 2014, 45 nm: weights in 32 KB of SRAM, states of 16 bits and activations in 8 KB",
)
"""45 nm after Horowitz 2014, for weights and activations of 8 bits and states of 16.

An addition of 16 bits lies between the published 0.03 pJ of 8 and 0.1 pJ of 32 bits; 64 bits of SRAM take 20 pJ of
32 KB and 10 pJ of 8 KB, of which a part takes its share. A decay is a shift and a subtraction.
"""


class SpikingEnergy(NamedTuple):
    """A spiking network, nJ an inference."""

    additions: float
    weights: float  # read, once for each addition
    accumulators: float  # currents read and written for each addition; 0 if they stay in registers
    updates: float  # decays and comparisons of all neurons in all steps
    states: float  # read and written in all steps


class RectifierEnergy(NamedTuple):
    """A rectifier network of int8 of the same shape, nJ an inference."""

    products: float
    weights: float
    activations: float


class Energy(NamedTuple):
    """A network and its rivals; the parts are the result, and a sum means little without them."""

    spiking: SpikingEnergy
    once: RectifierEnergy  # the rectifier network, run once
    every_step: RectifierEnergy  # for each step, as for a stream of frames
    zeros_skipped: (
        RectifierEnergy  # the same, if it skips activations of 0 and has as many as there are spikes
    )
    activity: float  # share of the pairs of input and neuron to which a spike came in a step
    # The activity at which the spiking network takes as much as the rectifier network that runs once, and for each
    # step; below 0 there is none.
    break_even_once: float
    break_even_every_step: float
    source: str

    def __str__(self) -> str:
        """A line for each network with its parts."""
        rows = {
            "spiking": self.spiking,
            "int8 rectifiers, once": self.once,
            "int8 rectifiers, every step": self.every_step,
            "the same, zeros skipped": self.zeros_skipped,
        }
        lines = [
            f"{name}: {sum(parts):.4g} nJ = "
            + " + ".join(f"{value:.4g} {part}" for part, value in parts._asdict().items() if value)
            for name, parts in rows.items()
        ]
        shares = (self.activity, self.break_even_once, self.break_even_every_step)
        words = "{:.2%} active; breaks even with one pass at {:.2%}, with one for each step at {:.2%}"
        return "\n".join([*lines, words.format(*shares), self.source])


def energy(
    network: Network,
    params: Params,
    operations: SynapticOperations,
    energies: Energies = HOROWITZ_45NM,
    *,
    stats: Stats | None = None,
    accumulators: bool = False,
) -> Energy:
    r"""What an inference would take on a digital chip, in parts, beside int8 rectifier networks of the same shape.

    With the additions :math:`A` (`operations`), steps :math:`T`, neurons :math:`N`, their states :math:`S`, and pairs
    of input and neuron :math:`M`:

    .. math::

        E_\mathrm{spiking} &= A (e_\mathrm{add} + e_\mathrm{weight} [+ 2 e_\mathrm{state}])
            + T (S (e_\mathrm{decay} + e_\mathrm{add}) + 2 N e_\mathrm{add} + 2 S e_\mathrm{state}) \\
        E_\mathrm{rectifier} &= P (1 - z) M (e_\mathrm{multiply} + e_\mathrm{accumulate} + e_\mathrm{weight})
            + P n e_\mathrm{activation}

    for :math:`P` passes with a share :math:`z` of zeros that are skipped, and :math:`n` activations read and written.
    It is a count of operations: not wires, clocks, leakage, routing or the memory of instructions, of either network.

    Args:
        network: a network whose operations are known.
        params: its parameters.
        operations: of an inference, from `synaptic_operations`.
        energies: what each takes, and their source.
        stats: its stats, if it has sparse connections or neurons whose constants are drawn.
        accumulators: whether currents are read and written for every spike that arrives, as where spikes come one by
            one; else they stay in registers.

    Raises:
        ValueError: if operations are not those of `synaptic_operations`, or do not fit.

    Example:
        >>> import jax, jax.numpy as jnp, snnjax
        >>> from snnjax import metrics
        >>> net = snnjax.network(578, [snnjax.layer(100)], snnjax.leaky_readout(10))
        >>> params, counts = net.init(jax.random.key(0)), jnp.full((1, 578), 2.0)
        >>> rates = {"layer_0/neuron": jnp.full((1, 100), 0.2)}
        >>> found = metrics.synaptic_operations(net, params, counts, rates, jnp.array([40]))
        >>> print(metrics.energy(net, params, found)._replace(source="45 nm"))
        spiking: 338.1 nJ = 6.18 additions + 309 weights + 0.88 updates + 22 states
        int8 rectifiers, once: 165.6 nJ = 17.64 products + 147 weights + 0.985 activations
        int8 rectifiers, every step: 6625 nJ = 705.6 products + 5880 weights + 39.4 activations
        the same, zeros skipped: 385.5 nJ = 37.08 products + 309 weights + 39.4 activations
        5.26% active; breaks even with one pass at 2.38%, with one for each step at 110.08%
        45 nm

    Reference:
        Horowitz 2014, doi:10.1109/ISSCC.2014.6757323.
    """
    if not isinstance(operations, SynapticOperations):
        actual, hint = short_repr(operations), "Pass what metrics.synaptic_operations returned"
        fail(f"energy: `operations` must be a SynapticOperations, got {actual}. {hint}.")
    sizes = _sizes(network, params, stats)
    adds, products, dense = (
        float(each) for each in (operations.effective_acs, operations.effective_macs, operations.dense)
    )
    if not (math.isfinite(adds + products) and dense > 0):
        hint = "Count those of at least one step of a network whose blocks are known"
        fail(f"energy: `operations` must be finite and not 0, got {dense:g} dense ones. {hint}.")
    steps, own, share = dense / sizes.pairs, energies, (adds + products) / dense
    spiking = SpikingEnergy(
        additions=adds * own.add + products * (own.multiply + own.accumulate),
        weights=(adds + products) * own.weight,
        accumulators=2 * (adds + products) * own.state if accumulators else 0.0,
        updates=steps * (sizes.states * (own.decay + own.add) + 2 * sizes.neurons * own.add),
        states=steps * 2 * sizes.states * own.state,
    )

    def rectifiers(passes: float, active: float) -> RectifierEnergy:
        pairs = passes * active * sizes.pairs
        parts = (
            pairs * (own.multiply + own.accumulate),
            pairs * own.weight,
            passes * sizes.activations * own.activation,
        )
        return RectifierEnergy(*(_PER_NJ * part for part in parts))

    once, every = rectifiers(1, 1), rectifiers(steps, 1)
    spent = SpikingEnergy(*(_PER_NJ * part for part in spiking))
    each = own.add + own.weight + (2 * own.state if accumulators else 0)
    even = [(sum(rival) - spent.updates - spent.states) / (_PER_NJ * dense * each) for rival in (once, every)]
    return Energy(spent, once, every, rectifiers(steps, share), share, even[0], even[1], own.source)


class _Sizes(NamedTuple):
    pairs: float  # of input and neuron, of all connections
    neurons: int
    states: int
    activations: int  # that each connection reads and writes


def _sizes(network: Network, params: Params, stats: Stats | None) -> _Sizes:
    """The sizes of a network that count in each step."""
    counts = {name: jnp.zeros((1, math.prod(shape))) for name, shape in network.inputs}
    spiking = [node.name for node in network.nodes if node.block.is_spiking]
    rates = {name: jnp.zeros((1, math.prod(network.shapes[name]))) for name in spiking}
    step = synaptic_operations(network, params, counts, rates, jnp.ones(1, jnp.int32), stats=stats)
    neurons = states = activations = 0
    for node, shapes in zip(network.nodes, network.in_shapes, strict=True):
        own = params.get(node.name), (stats or {}).get(node.name)
        if isinstance(node.block, Spiking | Integrator):
            neurons += math.prod(network.shapes[node.name])  # which may receive several currents each
            held = jax.eval_shape(
                lambda block=node.block, own=own, at=shapes: block.initial_state(*own, 1, *at)
            )
            states += sum(leaf.size for leaf in jax.tree.leaves(held))
        elif isinstance(node.block, Linear | Sparse | Synaptic):
            activations += math.prod(shapes[0]) + math.prod(network.shapes[node.name])
    return _Sizes(float(step.dense), neurons, states, activations)
