"""How much of a network's gradient is near the threshold: what a `cutoff` or a second threshold would keep of it."""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Integer

from snnjax._check import concrete, fail, short_repr
from snnjax._sparse_spikes import SparseSpikes
from snnjax._types import Signal, accumulation_dtype, steps_within
from snnjax.blocks.block import Context, flat
from snnjax.blocks.spiking import Spiking
from snnjax.graph.containers import Node
from snnjax.graph.fused import Arrays
from snnjax.graph.network import Network, Params, State, Stats, checked_call, params_dtype, run_checked
from snnjax.ops._glif_step import align

_OP = "gradient_share"


class GradientShare(NamedTuple):
    """The shares of neurons and of their gradient near the threshold, and the settings that keep enough of it.

    A share of neurons is one of all neurons of a layer in all steps of all sequences; a share of the gradient is one of
    its squared norm, and 0 in a layer without any gradient.
    """

    bands: Array  # [bands] candidates
    second_thresholds: Array  # [thresholds] candidates
    neurons_within: Array  # [neurons, bands] share of the neurons with ``|v - threshold| < band``
    gradient_within: Array  # [neurons, bands] their share of the gradient; a cutoff discards the rest
    cutoffs: Array  # [neurons, bands] that end there: the derivative as a fraction of its peak
    neurons_above: Array  # [neurons, thresholds] share that spikes or is above the second threshold
    gradient_above: Array  # [neurons, thresholds] their share of the gradient; lists discard the rest
    capacities: Array  # [neurons, thresholds] int32, slots that the longest list of the batch needs
    # Of the candidates that keep enough of the gradient, the one with the fewest neurons.
    cutoff: Array  # [layers], 0 if no band keeps enough
    second_threshold: Array  # [layers], -inf if no second threshold does
    capacity: Array  # [layers] int32 for this second threshold


def gradient_share(
    network: Network,
    params: Params,
    inputs: Float[Array, "time batch inputs"] | SparseSpikes,
    labels: Integer[Array, "..."],
    *,
    loss: Callable[..., Array],
    lengths: Integer[Array, " batch"] | None = None,
    state: State | None = None,
    stats: Stats | None = None,
    bands: Sequence[float] | Float[Array, " bands"] = (0.05, 0.1, 0.2, 0.3, 0.5, 1.0),
    second_thresholds: Sequence[float] | Float[Array, " thresholds"] = (0.95, 0.9, 0.8, 0.7, 0.5, 0.0),
    keep: float = 0.99,
) -> GradientShare:
    """Measure how much of the gradient reaches neurons near the threshold, block by block of neurons that spike.

    The gradient is the one that reaches a membrane through its spike in a step, ``g = surrogate.derivative(v -
    threshold) * dloss/dspike``, and the share of it within a band is ``sum [|v - threshold| < band] g^2 / sum g^2``.
    It is the full gradient: the `network` may have capacities and cutoffs, which are left out. What a neuron's own
    reset and adaptation add to ``dloss/dspike`` is not counted: lists do not affect it, and a cutoff ends it at the
    same distance.

    For `jax.jit`, bind `network`, `loss` and `keep` with `functools.partial`.

    Args:
        network: any network; to compare slopes, pass networks whose surrogates have other slopes, trained alike.
        params: its parameters, best after some training.
        inputs: this, `labels`, `lengths`, `state` and `stats` are a batch, as for training.
        labels: what `loss` takes.
        loss: one of `snnjax.losses`, called with the outputs, the labels and `lengths`.
        bands: distances from the threshold, in the unit of the membrane. The default suits thresholds of about 1.
        second_thresholds: in the unit of the membrane; an adaptive threshold moves them, as in a layer.
        keep: the share of the gradient that `cutoff`, or `second_threshold` with `capacity`, of the result keeps.

    Raises:
        ValueError: if the batch does not fit, there are no candidates, a band is not positive, `keep` is outside (0,
            1], or a cutoff cannot be left out because a neuron's own functions contain it.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> import snnjax
        >>> from snnjax import losses, metrics, neurons, surrogates
        >>> net = snnjax.network(
        ...     4, [snnjax.layer(8, neurons.lif(surrogate="triangle"))], snnjax.leaky_readout(2)
        ... )
        >>> params, labels = net.init(jax.random.key(0)), jnp.array([0, 1])
        >>> found = metrics.gradient_share(
        ...     net, params, jnp.ones((5, 2, 4)), labels, loss=losses.cross_entropy_sum
        ... )
        >>> found.gradient_within[0, -1]  # this triangle ends at a distance of 1
        Array(1., dtype=float32)

    Reference:
        Finkbeiner et al. 2024, arXiv:2311.04386, for the second threshold.
    """
    sets = _candidates("bands", bands), _candidates("second_thresholds", second_thresholds)
    known = concrete(sets[0])
    if known is not None and not (known > 0).all():
        hint = "Try [0.1], a tenth of a threshold of 1"
        fail(f"gradient_share: `bands` must be distances above 0, got {short_repr(bands)}. {hint}.")
    if not isinstance(keep, int | float) or not 0 < keep <= 1:
        fail(f"gradient_share: `keep` must be a number in (0, 1], got {short_repr(keep)}. Try 0.99.")
    if not callable(loss):
        fail(f"gradient_share: `loss` must be a function, got {short_repr(loss)}. Pass one of snnjax.losses.")
    full = dataclasses.replace(network, nodes=tuple(map(in_full, network.nodes)))
    arrays, signals, lengths = checked_call(full, params, state, stats, inputs, lengths)
    steps, batch = next(iter(signals.values())).shape[:2]
    valid = steps_within(steps, jnp.full(batch, steps) if lengths is None else lengths)
    measured = spike_gradients(full, arrays, signals, lengths, loss, labels)
    rows = []
    for node in spiking_nodes(full):
        block: Any = node.block
        held = arrays.params.get(node.name), arrays.stats.get(node.name)
        constants = block.neuron_params(*held, full.shapes[node.name])
        rows.append(_of_layer(block, constants, measured[node.name], valid, sets, keep))
    return GradientShare(*sets, *(jnp.stack(column) for column in zip(*rows, strict=True)))


def spiking_nodes(network: Network) -> list[Node]:
    """The nodes whose neurons spike, in order."""
    found = [node for node in network.nodes if node.block.is_spiking]
    own = next((node for node in found if not isinstance(node.block, Spiking)), None)
    if own is not None:
        fail(
            f"gradient_share: `network` must have neurons of snnjax.neurons, got {own.block.kind} in {own.name!r}. "
            "Write it as a Neuron."
        )
    return found


def spike_gradients(
    network: Network,
    arrays: Arrays,
    signals: dict[str, Signal],
    lengths: Array | None,
    loss: Callable[..., Array],
    labels: Array,
) -> dict[str, tuple[Array, Array]]:
    """The distances of neurons from the threshold and their gradients through the spikes, ``[time, batch, neurons]``.

    The arguments are those that `checked_call` returns.
    """
    dtype, sizes = accumulation_dtype(params_dtype(arrays.params)), next(iter(signals.values())).shape[:2]
    widths = {node.name: math.prod(network.shapes[node.name]) for node in spiking_nodes(network)}
    offsets = {_offsets_of(name): jnp.zeros((*sizes, width), dtype) for name, width in widths.items()}
    given = tuple((name, zeros.shape[2:]) for name, zeros in offsets.items())
    nodes = tuple(_with_offsets(node) if node.name in widths else node for node in network.nodes)
    measured = dataclasses.replace(network, inputs=(*network.inputs, *given), nodes=nodes)
    scan = functools.partial(_scan, measured, arrays, signals, lengths)
    output, pull_back, distances = jax.vjp(scan, offsets, has_aux=True)
    (gradients,) = pull_back(jax.grad(lambda output: loss(output, labels, lengths=lengths))(output))
    # Infinite in a refractory period, which no gradient passes.
    return {
        name: (x, jnp.where(jnp.isinf(x), 0, gradients[_offsets_of(name)]))
        for name, x in ((name, flat(x)) for name, x in distances.items())
    }


@functools.partial(jax.jit, static_argnames="network")  # compiled once, not in each call outside jit
def _scan(
    network: Network,
    arrays: Arrays,
    signals: dict[str, Signal],
    lengths: Array | None,
    offsets: dict[str, Array],
) -> tuple[Array, dict[str, Array]]:
    """The output of a network without lists, and the distances of its neurons from the threshold."""
    context = Context(lengths, None, {}, record=("membranes",))
    output, _ = run_checked(network, arrays, signals | offsets, context)
    return output.output, output.membranes


@dataclass(frozen=True)
class _Measured(Spiking):
    """Neurons that receive offsets of their distances from the threshold besides their currents."""

    num_signals = 2


def _offsets_of(name: str) -> str:
    """The input that holds the offsets of a node."""
    return f"{name}/offsets"


def _with_offsets(node: Node) -> Node:
    own = {field.name: getattr(node.block, field.name) for field in dataclasses.fields(node.block)}
    return node._replace(block=_Measured(**own), sources=(*node.sources, _offsets_of(node.name)))


def _candidates(argument: str, values: Any) -> Array:
    array = jnp.asarray(values)
    if array.ndim != 1 or array.size == 0:
        hint = "Pass a list such as [0.5, 0.2, 0.1]"
        fail(f"gradient_share: `{argument}` must be a list of numbers, got {short_repr(values)}. {hint}.")
    return array.astype(jnp.float32)


def in_full(node: Node) -> Node:
    """The node without capacity and cutoff."""
    block = node.block
    if not isinstance(block, Spiking):
        return node
    neuron, surrogate = block.neuron, block.neuron.surrogate
    if neuron.is_graded:
        fail(
            f"gradient_share: `{node.name}` must have one threshold, got graded spikes of {neuron.name}. "
            "Choose the second threshold by the activity."
        )
    if neuron.sent is not None:
        fail(
            f"gradient_share: `{node.name}` must have spikes with a surrogate, got times with derivatives of "
            f"{neuron.name}. Such layers have no lists."
        )
    if surrogate.cutoff > 0:
        has_own = neuron.inner_surrogate is not None
        if neuron.integrate is not None and has_own:
            fail(
                f"gradient_share: `{node.name}` must have a surrogate without cutoff, got {neuron.name}. "
                "Make one without it: the same parameters fit."
            )
        surrogate = dataclasses.replace(surrogate, cutoff=0.0)
        neuron = dataclasses.replace(
            neuron, surrogate=surrogate, inner_surrogate=surrogate if has_own else None
        )
    return node._replace(block=dataclasses.replace(block, neuron=neuron, capacity=None))


@functools.partial(jax.jit, static_argnames=("block", "keep"))
def _of_layer(
    block: Spiking,
    constants: Any,
    measured: tuple[Array, Array],
    valid: Array,
    candidates: tuple[Array, Array],
    keep: float,
) -> tuple[Array, ...]:
    """The fields of `GradientShare` for a layer, after the candidates."""
    (distances, gradients), (bands, second_thresholds) = measured, candidates
    largest = jnp.max(jnp.abs(gradients))
    squares = (gradients / jnp.where(largest == 0, 1, largest)) ** 2  # those of tiny gradients would be 0
    dtype, num_neurons = squares.dtype, squares.shape[-1]
    num_steps = jnp.maximum(jnp.sum(valid, dtype=jnp.int32), 1).astype(dtype)
    resting = align(block.neuron.threshold(constants).astype(dtype), distances)

    def shares(near: Array) -> tuple[Array, Array, Array]:
        near = near & valid[:, :, None]
        counts = jnp.sum(near, axis=-1, dtype=jnp.int32)
        neurons = jnp.sum(counts.astype(dtype)) / (num_steps * num_neurons)
        kept, lost = jnp.sum(jnp.where(near, squares, 0)), jnp.sum(jnp.where(near, 0, squares))
        total = kept + lost  # of rounded sums, so that exactly 0 and 1 are possible
        return neurons, kept / jnp.where(total == 0, 1, total), jnp.max(counts)

    def above(second: Array) -> tuple[Array, Array, Array]:
        return shares((distances > second - resting) | (distances > 0))

    within, kept_within, _ = jax.lax.map(lambda band: shares(jnp.abs(distances) < band), bands.astype(dtype))
    listed, kept_above, capacities = jax.lax.map(above, second_thresholds.astype(dtype))
    slope = block.neuron.surrogate.derivative
    cutoffs = slope(bands) / slope(jnp.zeros_like(bands))
    table = (within, kept_within, cutoffs, listed, kept_above, capacities)
    best = functools.partial(_fewest, listed, kept_above, keep)
    cutoff = _fewest(within, kept_within, keep, cutoffs, 0.0)
    return (*table, cutoff, best(second_thresholds, -jnp.inf), best(capacities, num_neurons))


def _fewest(neurons: Array, kept: Array, keep: float, settings: Array, otherwise: float) -> Array:
    """The setting of the candidate with the fewest neurons that keeps enough, `otherwise` if none does."""
    enough = kept >= keep
    best = jnp.argmin(jnp.where(enough, neurons, jnp.inf))
    return jnp.where(jnp.any(enough), settings[best], otherwise)
